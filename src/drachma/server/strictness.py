"""Fields that a kind does not have: found for Warning headers and for ``fieldValidation=Strict``.

Every write that does not ask for ``fieldValidation=Ignore`` comes here, so the walk is a tree of tables made once for
each type, and looks at no scalar. Partial views have no unknown fields.
"""

import functools
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import inspect

from drachma.server import resources
from drachma.values import quotation

LIMIT: Final = 100
"""How many problems are reported at most."""


class _Known(NamedTuple):
    """The fields of a struct. Those with structure of their own say how to look into it; scalars say None."""

    fields: Mapping[str, "_Inside | None"]


class _Inside(NamedTuple):
    """What a field holds: a struct, lists or maps of structs."""

    is_list: bool
    is_map: bool
    known: "_Known | None"
    item: "_Inside | None" = None


def unknown_fields(document: Mapping[str, Any], resource: resources.Resource, *, version: str) -> list[str]:
    """The problems of a document in upstream's words: ``unknown field "spec.bogus"``."""
    if resource.model is None or not resource.model.complete:
        return []
    known = _of_struct(resource.model.shape(resource.api_version(version)))
    found: list[str] = []
    for path in _struct(document, known, path=""):
        if path not in ("apiVersion", "kind"):
            found.append(f"unknown field {quotation.quote(path)}")
        if len(found) == LIMIT:
            break
    return found


def _struct(value: Any, known: _Known, *, path: str) -> Iterator[str]:
    if not isinstance(value, dict):
        return
    fields = known.fields
    for key, item in value.items():
        if key not in fields:
            yield f"{path}.{key}" if path else key
            continue
        inside = fields[key]
        if inside is not None and item:
            yield from _value(item, inside, path=f"{path}.{key}" if path else key)


def _value(value: Any, inside: _Inside, *, path: str) -> Iterator[str]:
    if inside.is_list:
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield from _below(item, inside, path=f"{path}[{index}]")
    elif inside.is_map:
        if isinstance(value, dict):
            for key, item in value.items():
                yield from _below(item, inside, path=f"{path}.{key}")
    elif inside.known is not None:
        yield from _struct(value, inside.known, path=path)


def _below(value: Any, inside: _Inside, *, path: str) -> Iterator[str]:
    if inside.item is not None:
        yield from _value(value, inside.item, path=path)
    elif inside.known is not None:
        yield from _struct(value, inside.known, path=path)


@functools.cache
def _of_struct(model: type[msgspec.Struct]) -> _Known:
    info = inspect.type_info(model)
    assert isinstance(info, inspect.StructType), "kinds are structs"
    return _Known({field.encode_name: _of_type(field.type) for field in info.fields})


def _of_type(info: inspect.Type) -> _Inside | None:
    if isinstance(info, inspect.UnionType):
        info = next(each for each in info.types if not isinstance(each, inspect.NoneType))
    match info:
        case inspect.StructType():
            return _Inside(is_list=False, is_map=False, known=_of_struct(info.cls))
        case inspect.VarTupleType():
            return _of_items(info.item_type, is_list=True)
        case inspect.DictType():
            return _of_items(info.value_type, is_list=False)
        case _:
            return None


def _of_items(info: inspect.Type, *, is_list: bool) -> _Inside | None:
    item = _of_type(info)
    if item is None:
        return None
    if item.is_list or item.is_map:
        return _Inside(is_list=is_list, is_map=not is_list, known=None, item=item)
    return _Inside(is_list=is_list, is_map=not is_list, known=item.known)
