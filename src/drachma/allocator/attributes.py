"""Attribute values as constraints compare them: typed elements, and sets of them as bits of an integer.

A constraint asks two things of values: do they have an element in common, and are they apart. With list attributes a
value is a set of elements; without, it is a single one. Numbering all elements that occur makes a value an integer, so
both questions are one ``&``. Elements of different types never are the same element (KEP-4381, matchAttribute).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from drachma.api import resourceslice

Element = tuple[str, int | str]
"""A type's letter and a value of that type."""


class Untyped:
    """Stands for an attribute that is there but has no value of a type known; equal to nothing but itself."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNTYPED"


UNTYPED: Final = Untyped()

Value = tuple[Element, ...] | Untyped | None
"""The elements of an attribute; None where a device does not have it."""


def lookup(
    attributes: Mapping[str, resourceslice.DeviceAttribute], name: str, *, driver: str
) -> resourceslice.DeviceAttribute | None:
    """Return a device's attribute by its full name. An attribute without a domain is in the driver's."""
    attribute = attributes.get(name)
    if attribute is not None:
        return attribute
    domain, slash, identifier = name.partition("/")
    return attributes.get(identifier) if slash and domain == driver else None


def elements(attribute: resourceslice.DeviceAttribute | None, *, lists: bool) -> Value:
    """Return the value of an attribute; ``lists`` says if list attributes are on."""
    if attribute is None:
        return None
    return _set_elements(attribute) if lists else _single_element(attribute)


def _set_elements(attribute: resourceslice.DeviceAttribute) -> Value:
    if attribute.int_values:
        return tuple(("int", value) for value in attribute.int_values)
    if attribute.bool_values:
        return tuple(("bool", value) for value in attribute.bool_values)
    if attribute.string_values:
        return tuple(("string", value) for value in attribute.string_values)
    if attribute.version_values:
        return tuple(("version", value) for value in attribute.version_values)
    if attribute.int_value is not None:
        return (("int", attribute.int_value),)
    if attribute.bool_value is not None:
        return (("bool", attribute.bool_value),)
    if attribute.string_value is not None:
        return (("string", attribute.string_value),)
    if attribute.version_value is not None:
        return (("version", attribute.version_value),)
    return UNTYPED


def _single_element(attribute: resourceslice.DeviceAttribute) -> Value:
    if attribute.string_value is not None:
        return (("string", attribute.string_value),)
    if attribute.int_value is not None:
        return (("int", attribute.int_value),)
    if attribute.bool_value is not None:
        return (("bool", attribute.bool_value),)
    # Versions have one spelling only (semver 2.0.0), so texts can be compared.
    if attribute.version_value is not None:
        return (("version", attribute.version_value),)
    return UNTYPED


ALL_ELEMENTS: Final = -1
NO_ELEMENTS: Final = 0


class Numbering:
    """Gives every element that occurs a bit of its own."""

    __slots__ = ("_numbers", "_size")

    def __init__(self) -> None:
        # The numbers of bits, since thousands of sets with one bit each would take more memory than the devices.
        self._numbers: dict[Element, int] = {}
        self._size = 0

    def of(self, value: Iterable[Element]) -> int:
        """Return the bits of a value's elements."""
        total = 0
        for element in value:
            number = self._numbers.get(element)
            if number is None:
                number = self._numbers[element] = self._size
                self._size += 1
            total |= 1 << number
        return total

    def unique(self) -> int:
        """Return a bit that no element has."""
        bit = 1 << self._size
        self._size += 1
        return bit
