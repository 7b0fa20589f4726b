"""Defaults: what a schema says is there where nothing was written, or null where null may not be.

As in :mod:`drachma.validation.structural.pruning` documents are not changed; what stays as it is is shared.
"""

from typing import Any

from drachma.validation.structural.schema import Schema


def default(value: Any, schema: Schema | None) -> Any:
    """A value with the defaults of its schema, at every level that is there once those above are filled in."""
    if schema is None or not schema.has_defaults:
        return value
    kind = value.__class__
    if kind is dict:
        result = dict(value)
        for name, part in schema.properties.items():
            if part.has_default and (name not in result or (result[name] is None and not part.nullable)):
                result[name] = part.default
        for name, each in result.items():
            if name in schema.properties:
                result[name] = default(each, schema.properties[name])
            elif schema.value is not None:
                result[name] = default(_or_default(each, schema.value), schema.value)
        return result
    if kind is list and schema.item is not None:
        return [default(_or_default(each, schema.item), schema.item) for each in value]
    return value


def _or_default(value: Any, schema: Schema) -> Any:
    if value is None and not schema.nullable:
        return schema.default if schema.has_default else None
    return value
