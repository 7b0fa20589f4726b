"""Pruning: removal of fields that a schema does not have, and of nulls that it does not allow.

Everything here makes new documents and leaves the given ones alone; what is not changed is shared.
"""

from typing import Any, Final

from drachma.validation.structural.schema import Schema

_META: Final = frozenset({"apiVersion", "kind", "metadata"})


def prune(value: Any, schema: Schema, *, is_resource: bool = False) -> tuple[Any, list[str]]:
    """Return a value without the fields that its schema does not have, and the sorted paths of these fields.

    Of a resource apiVersion, kind and metadata stay as they are, whatever the schema says.
    """
    dropped: list[str] = []
    pruned = _prune(value, schema.resource_schema if is_resource else schema, dropped, path="")
    return pruned, sorted(dropped)


def _prune(value: Any, schema: Schema | None, dropped: list[str], *, path: str) -> Any:
    kind = value.__class__
    if kind is dict:
        return _fields(value, schema, dropped, path=path)
    if kind is list:
        if schema is not None and schema.preserves_unknown_fields:
            # Items of a list that keeps unknown fields keep theirs, whatever their own schema says.
            item, keep = schema.item, _keep
        else:
            item, keep = schema.item if schema is not None else None, _prune
        return [keep(each, item, dropped, path=f"{path}[{index}]") for index, each in enumerate(value)]
    return value


def _fields(value: dict[str, Any], schema: Schema | None, dropped: list[str], *, path: str) -> dict[str, Any]:
    if schema is None:
        dropped.extend(_below(path, name) for name in value)
        return {}
    properties, keeps = schema.properties, bool(schema.preserves_unknown_fields)
    result = {}
    for name, each in value.items():
        if schema.is_embedded_resource and name in _META:
            result[name] = each
            continue
        part = properties.get(name)
        if part is not None:
            result[name] = _prune(each, part, dropped, path=_below(path, name))
        elif schema.allows_any_name:
            result[name] = _prune(each, schema.value, dropped, path=_below(path, name))
        elif keeps:
            result[name] = each
        elif name not in _META or path:
            dropped.append(_below(path, name))
    return result


def _keep(value: Any, schema: Schema | None, dropped: list[str], *, path: str) -> Any:
    """Prune below a schema that keeps unknown fields: only parts that the structure describes are visited."""
    if schema is None:
        return value
    if value.__class__ is list:
        return [_keep(each, schema.item, dropped, path=f"{path}[{index}]") for index, each in enumerate(value)]
    if value.__class__ is dict:
        keeping = schema if schema.preserves_unknown_fields else schema.changed(preserves_unknown_fields=True)
        return _fields(value, keeping, dropped, path=path)
    return value


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def drop_nulls(value: Any, schema: Schema | None) -> Any:
    """Return a value without null fields that are not nullable and have no default."""
    kind = value.__class__
    if kind is dict:
        result: dict[str, Any] = {}
        for name, each in value.items():
            part = schema.field(name) if schema is not None else None
            if each is None:
                if part is None or part.nullable or part.has_default:
                    result[name] = each
            else:
                result[name] = drop_nulls(each, part) if each.__class__ in (dict, list) else each
        return result
    if kind is list:
        item = schema.item if schema is not None else None
        return [drop_nulls(each, item) if each.__class__ in (dict, list) else each for each in value]
    return value
