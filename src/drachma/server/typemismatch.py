"""What Go's decoder says about a document whose values do not have the types of its kind.

Clients know these messages. They name Go's types, which the API structs are named after; where Go has a named string
type, or a package other than the version's, it is listed here. Only asked once a document has been refused.
"""

import functools
from datetime import datetime
from typing import Any, Final

import msgspec
from msgspec import inspect

from drachma import errors
from drachma.api import hooks, resourceslice, scheme
from drachma.values import quantity

_NAMED: Final = {
    ("DeviceAllocationConfiguration", "source"): "AllocationConfigSource",
    ("DeviceConstraint", "distinctAttribute"): "FullyQualifiedName",
    ("DeviceConstraint", "matchAttribute"): "FullyQualifiedName",
    ("DeviceSubRequest", "allocationMode"): "DeviceAllocationMode",
    ("DeviceTaint", "effect"): "DeviceTaintEffect",
    ("DeviceToleration", "effect"): "DeviceTaintEffect",
    ("DeviceToleration", "operator"): "DeviceTolerationOperator",
    ("ExactDeviceRequest", "allocationMode"): "DeviceAllocationMode",
    ("DeviceRequest", "allocationMode"): "DeviceAllocationMode",
    ("ManagedFieldsEntry", "operation"): "ManagedFieldsOperationType",
    ("NamespaceStatus", "phase"): "NamespacePhase",
    ("NodeSelectorRequirement", "operator"): "NodeSelectorOperator",
    ("ObjectMeta", "uid"): "types.UID",
    ("OwnerReference", "uid"): "types.UID",
    ("PodSpec", "restartPolicy"): "RestartPolicy",
    ("PodStatus", "phase"): "PodPhase",
    ("ResourceClaimConsumerReference", "uid"): "types.UID",
    ("Toleration", "effect"): "TaintEffect",
    ("Toleration", "operator"): "TolerationOperator",
}
_ALWAYS_V1: Final = frozenset(
    {"ObjectMeta", "OwnerReference", "ManagedFieldsEntry", "Condition", "LabelSelector", "LabelSelectorRequirement"}
    | {"NodeSelector", "NodeSelectorTerm", "NodeSelectorRequirement"}
)
_MAPS: Final = {
    (resourceslice.Device.__name__, "attributes"): "map[{package}.QualifiedName]{package}.DeviceAttribute",
    (resourceslice.Device.__name__, "capacity"): "map[{package}.QualifiedName]{package}.DeviceCapacity",
}
_TIME_LAYOUT: Final = "2006-01-02T15:04:05Z07:00"


class _Mismatch(Exception):  # noqa: N818 - never leaves this module
    """The first value of a wrong type."""


def explain(document: Any, api_version: str, *, kind: scheme.Kind) -> str:
    """Go's message about the first value of a wrong type, in the document's order; empty if there is none."""
    package = api_version.rpartition("/")[2]
    try:
        _Walk(package).struct(document, _info(kind.shape(api_version)), path="", owner=("", ""))
    except _Mismatch as error:
        return str(error)
    return ""


@functools.cache
def _info(model: type) -> inspect.Type:
    return inspect.type_info(model)


class _Walk:
    def __init__(self, package: str) -> None:
        self._package = package

    def struct(self, value: Any, info: inspect.Type, *, path: str, owner: tuple[str, str]) -> None:
        assert isinstance(info, inspect.StructType), "asked only about structs"
        if not isinstance(value, dict):
            self._refuse(value, info, path=path, owner=owner)
        fields = {field.encode_name: field.type for field in info.fields}
        for key, item in value.items():
            if key in fields and item is not None:
                below = f"{path}.{key}" if path else key
                self.value(item, fields[key], path=below, owner=(info.cls.__name__, key))

    def value(self, value: Any, info: inspect.Type, *, path: str, owner: tuple[str, str]) -> None:
        info = _required(info)
        match info:
            case inspect.AnyType():
                return
            case inspect.StructType():
                self.struct(value, info, path=path, owner=owner)
            case inspect.DictType():
                if not isinstance(value, dict):
                    self._refuse(value, info, path=path, owner=owner)
                for item in value.values():
                    if item is not None:
                        self.value(item, info.value_type, path=path, owner=owner)
            case inspect.VarTupleType():
                if not isinstance(value, list):
                    self._refuse(value, info, path=path, owner=owner)
                for item in value:
                    if item is not None:
                        self.value(item, info.item_type, path=path, owner=owner)
            case inspect.CustomType(cls=quantity.Quantity):
                self._quantity(value)
            case inspect.DateTimeType():
                self._time(value)
            case _:
                self._scalar(value, info, path=path, owner=owner)

    def _scalar(self, value: Any, info: inspect.Type, *, path: str, owner: tuple[str, str]) -> None:
        match info:
            case inspect.IntType(ge=low, le=high):
                fits = isinstance(value, int) and not isinstance(value, bool)
                if not fits or not (low or value) <= value <= (high or value):
                    self._refuse(value, info, path=path, owner=owner)
            case inspect.BoolType():
                if not isinstance(value, bool):
                    self._refuse(value, info, path=path, owner=owner)
            case inspect.StrType():
                if not isinstance(value, str):
                    self._refuse(value, info, path=path, owner=owner)

    def _quantity(self, value: Any) -> None:
        try:
            hooks.decode(quantity.Quantity, value)
        except errors.InvalidValueError as error:
            raise _Mismatch(str(error)) from None
        except TypeError:
            try:
                quantity.Quantity.parse(msgspec.json.encode(value).decode())
            except errors.InvalidValueError as error:
                raise _Mismatch(str(error)) from None

    def _time(self, value: Any) -> None:
        if not isinstance(value, str):
            raise _Mismatch(f"json: cannot unmarshal {describe(value)} into Go value of type string")
        try:
            msgspec.convert(value, datetime)
        except msgspec.ValidationError:
            shown = msgspec.json.encode(value).decode()
            raise _Mismatch(f'parsing time {shown} as "{_TIME_LAYOUT}": cannot parse {shown} as "2006"') from None

    def _refuse(self, value: Any, info: inspect.Type, *, path: str, owner: tuple[str, str]) -> None:
        is_number = isinstance(info, inspect.IntType) and isinstance(value, int | float)
        shown = f"number {value}" if is_number and not isinstance(value, bool) else describe(value)
        name, field = owner
        place = f"struct field {name}.{path}" if name else "value"
        raise _Mismatch(f"json: cannot unmarshal {shown} into Go {place} of type {self._type(info, name, field)}")

    def _type(self, info: inspect.Type, owner: str, field: str) -> str:
        info = _required(info)
        match info:
            case inspect.StructType():
                name = info.cls.__name__
                return f"v1.{name}" if name in _ALWAYS_V1 else f"{self._package}.{name}"
            case inspect.VarTupleType():
                return "[]" + self._type(info.item_type, owner, field)
            case inspect.DictType():
                special = _MAPS.get((owner, field))
                if special:
                    return special.format(package=self._package)
                return "map[string]" + self._type(info.value_type, owner, field)
            case inspect.IntType(le=high):
                return "int32" if high == 2**31 - 1 else "int64"
            case inspect.BoolType():
                return "bool"
            case inspect.CustomType():
                return "resource.Quantity"
            case inspect.DateTimeType():
                return "v1.Time"
        named = _NAMED.get((owner, field))
        if named is None:
            return "string"
        return named if "." in named else f"{self._package}.{named}"


def _required(info: inspect.Type) -> inspect.Type:
    if isinstance(info, inspect.UnionType):
        return next(each for each in info.types if not isinstance(each, inspect.NoneType))
    return info


def describe(value: Any) -> str:
    """Go's word for the type of a JSON value."""
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case int() | float():
            return "number"
        case dict():
            return "object"
        case _:
            return "array"
