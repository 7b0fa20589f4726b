"""Translated selectors match the devices of the resources that the original matches."""

import pytest

from drachma import cel
from drachma.api import gates, resourceslice
from drachma.api.v1alpha2 import resourceslice as slices
from drachma.structured import identifiers, resources, selectors
from drachma.validation import path
from drachma.validation.v1alpha2 import models
from drachma.values import quantity

DRIVER = "cards.dra.example.com"
PROGRAMS = cel.device_programs(consumable_capacity=True, list_type_attributes=True, expressions=cel.Expressions.NEW)
GPU = resources.Resource(
    "gpu-1",
    {
        "memory": quantity.Quantity.parse("32Gi"),
        "runtimeVersion": resources.Version("12.1.0"),
        "productName": "ACME A4",
        "ecc": True,
        "cores": 8,
        "lanes": (1, 4),
        "modes": ("a", "b"),
        "as": "reserved",
        "max-clock.mhz": 1000,
    },
    {
        "memory": "quantity",
        "runtimeVersion": "version",
        "productName": "string",
        "ecc": "bool",
        "cores": "int",
        "lanes": "intslice",
        "modes": "stringslice",
        "as": "string",
        "max-clock.mhz": "int",
    },
)
DEVICE = cel.Device(
    DRIVER,
    attributes={
        "runtimeVersion": resourceslice.DeviceAttribute(version_value="12.1.0"),
        "productName": resourceslice.DeviceAttribute(string_value="ACME A4"),
        "ecc": resourceslice.DeviceAttribute(bool_value=True),
        "cores": resourceslice.DeviceAttribute(int_value=8),
        "lanes": resourceslice.DeviceAttribute(int_values=(1, 4)),
        "modes": resourceslice.DeviceAttribute(string_values=("a", "b")),
        "as": resourceslice.DeviceAttribute(string_value="reserved"),
        "max_clock__mhz": resourceslice.DeviceAttribute(int_value=1000),
    },
    capacity={"memory": resourceslice.DeviceCapacity(value=quantity.Quantity.parse("32Gi"))},
)


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        pytest.param('attributes["runtimeVersion"] >= "v12.0.0" && attributes["memory"] >= "32Gi"', True, id="the-kep"),
        pytest.param('attributes["memory"] <= "16Gi"', False, id="quantity-against-text"),
        pytest.param('"16Gi" >= attributes["memory"]', False, id="literal-on-the-left"),
        pytest.param('attributes["memory"] > 5', True, id="quantity-against-number"),
        pytest.param('attributes["memory"] != "32768Mi"', False, id="quantities-are-compared-by-value"),
        pytest.param(
            'attributes["memory"] < "1.2.3" || attributes["ecc"]', True, id="senseless-but-it-does-not-matter"
        ),
        pytest.param('attributes["runtimeVersion"] < "13"', True, id="version-against-a-short-one"),
        pytest.param('attributes["runtimeVersion"] == "12.1"', True, id="equal-versions"),
        pytest.param('attributes["productName"] == "ACME A4"', True, id="text"),
        pytest.param('attributes["productName"] == "12.1"', False, id="text-against-what-could-be-a-version"),
        pytest.param('attributes["cores"] >= 8', True, id="number"),
        pytest.param('attributes["ecc"]', True, id="bare-bool"),
        pytest.param('attributes["ecc"] == false', False, id="bool"),
        pytest.param('attributes["as"] == "reserved"', True, id="a-word-of-the-language"),
        pytest.param('attributes["max-clock.mhz"] > 1 && attributes.int["max-clock.mhz"] < 2000', True, id="odd-name"),
        pytest.param('4 in attributes["lanes"]', True, id="list-of-any-type"),
        pytest.param('attributes["lanes"].exists(x, x > 3)', True, id="one-of-a-list-of-any-type"),
        pytest.param('attributes["modes"].all(x, x in ["a", "b"])', True, id="all-of-a-list-of-any-type"),
        pytest.param('attributes["runtimeVersion"] >= " v12.0.0 "', True, id="blanks-around-a-version"),
        pytest.param('attributes.quantity["memory"].isGreaterThan(quantity("16Gi"))', True, id="typed-quantity"),
        pytest.param('attributes.version["runtimeVersion"].isLessThan(semver("13.0.0"))', True, id="typed-version"),
        pytest.param("attributes.intslice.lanes.exists(x, x > 3)", True, id="typed-ints"),
        pytest.param('attributes.stringslice["modes"].isSorted()', True, id="typed-strings"),
        pytest.param('"memory" in attributes.quantity && !("memory" in attributes.int)', True, id="presence-by-type"),
        pytest.param('"runtimeVersion" in attributes.version', True, id="presence-of-a-version"),
        pytest.param("has(attributes.string.ecc)", False, id="another-type-is-not-there"),
        pytest.param('"nope" in attributes || has(attributes.memory)', True, id="presence-of-any-type"),
        pytest.param('attributes.int[?"nope"].orValue(3) == 3', True, id="optional"),
    ],
)
def test_the_device_is_judged_as_the_resource(expression: str, want: bool) -> None:
    assert selectors.accepts(expression, GPU) is want
    translated = selectors.driver_selector(expression, DRIVER)
    assert PROGRAMS.selector(translated).matches(DEVICE) is want


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param('attributes["nope"] == "x"', id="no-such-attribute"),
        pytest.param('attributes.quantity["nope"].isLessThan(quantity("1"))', id="no-such-quantity"),
        pytest.param('attributes["memory"] >= "large"', id="no-quantity"),
        pytest.param('attributes["runtimeVersion"] >= "new"', id="no-version"),
    ],
)
def test_what_has_no_answer_has_none_for_the_device_either(expression: str) -> None:
    with pytest.raises(cel.EvaluationError):
        selectors.accepts(expression, GPU)
    with pytest.raises(cel.EvaluationError):
        PROGRAMS.selector(selectors.driver_selector(expression, DRIVER)).matches(DEVICE)


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param('"a" in attributes["modes"]', id="in"),
        pytest.param('attributes["modes"].exists(x, x == "a")', id="exists"),
        pytest.param('attributes["lanes"].all(x, x > 0)', id="all"),
        pytest.param('attributes.stringslice["modes"].exists(x, x == "a")', id="typed"),
    ],
)
def test_a_list_of_any_type_is_not_too_complex(expression: str) -> None:
    assert not list(models.check_selector(expression, path.Path("selector"), driver=DRIVER, gates=gates.ALL))


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param('attributes.string.exists(name, name == "model")', id="whole-map"),
        pytest.param('attributes.string["mo" + "del"] == "x"', id="computed-name"),
    ],
)
def test_attributes_are_named_by_literals(expression: str) -> None:
    problems = list(models.check_selector(expression, path.Path("selector"), driver=DRIVER, gates=gates.ALL))
    assert len(problems) == 1


def test_blanks_around_a_published_version_do_not_count() -> None:
    attribute = slices.Attribute(name="v", version_value=" v1.2 ")
    resource = resources.read_kep(slices.NamedResource(name="r", attributes=(attribute,)))
    assert resource.attributes == {"v": resources.Version("1.2.0")}


def test_devices_of_other_drivers_are_ruled_out_first() -> None:
    translated = selectors.driver_selector('attributes["memory"] >= "32Gi"', DRIVER)
    assert not PROGRAMS.selector(translated).matches(cel.Device("other.example.com"))


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("memory", "memory", id="plain"),
        pytest.param("driverVersion", "driverVersion", id="upper-case"),
        pytest.param("max-clock.mhz", "max_clock__mhz", id="dashes-and-dots"),
        pytest.param("3d", "_3d", id="leading-digit"),
    ],
)
def test_identifiers_of_attributes(name: str, want: str) -> None:
    assert identifiers.attribute(name) == want


def test_long_names_keep_apart() -> None:
    long, other = f"{'a' * 40}-x", f"{'a' * 40}-y"
    assert len(identifiers.attribute(long)) == 32
    assert identifiers.attribute(long) != identifiers.attribute(other)
    assert len(identifiers.device("a." * 60 + "b")) == 63
    assert identifiers.device("gpu.0") == "gpu-0"
