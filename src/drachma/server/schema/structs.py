"""Types of complete kinds, read off their structs; the few facts that structs do not carry come from a table.

Structs of other packages (metadata, node selectors, conditions) have the types of the tables under their own names.
"""

import functools

import msgspec
from msgspec import inspect

from drachma.api import meta, struct
from drachma.server.schema import model, notation
from drachma.server.schema.tables import devices
from drachma.values import quantity


class Reader:
    """Makes the types of one package, each struct once. ``known`` gives the types of structs that live elsewhere."""

    def __init__(self, package: str, *, known: notation.Table) -> None:
        self._package = package
        self._known = known
        self._made: dict[type, model.Object] = {}

    def kind(self, shape: type[meta.Object]) -> model.Object:
        """The type of a whole object: its struct, with apiVersion and kind."""
        body = self.object(shape)
        envelope = {name: model.Field(name=name, type=model.STRING) for name in ("apiVersion", "kind")}
        return model.Object(self._package, shape.__name__, {**envelope, **body.fields})

    def object(self, shape: type) -> model.Object:
        if shape not in self._made:
            info = inspect.type_info(shape)
            assert isinstance(info, inspect.StructType)
            fields = {field.encode_name: self._field(shape.__name__, field) for field in info.fields}
            self._made[shape] = model.Object(self._package, shape.__name__, dict(sorted(fields.items())))
        return self._made[shape]

    def _field(self, owner: str, field: inspect.Field) -> model.Field:
        name = field.encode_name
        kind = self._type(field.type)
        plain = model.Field(
            name=name,
            type=kind,
            filled=isinstance(kind, model.Object) and not _is_optional(field),
            nulled=field.default is struct.ZERO_TUPLE,
        )
        fact = _facts().get((owner, name))
        if fact is None:
            return plain
        if isinstance(kind, model.ListOf) and isinstance(fact.type, model.ListOf):
            kind = model.ListOf(kind.element, fact.type.keys)
        return msgspec.structs.replace(fact, type=kind, filled=plain.filled, nulled=plain.nulled)

    def _type(self, info: inspect.Type) -> model.Type:
        match info:
            case inspect.UnionType():
                return self._type(next(each for each in info.types if not isinstance(each, inspect.NoneType)))
            case inspect.StructType(cls=shape):
                return self._known.object(shape.__name__) if _is_elsewhere(shape) else self.object(shape)
            case inspect.DictType(value_type=element):
                return model.MapOf(self._type(element))
            case inspect.VarTupleType(item_type=element):
                return model.ListOf(self._type(element))
            case inspect.IntType(le=limit):
                return model.INT32 if limit == 2**31 - 1 else model.INT64
            case inspect.BoolType():
                return model.BOOLEAN
            case inspect.DateTimeType():
                return model.TIME
            case inspect.CustomType(cls=quantity.Quantity):
                return model.QUANTITY
            case inspect.AnyType():
                return model.RAW
            case inspect.StrType():
                return model.STRING
        raise TypeError(f"no type for {info}")


def _is_optional(field: inspect.Field) -> bool:
    return isinstance(field.type, inspect.UnionType)


def _is_elsewhere(shape: type) -> bool:
    return shape.__module__ in {"drachma.api.meta", "drachma.api.nodeselector"}


@functools.cache
def _facts() -> dict[tuple[str, str], model.Field]:
    table = notation.Table(devices.FACTS, "Condition: type=str*")
    return {(owner, name): fact for owner in table.names() for name, fact in table.object(owner).fields.items()}
