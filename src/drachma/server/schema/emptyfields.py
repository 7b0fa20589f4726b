"""Parts of a document that upstream writes even where they are empty, such as ``status: {}`` of a claim.

Go writes a struct that is no pointer whatever is in it, some scalars although they are zero, and some empty lists and
times as null; clients compare with that. Strategies call :func:`fill` on every document that goes into the store.
"""

import functools
from typing import Any, Final, NamedTuple

from drachma.server.schema import model

_NESTED: Final = (model.ListOf, model.MapOf)


class _Plan(NamedTuple):
    """What to do to objects of a type: objects to make, values for missing fields, and fields to look into."""

    made: tuple[str, ...]
    values: tuple[tuple[str, Any], ...]
    below: dict[str, tuple[bool, "_Plan"]]
    """For each field whether it is a map, and the plan for what is in it."""


def fill(document: dict[str, Any], schema: model.Object) -> None:
    """Adds the parts that are missing, in place."""
    _fill(document, _plan(schema))


def _fill(document: dict[str, Any], plan: _Plan) -> None:
    made, values, below = plan
    for name in made:
        if name not in document or document[name] is None:
            document[name] = {}
    for name, value in values:
        if name not in document:
            document[name] = value
    if not below:
        return
    for name, value in document.items():
        if name not in below:
            continue
        is_map, inner = below[name]
        if isinstance(value, dict) and not is_map:
            _fill(value, inner)
        elif is_map or isinstance(value, list):
            for item in value.values() if isinstance(value, dict) else value or ():
                if isinstance(item, dict):
                    _fill(item, inner)


@functools.cache
def _plan(schema: model.Object) -> _Plan:
    values, made, below = [], [], {}
    for field in schema.fields.values():
        inner: model.Type = field.type
        while isinstance(inner, _NESTED):
            inner = inner.element
        if field.nulled:
            values.append((field.name, None))
        elif isinstance(field.type, model.Scalar):
            if field.filled and field.type.name in model.ZEROS:
                values.append((field.name, model.ZEROS[field.type.name]))
        elif field.filled and isinstance(field.type, model.Object):
            made.append(field.name)
        if isinstance(inner, model.Object) and any(_plan(inner)):
            below[field.name] = isinstance(field.type, model.MapOf), _plan(inner)
    return _Plan(tuple(made), tuple(values), below)
