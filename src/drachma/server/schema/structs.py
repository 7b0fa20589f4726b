"""Types of complete kinds, read off their structs; the few facts that structs do not carry come in the notation.

Structs of other packages (metadata, node selectors, conditions) have the types of those under their own names.
"""

import msgspec
from msgspec import inspect

from drachma.api import meta, struct
from drachma.server.schema import model, notation
from drachma.values import quantity


class Reader:
    """Makes the types of one version of a group, each struct once.

    ``facts`` has what structs do not say, under the names of their types: only marks and list types count there. It
    also has the field numbers and descriptions. ``elsewhere`` gives the types of structs of other packages.
    """

    def __init__(self, package: str, *, facts: notation.Types, elsewhere: notation.Types) -> None:
        self._package = package
        self._facts = facts
        self._elsewhere = elsewhere
        self._made: dict[type, model.Object] = {}

    def kind(self, shape: type[meta.Object]) -> model.Object:
        """The type of a whole object: its struct, with apiVersion and kind."""
        body = self.object(shape)
        envelope = {name: model.Field(name=name, type=model.STRING) for name in ("apiVersion", "kind")}
        return body.replaced({**envelope, **body.fields})

    def object(self, shape: type) -> model.Object:
        if shape not in self._made:
            info = inspect.type_info(shape)
            assert isinstance(info, inspect.StructType)
            name = shape.__name__
            fields: dict[str, model.Field] = {}
            self._made[shape] = model.Object(
                self._package,
                name,
                fields,
                message=self._facts.message(name),
                description=self._facts.descriptions.of_type(name),
            )
            # Known before its fields are, because it may refer to itself.
            for field in sorted(info.fields, key=lambda each: each.encode_name):
                fields[field.encode_name] = self._field(name, field)
        return self._made[shape]

    def _field(self, owner: str, field: inspect.Field) -> model.Field:
        name = field.encode_name
        kind = self._type(field.type)
        plain = model.Field(
            name=name,
            type=kind,
            filled=isinstance(kind, model.Object) and not _is_optional(field),
            nulled=field.default is struct.ZERO_TUPLE,
            description=self._facts.descriptions.of_field(owner, name),
        )
        fact = self._facts.object(owner).fields.get(name) if owner in self._facts else None
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
                return self._elsewhere.object(shape.__name__) if _is_elsewhere(shape) else self.object(shape)
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
