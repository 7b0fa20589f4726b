"""Selectors of v1alpha2: both forms are checked for their types, and attributes are named by literals."""

import pytest

from drachma import cel
from drachma.cel import namedresources


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param('attributes["runtimeVersion"] >= "v12.0.0" && attributes["memory"] >= "32Gi"', id="the-kep"),
        pytest.param('attributes.quantity["memory"].isGreaterThan(quantity("32Gi"))', id="quantity"),
        pytest.param('attributes.bool["ecc"]', id="bool"),
        pytest.param('attributes.int["cores"] > 8', id="int"),
        pytest.param('attributes.intslice["lanes"].exists(x, x == 4)', id="intslice"),
        pytest.param('attributes.string["model"].startsWith("A")', id="string"),
        pytest.param('attributes.stringslice["b"].isSorted()', id="stringslice"),
        pytest.param('attributes.version["driver"].isLessThan(semver("2.0.0"))', id="version"),
        pytest.param('has(attributes.int.cores) ? attributes.int.cores > 1 : "x" in attributes', id="presence"),
        pytest.param("true", id="everything"),
    ],
)
def test_good_selectors(expression: str) -> None:
    assert namedresources.compile_selector(expression).expression == expression
    assert namedresources.max_cost(expression) <= 1_000_000


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param('attributes.string["a"] == 5', "no matching overload", id="typed-maps-have-types"),
        pytest.param('attributes.quantity["a"] > "1Gi"', "no matching overload", id="quantities-are-no-texts"),
        pytest.param("1 + 1", "must evaluate to bool", id="no-bool"),
        pytest.param("device.driver == 'a'", "undeclared reference", id="devices-are-of-later-versions"),
        pytest.param("attributes[", "compilation failed", id="no-expression"),
        pytest.param('attributes.string.exists(k, k == "a")', "named by a literal", id="maps-are-no-values"),
        pytest.param('attributes["a" + "b"] == 1', "named by a literal", id="computed-names"),
        pytest.param("size(attributes) > 3", "named by a literal", id="all-attributes"),
    ],
)
def test_bad_selectors(expression: str, want: str) -> None:
    with pytest.raises(cel.CompilationError, match=want):
        namedresources.compile_selector(expression)


@pytest.mark.parametrize(
    ("literal", "want_quantity", "want_version"),
    [
        pytest.param("32Gi", "32Gi", None, id="quantity"),
        pytest.param("v12.0.0", None, "12.0.0", id="version-with-v"),
        pytest.param("12.1", "12100m", "12.1.0", id="either"),
        pytest.param("ACME T1000", None, None, id="text"),
        pytest.param(8, "8", None, id="int"),
        pytest.param(True, None, None, id="bool"),
    ],
)
def test_what_a_literal_can_be(literal: str | int, want_quantity: str | None, want_version: str | None) -> None:
    comparison = namedresources.Comparison("a", "_==_", literal)
    assert (comparison.quantity_text, comparison.version_text) == (want_quantity, want_version)
