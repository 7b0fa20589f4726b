"""Parts of a document that upstream writes even where they are empty, such as ``status: {}`` of a claim.

Go writes a struct that is no pointer whatever is in it, and some empty lists as null; clients compare with that.
Strategies call :func:`fill` on every document that goes into the store.
"""

import functools
from typing import Any, NamedTuple

from drachma.server.schema import model


class _Step(NamedTuple):
    """A field to look into: made where it ``is_filled``, or just visited if there is something to fill below it."""

    name: str
    is_filled: bool
    form: type[model.Object] | type[model.ListOf] | type[model.MapOf]
    below: tuple["_Step", ...]


def fill(document: dict[str, Any], schema: model.Object) -> None:
    """Adds the parts that are missing, in place."""
    _fill(document, _steps(schema))


def _fill(document: dict[str, Any], steps: tuple[_Step, ...]) -> None:
    for name, is_filled, form, below in steps:
        value = document.get(name)
        if value is None:
            if not is_filled:
                continue
            if form is not model.Object:
                document[name] = None
                continue
            value = document[name] = {}
        if not below:
            continue
        if form is model.Object:
            if isinstance(value, dict):
                _fill(value, below)
            continue
        for item in value.values() if isinstance(value, dict) else value:
            if isinstance(item, dict):
                _fill(item, below)


@functools.cache
def _steps(schema: model.Object) -> tuple[_Step, ...]:
    steps = []
    for field in schema.fields.values():
        inner: model.Type = field.type
        while isinstance(inner, model.ListOf | model.MapOf):
            inner = inner.element
        if not isinstance(inner, model.Object):
            continue
        form = type(field.type)
        assert issubclass(form, model.Object | model.ListOf | model.MapOf), "what has objects in it is a container"
        step = _Step(field.name, (field.filled and form is model.Object) or field.nulled, form, _steps(inner))
        if step.is_filled or step.below:
            steps.append(step)
    return tuple(steps)
