"""The notation of rules, and how a type applies them."""

import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from drachma.api import types
from drachma.validation import fielderror, typerules
from drachma.validation.fielderror import FieldError
from drachma.validation.path import ROOT, Path

SELECTOR = {"matchExpressions": [{"operator": "In", "key": "k", "values": ["v"]}]}


def check_both(value: dict[str, Any], at: Path) -> Iterator[FieldError]:
    if value.get("a") and value.get("b"):
        yield fielderror.forbidden(at.child("b"), "not with a")


def larger_than_fact(value: int, at: Path, least: int) -> Iterator[FieldError]:
    if value <= least:
        yield fielderror.invalid(at, value, f"must be greater than {least}")


def errors(line: str, value: dict[str, Any], facts: Any = None) -> list[str]:
    text = f"Item\n    name!\nType\n    {line}\n"
    return [str(error) for error in typerules.read(text, globals())["Type"](value, ROOT, facts)]


@pytest.mark.parametrize(
    ("line", "value", "want"),
    [
        pytest.param("a: x|y", {"a": ""}, [], id="optional-empty"),
        pytest.param("a: x|y", {"a": "z"}, ['a: Unsupported value: "z": supported values: "x", "y"'], id="enum"),
        pytest.param("a?: x|", {"a": ""}, ['a: Unsupported value: "": supported values: "x"'], id="present-empty"),
        pytest.param("a?: x|", {}, [], id="present-absent"),
        pytest.param("a!: x|", {"a": ""}, ["a: Required value"], id="required"),
        pytest.param('a!"say why": x|', {}, ["a: Required value: say why"], id="required-with-detail"),
        pytest.param("a!?: Item", {"a": {}}, ["a.name: Required value"], id="required-present"),
        pytest.param("a!?: Item", {}, ["a: Required value"], id="required-absent"),
        pytest.param("a=0: >0", {}, ["a: Invalid value: 0: must be greater than zero"], id="always-with-a-default"),
        pytest.param("a: >=1 <=3", {"a": 4}, ["a: Invalid value: 4: must be less than or equal to 3"], id="bounds"),
        pytest.param('a: 1..3 "one to three"', {"a": 4}, ["a: Invalid value: 4: one to three"], id="range-message"),
        pytest.param("a: max=2", {"a": "abc"}, ["a: Too long: may not be more than 2 bytes"], id="length"),
        pytest.param("a: items=1", {"a": [1, 2]}, ["a: Too many: 2: must have at most 1 item"], id="items"),
        pytest.param("a: text(x|y)", {"a": "z"}, ['a: Unsupported value: "z": supported values: "x", "y"'], id="texts"),
        pytest.param("a->b: max=1", {"a": "xx"}, ["b: Too long: may not be more than 1 byte"], id="another-name"),
        pytest.param("a b: >0", {"b": -1}, ["b: Invalid value: -1: must be greater than zero"], id="several-fields"),
        pytest.param("a: [Item]", {"a": [{}, {"name": "x"}]}, ["a[0].name: Required value"], id="list"),
        pytest.param(
            "a: [Item unique name]",
            {"a": [{"name": "x"}, {"name": "x"}]},
            ['a[1].name: Duplicate value: "x"'],
            id="unique",
        ),
        pytest.param(
            "a: [Item limit 1]", {"a": [{}, {}]}, ["a: Too many: 2: must have at most 1 item"], id="limit-of-a-list"
        ),
        pytest.param(
            "a: port",
            {"a": 70000},
            ["a: Invalid value: 70000: must be between 1 and 65535, inclusive"],
            id="constraint",
        ),
        pytest.param("a: selectors.check", {"a": SELECTOR}, [], id="function-of-another-module"),
        pytest.param("@check_both", {"a": 1, "b": 1}, ["b: Forbidden: not with a"], id="code"),
    ],
)
def test_rules(line: str, value: dict[str, Any], want: list[str]) -> None:
    assert errors(line, value) == want


def test_facts_reach_the_rules_that_take_them() -> None:
    assert errors("a: larger_than_fact", {"a": 3}, facts=3) == ["a: Invalid value: 3: must be greater than 3"]
    assert errors("a: larger_than_fact", {"a": 4}, facts=3) == []


def test_errors_are_in_the_order_of_the_rules() -> None:
    text = "Type\n    b!\n    @check_both\n    a: >0\n    c!\n"
    ordered = typerules.read(text, globals())["Type"]({"a": -1, "b": 1}, ROOT)
    assert [error.field for error in ordered] == ["b", "a", "c"]


@pytest.mark.parametrize("line", ["a: no_such_rule", "@no_such_rule", "a: [Missing]", "a ! b"])
def test_a_bad_rule_is_refused_when_it_is_read(line: str) -> None:
    with pytest.raises(ValueError, match=r"no rule is called|not a rule"):
        errors(line, {})


RULES = pathlib.Path(typerules.__file__).parent
GROUPS = {
    "apps": ("apps/v1", "core/v1"),
    "autoscaling": ("autoscaling/v2",),
    "batch": ("batch/v1",),
    "declared": ("resource.k8s.io/v1", "core/v1"),
    "endpoints": ("core/v1", "discovery.k8s.io/v1"),
    "flowcontrol": ("flowcontrol.apiserver.k8s.io/v1",),
    "networking": ("networking.k8s.io/v1", "core/v1"),
    "matching": ("admissionregistration.k8s.io/v1",),
    "policies": ("admissionregistration.k8s.io/v1",),
    "node": ("core/v1", "node.k8s.io/v1"),
    "poddisruptionbudget": ("policy/v1",),
    "scheduling": ("scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1"),
    "rbac": ("rbac.authorization.k8s.io/v1",),
    "resourcepoolstatusrequest": ("resource.k8s.io/v1alpha3",),
    "storage": ("storage.k8s.io/v1", "core/v1"),
}
"""Groups and versions of the types in a file of rules, where these are not in the core group."""


@pytest.mark.parametrize("path", sorted(RULES.rglob("*.rules")), ids=lambda path: path.stem)
def test_rules_name_fields_that_their_types_have(path: pathlib.Path) -> None:
    fields: Any = None
    for line in path.read_text().splitlines():
        if line and not line.startswith((" ", "#")):
            fields = next(filter(None, (_fields(place, line) for place in GROUPS.get(path.stem, ("core/v1",)))), None)
        elif fields is not None and line.strip() and not line.strip().startswith(("@", "#")):
            names = typerules._steps(
                line.strip().partition(": ")[0].removesuffix(":"), typerules._Names({}, {}, typerules._no_special)
            )
            assert {step.name for step in names} <= set(fields), line


def _fields(place: str, name: str) -> Any:
    try:
        return types.get(f"{place}.{name}").fields
    except KeyError:
        return None
