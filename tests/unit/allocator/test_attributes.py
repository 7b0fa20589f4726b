"""Attribute values as sets of typed elements, and as bits."""

import pytest

from drachma.allocator import attributes
from drachma.api import resourceslice

_Attribute = resourceslice.DeviceAttribute


@pytest.mark.parametrize(
    ("attribute", "single", "several"),
    [
        pytest.param(_Attribute(int_value=1), (("int", 1),), (("int", 1),), id="int"),
        pytest.param(_Attribute(bool_value=True), (("bool", True),), (("bool", True),), id="bool"),
        pytest.param(_Attribute(string_value="1"), (("string", "1"),), (("string", "1"),), id="string"),
        pytest.param(_Attribute(version_value="1.0.0"), (("version", "1.0.0"),), (("version", "1.0.0"),), id="version"),
        pytest.param(_Attribute(int_values=(1, 2)), attributes.UNTYPED, (("int", 1), ("int", 2)), id="ints"),
        pytest.param(_Attribute(bool_values=(True,)), attributes.UNTYPED, (("bool", True),), id="bools"),
        pytest.param(_Attribute(string_values=("a",)), attributes.UNTYPED, (("string", "a"),), id="strings"),
        pytest.param(_Attribute(version_values=("1.0.0",)), attributes.UNTYPED, (("version", "1.0.0"),), id="versions"),
        pytest.param(_Attribute(), attributes.UNTYPED, attributes.UNTYPED, id="nothing"),
        pytest.param(None, None, None, id="absent"),
    ],
)
def test_elements(
    attribute: resourceslice.DeviceAttribute | None, single: attributes.Value, several: attributes.Value
) -> None:
    assert attributes.elements(attribute, lists=False) == single
    assert attributes.elements(attribute, lists=True) == several


@pytest.mark.parametrize(
    ("name", "want"),
    [
        pytest.param("d.example.com/own", 1, id="without-a-domain-it-is-the-driver's"),
        pytest.param("other.example.com/x", 2, id="with-a-domain"),
        pytest.param("other.example.com/own", None, id="another-domain"),
        pytest.param("own", 1, id="written-the-same"),
        pytest.param("missing", None, id="missing"),
    ],
)
def test_lookup(name: str, want: int | None) -> None:
    published = {"own": _Attribute(int_value=1), "other.example.com/x": _Attribute(int_value=2)}
    found = attributes.lookup(published, name, driver="d.example.com")
    assert (None if found is None else found.int_value) == want


def test_numbering_gives_equal_elements_the_same_bit_and_others_their_own() -> None:
    numbering = attributes.Numbering()
    one, text = numbering.of([("int", 1)]), numbering.of([("string", "1")])
    both = numbering.of([("int", 1), ("int", 2)])
    assert one & text == 0
    assert both & one == one
    assert numbering.unique() & (one | text | both) == 0
