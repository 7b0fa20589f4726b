"""Named resources with attributes, in one form for both spellings. A value has exactly one type."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from drachma import errors
from drachma.api.v1alpha2 import resourceslice
from drachma.bounds import memory
from drachma.values import quantity, semver


class Version(msgspec.Struct, frozen=True):
    """Version in its full form."""

    text: str


Value = quantity.Quantity | Version | bool | int | str | tuple[int, ...] | tuple[str, ...]


class Resource(msgspec.Struct, frozen=True):
    """Resource. ``types`` has the type of each attribute, as selectors name it."""

    name: str
    attributes: Mapping[str, Value]
    types: Mapping[str, str]


def read_kep(resource: resourceslice.NamedResource) -> Resource:
    """Return a resource in the KEP's spelling."""
    return _resource(resource.name, {each.name: _typed(each) for each in resource.attributes})


def read_1_30(resource: resourceslice.NamedResourcesInstance) -> Resource:
    """Return a resource in the spelling of 1.30."""
    return _resource(resource.name, {each.name: _typed(each) for each in resource.attributes})


def _resource(name: str, attributes: Mapping[str, tuple[str, Value] | None]) -> Resource:
    present = {each: typed for each, typed in attributes.items() if typed is not None}
    return Resource(
        name,
        {each: value for each, (_, value) in present.items()},
        {each: type_ for each, (type_, _) in present.items()},
    )


def _typed(attribute: resourceslice.Attribute | resourceslice.NamedResourcesAttribute) -> tuple[str, Value] | None:
    """Return the type and value of an attribute, or None for one without any, which validation refuses."""
    if attribute.quantity_value is not None:
        return "quantity", attribute.quantity_value
    if attribute.bool_value is not None:
        return "bool", attribute.bool_value
    if attribute.int_value is not None:
        return "int", int(attribute.int_value)
    if attribute.string_value is not None:
        return "string", str(attribute.string_value)
    if attribute.version_value is not None:
        return "version", _version(attribute.version_value)
    if attribute.int_slice is not None:
        return "intslice", _ints(attribute.int_slice)
    if attribute.string_slice is not None:
        return "stringslice", _strings(attribute.string_slice)
    return None


def _ints(value: tuple[int, ...] | resourceslice.NamedResourcesIntSlice) -> tuple[int, ...]:
    return tuple(value.ints if isinstance(value, resourceslice.NamedResourcesIntSlice) else value)


def _strings(value: tuple[str, ...] | resourceslice.NamedResourcesStringSlice) -> tuple[str, ...]:
    return tuple(value.strings if isinstance(value, resourceslice.NamedResourcesStringSlice) else value)


@memory.remember(entries=1024, longest=256)
def _version(text: str) -> Version:
    """Return a version, read tolerantly as the KEP says: ``v1.2`` with blanks around is 1.2.0.

    A malformed text stays as it is, and equals no version.
    """
    try:
        return Version(str(semver.SemVer.parse_tolerant(text.strip())))
    except errors.InvalidValueError:
        return Version(str(text))
