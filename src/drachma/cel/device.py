"""Devices as CEL sees them: ``device.driver``, ``.attributes``, ``.capacity``, ``.allowMultipleAllocations``.

The allocator makes one :class:`Device` per device of a slice and hands it to programs. Attributes and capacities are
kept under their domain and name together, which is how nearly every selector reads them; maps of maps are built when
an expression asks for one.

A device with an attribute that has no value, or a version that is none, can be made but not be matched: programs report
its ``problem`` as upstream does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from drachma import errors
from drachma.api import resourceslice, struct
from drachma.cel.runtime import kinds, quantities, values, versions
from drachma.values import quantity

SEPARATOR: Final = "\0"
"""Between domain and name in the keys of ``flat_attributes`` and ``flat_capacity``; neither can contain it."""

_ZERO: Final = quantity.Quantity.parse("0")


class Device:
    """One device, ready for evaluation; immutable by convention."""

    __slots__ = (
        "_attributes", "_capacity", "_variables", "allow_multiple_allocations", "driver", "flat_attributes",
        "flat_capacity", "flat_nanos", "problem",
    )  # fmt: skip

    def __init__(
        self,
        driver: str,
        *,
        attributes: Mapping[str, resourceslice.DeviceAttribute] | None = None,
        capacity: Mapping[str, resourceslice.DeviceCapacity] | None = None,
        allow_multiple_allocations: bool | None = None,
        list_type_attributes: bool = True,
    ) -> None:
        self.driver = str(driver)
        self.allow_multiple_allocations = allow_multiple_allocations is True
        self.problem: str | None = None
        self.flat_attributes: dict[str, Any] = {}
        self.flat_capacity: dict[str, quantity.Quantity] = {}
        self.flat_nanos: dict[str, int] = {}
        self._attributes: values.DefaultMap | None = None
        self._capacity: values.DefaultMap | None = None
        self._variables: dict[str, Any] | None = None
        for name, attribute in (attributes or {}).items():
            try:
                value = _attribute_value(attribute, list_type_attributes=list_type_attributes)
                self.flat_attributes[self._key(name)] = value
            except errors.CelError as error:
                self.problem = self.problem or f"attribute {name}: {error}"
        for name, amount in (capacity or {}).items():
            key = self._key(name)
            value = self.flat_capacity[key] = _ZERO if amount.value is None else amount.value
            self.flat_nanos[key] = value.nanos

    @classmethod
    def of(cls, device: resourceslice.BasicDevice, driver: str) -> Device:
        """Return the device of a slice whose driver is given."""
        return cls(
            driver,
            attributes=device.attributes,
            capacity=device.capacity,
            allow_multiple_allocations=device.allow_multiple_allocations,
        )

    def _key(self, name: str) -> str:
        """Return a name without a domain belongs to the driver's."""
        domain, slash, identifier = name.partition("/")
        return f"{domain}{SEPARATOR}{identifier}" if slash else f"{self.driver}{SEPARATOR}{name}"

    @property
    def attributes(self) -> values.DefaultMap:
        """Attributes by domain and name; a domain that is not there is empty."""
        if self._attributes is None:
            self._attributes = _nested(self.flat_attributes)
        return self._attributes

    @property
    def capacity(self) -> values.DefaultMap:
        """Capacities by domain and name. An absent domain is empty."""
        if self._capacity is None:
            self._capacity = _nested(self.flat_capacity)
        return self._capacity

    @property
    def variables(self) -> dict[str, Any]:
        """The input of an expression: the variable ``device``."""
        if self._variables is None:
            fields = values.NativeMap()
            fields["driver"] = self.driver
            fields["allowMultipleAllocations"] = self.allow_multiple_allocations
            fields["attributes"] = self.attributes
            fields["capacity"] = self.capacity
            self._variables = {"device": fields}
        return self._variables


def _nested(flat: Mapping[str, Any]) -> values.DefaultMap:
    result = values.DefaultMap()
    for key, value in flat.items():
        domain, _, name = key.partition(SEPARATOR)
        inner = result.get(domain)
        if inner is None:
            inner = result[domain] = values.NativeMap()
        inner[name] = value
    return result


def _attribute_value(attribute: resourceslice.DeviceAttribute, *, list_type_attributes: bool) -> Any:
    """Return the one value of an attribute; lists come first, as upstream looks for them, or are not looked at."""
    if list_type_attributes:
        for elements in (attribute.int_values, attribute.bool_values, attribute.string_values):
            if not struct.is_absent(elements):
                return list(elements)
        if not struct.is_absent(attribute.version_values):
            return [_parse_version(text) for text in attribute.version_values]
    if attribute.int_value is not None:
        return int(attribute.int_value)
    if attribute.bool_value is not None:
        return attribute.bool_value
    if attribute.string_value is not None:
        return str(attribute.string_value)
    if attribute.version_value is not None:
        return _parse_version(attribute.version_value)
    raise errors.CelError("unsupported attribute value")


def _parse_version(text: str) -> versions.SemVer:
    try:
        return versions.parse(text)
    except errors.CelError as error:
        raise errors.CelError(f"parse semantic version: {error}") from None


def to_attribute(value: Any) -> resourceslice.DeviceAttribute:
    """Return the attribute that a derived attribute's value becomes. Raises CelError for values that cannot be one."""
    field = _SCALARS.get(value.__class__)
    if field is not None:
        return _make_attribute(field, str(value) if value.__class__ is versions.SemVer else value)
    kind = value.__class__
    if kind in kinds.LISTS:
        return _to_list_attribute(list(value))
    raise errors.CelError(f"unsupported CEL return type: {_native_name(value)}")


def _to_list_attribute(elements: Any) -> resourceslice.DeviceAttribute:
    if not elements:
        return resourceslice.DeviceAttribute(string_values=())
    kind = elements[0].__class__
    kinds = _ELEMENTS.get(kind)
    if kinds is None:
        raise errors.CelError(f"unsupported list element type: {_native_name(elements[0])}")
    field, name = kinds
    for index, element in enumerate(elements):
        if element.__class__ is not kind:
            raise errors.CelError(f"expected list element at index {index} to be {name}, got {_native_name(element)}")
    native = tuple(str(element) if kind is versions.SemVer else element for element in elements)
    return _make_attribute(field, native)


def _make_attribute(field: str, value: Any) -> resourceslice.DeviceAttribute:
    return resourceslice.DeviceAttribute(**{field: value})


_SCALARS: Final[dict[type, str]] = {
    bool: "bool_value",
    int: "int_value",
    str: "string_value",
    versions.SemVer: "version_value",
}
_ELEMENTS: Final = {
    bool: ("bool_values", "bool"),
    int: ("int_values", "int"),
    str: ("string_values", "string"),
    versions.SemVer: ("version_values", "semver"),
}
_NATIVE: Final[dict[type, str]] = {
    bool: "bool",
    bytes: "[]uint8",
    float: "float64",
    int: "int64",
    str: "string",
    type(None): "structpb.NullValue",
    values.UInt: "uint64",
    values.Duration: "time.Duration",
    values.Timestamp: "time.Time",
    values.TypeValue: "string",
    quantity.Quantity: "*resource.Quantity",
    quantities.Computed: "*resource.Quantity",
    versions.SemVer: "semver.Version",
    list: "[]ref.Val",
    values.Concat: "[]interface {}",
    dict: "map[ref.Val]ref.Val",
    values.DefaultMap: "map[string]interface {}",
    values.NativeMap: "map[string]interface {}",
}


def _native_name(value: Any) -> str:
    """Return the name that upstream's messages print for the Go form of a value."""
    return _NATIVE.get(value.__class__) or kinds.go_name(value)
