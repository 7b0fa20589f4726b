"""Fields of parameters that only administrators may set, in a DeviceClass (KEP-4381). Pure.

::

    class GpuConfig(driver.Config):
        sharing: str = "exclusive"
        init_command: driver.AdminOnly[list[str]] = []

A claim that sets such a field is refused. The value that counts is always the class's, also if the claim has
parameters of its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import inspect

_ValueT = TypeVar("_ValueT")
_MARK: Final = "adminOnly"

AdminOnly = Annotated[_ValueT, msgspec.Meta(extra={_MARK: True})]
"""Type of a field that only a DeviceClass may set."""


def find(parameters: Any, config_type: Any) -> list[str]:
    """Return the paths of all fields in parameters that only administrators may set."""
    return list(_walk(parameters, inspect.type_info(config_type), ""))


def take_over(of_class: Any, of_claim: Any) -> Any:
    """Return a claim's parameters with the administrators' fields of the class's parameters."""
    if type(of_class) is not type(of_claim):
        return of_claim
    changes: dict[str, Any] = {}
    for field in _fields(inspect.type_info(type(of_claim))):
        value, other = getattr(of_claim, field.name), getattr(of_class, field.name)
        new = other if _is_marked(field.type) else take_over(other, value)
        if new is not value:
            changes[field.name] = new
    if not changes:
        return of_claim
    replace = msgspec.structs.replace if isinstance(of_claim, msgspec.Struct) else dataclasses.replace
    return replace(of_claim, **changes)


def _fields(info: inspect.Type) -> Sequence[inspect.Field]:
    """Return the fields of a struct or a data class; other types have none."""
    return info.fields if isinstance(info, (inspect.StructType, inspect.DataclassType)) else ()


def _is_marked(info: inspect.Type) -> bool:
    return isinstance(info, inspect.Metadata) and bool((info.extra or {}).get(_MARK))


def _walk(value: Any, info: inspect.Type, path: str) -> Iterator[str]:
    match info:
        case inspect.Metadata():
            yield from _walk(value, info.type, path)
        case inspect.UnionType():
            for each in info.types:
                yield from _walk(value, each, path)
        case inspect.StructType() | inspect.DataclassType() | inspect.TypedDictType() if isinstance(value, Mapping):
            for field in info.fields:
                if field.encode_name in value:
                    child = f"{path}.{field.encode_name}" if path else field.encode_name
                    if _is_marked(field.type):
                        yield child
                    else:
                        yield from _walk(value[field.encode_name], field.type, child)
        case inspect.CollectionType() if isinstance(value, (list, tuple)):
            for number, each in enumerate(value):
                yield from _walk(each, info.item_type, f"{path}[{number}]")
        case inspect.DictType() if isinstance(value, Mapping):
            for key, each in value.items():
                yield from _walk(each, info.value_type, f"{path}[{key}]")
