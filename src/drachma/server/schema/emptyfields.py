"""Fields that upstream writes even if they are empty, such as ``status: {}`` of a claim.

Go always writes structs that are not pointers, some zero scalars, and some empty lists and times as null; clients rely
on it. Strategies call :func:`fill` on every document that goes into the store, or :func:`fill_containers` if the
document was encoded from a struct.
"""

from typing import Any, ClassVar, Final

from drachma.api.types import model

_NESTED: Final = (model.ListOf, model.MapOf)


class _Need:
    """True if objects of a type, or of a type below it, have fields to fill."""

    fills_scalars: ClassVar = True

    def __init__(self) -> None:
        self.is_needed = False

    def complete(self, schema: model.Object) -> None:
        # Walks all types itself: the plan of a type that refers back to this one may be incomplete.
        visited: set[model.Object] = set()
        todo = [schema]
        while todo and not self.is_needed:
            each = todo.pop()
            if each not in visited:
                visited.add(each)
                self.is_needed = any(self._is_written(field) for field in each.fields.values())
                inner = (_innermost(field.type) for field in each.fields.values())
                todo.extend(kind for kind in inner if isinstance(kind, model.Object))

    def _is_written(self, field: model.Field) -> bool:
        """Return True if the field is written even if it is empty."""
        if isinstance(field.type, model.Scalar):
            return field.nulled or (self.fills_scalars and field.filled and field.type.name in model.ZEROS)
        return field.nulled or (field.filled and isinstance(field.type, model.Object))


class _ContainerNeed(_Need):
    fills_scalars: ClassVar = False


class _Plan:
    """Fields to fill in objects of a type."""

    need: ClassVar[type[_Need]] = _Need

    def __init__(self) -> None:
        self.objects: list[str] = []
        self.values: list[tuple[str, Any]] = []
        self.below: dict[str, tuple[bool, _Plan]] = {}
        """Fields whose values have plans of their own: whether the field is a map, and the plan."""

    def complete(self, schema: model.Object) -> None:
        for field in schema.fields.values():
            if field.nulled:
                self.values.append((field.name, None))
            elif isinstance(field.type, model.Scalar):
                if self.need.fills_scalars and field.filled and field.type.name in model.ZEROS:
                    self.values.append((field.name, model.ZEROS[field.type.name]))
            elif field.filled and isinstance(field.type, model.Object):
                self.objects.append(field.name)
            inner = _innermost(field.type)
            if isinstance(inner, model.Object) and inner.plan(self.need).is_needed:
                self.below[field.name] = isinstance(field.type, model.MapOf), inner.plan(type(self))


class _ContainerPlan(_Plan):
    need: ClassVar[type[_Need]] = _ContainerNeed


def _innermost(kind: model.Type) -> model.Type:
    while isinstance(kind, _NESTED):
        kind = kind.element
    return kind


def fill(document: dict[str, Any], schema: model.Object) -> None:
    """Add missing fields, in place."""
    _fill(document, schema.plan(_Plan))


def fill_containers(document: dict[str, Any], schema: model.Object) -> None:
    """Like fill(), for documents encoded from structs: those write zero scalars themselves."""
    _fill(document, schema.plan(_ContainerPlan))


def _fill(document: dict[str, Any], plan: _Plan) -> None:
    for name in plan.objects:
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
