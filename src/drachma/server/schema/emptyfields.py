"""Parts of a document that upstream writes even where they are empty, such as ``status: {}`` of a claim.

Go writes a struct that is no pointer whatever is in it, some scalars although they are zero, and some empty lists and
times as null; clients compare with that. Strategies call :func:`fill` on every document that goes into the store.
"""

from typing import Any, Final

from drachma.server.schema import model

_NESTED: Final = (model.ListOf, model.MapOf)


class _Plan:
    """What to do to objects of a type: objects to make, values for missing fields, and fields to look into."""

    __slots__ = ("below", "made", "values")

    def __init__(self) -> None:
        self.made: list[str] = []
        self.values: list[tuple[str, Any]] = []
        self.below: dict[str, tuple[bool, _Plan]] = {}
        """For each field whether it is a map, and the plan for what is in it."""

    def complete(self, schema: model.Object) -> None:
        for field in schema.fields.values():
            if field.nulled:
                self.values.append((field.name, None))
            elif isinstance(field.type, model.Scalar):
                if field.filled and field.type.name in model.ZEROS:
                    self.values.append((field.name, model.ZEROS[field.type.name]))
            elif field.filled and isinstance(field.type, model.Object):
                self.made.append(field.name)
            inner = _innermost(field.type)
            if isinstance(inner, model.Object) and inner.plan(_Need).is_needed:
                self.below[field.name] = isinstance(field.type, model.MapOf), inner.plan(_Plan)


class _Need:
    """Whether there is anything to fill in objects of a type, or in anything below them."""

    __slots__ = ("is_needed",)

    def __init__(self) -> None:
        self.is_needed = False

    def complete(self, schema: model.Object) -> None:
        # Not by asking the types below: one that refers back to this one could not answer yet.
        seen: set[model.Object] = set()
        todo = [schema]
        while todo and not self.is_needed:
            each = todo.pop()
            if each not in seen:
                seen.add(each)
                self.is_needed = any(_is_written(field) for field in each.fields.values())
                inner = (_innermost(field.type) for field in each.fields.values())
                todo.extend(kind for kind in inner if isinstance(kind, model.Object))


def _is_written(field: model.Field) -> bool:
    """Whether the field is there even where it is empty."""
    if isinstance(field.type, model.Scalar):
        return field.nulled or (field.filled and field.type.name in model.ZEROS)
    return field.nulled or (field.filled and isinstance(field.type, model.Object))


def _innermost(kind: model.Type) -> model.Type:
    while isinstance(kind, _NESTED):
        kind = kind.element
    return kind


def fill(document: dict[str, Any], schema: model.Object) -> None:
    """Adds the parts that are missing, in place."""
    _fill(document, schema.plan(_Plan))


def _fill(document: dict[str, Any], plan: _Plan) -> None:
    for name in plan.made:
        if name not in document or document[name] is None:
            document[name] = {}
    for name, value in plan.values:
        if name not in document:
            document[name] = value
    below = plan.below
    for name in below:
        if name not in document:
            continue
        is_map, inner = below[name]
        value = document[name]
        kind = value.__class__
        if kind is dict and not is_map:
            _fill(value, inner)
        elif is_map or kind is list:
            for item in value.values() if kind is dict else value or ():
                if item.__class__ is dict:
                    _fill(item, inner)
