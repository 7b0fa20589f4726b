"""The form in which typed objects are read: that of the API, without ``metadata.managedFields``.

Who owns which field is two fifths of an object's JSON and two thirds of its size in memory, and no component reads it.
So it is skipped, not decoded and thrown away: objects are decoded into a twin of their type that has no such field,
and put together from it. An update that leaves managedFields out changes nothing about them, as upstream has it for
clients that do not know them; who wants to see them reads the document. Called by :mod:`drachma.client.wire`.
"""

import operator
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, cast

import msgspec
from msgspec import structs

from drachma.api import meta
from drachma.api.struct import Struct

ObjectT = TypeVar("ObjectT", bound=meta.Object)

_SKIPPED: Final = "managed_fields"
_METADATA: Final = "metadata"


def _twin(model: type[Struct], fields: dict[str, Any]) -> Any:
    """A type with these fields of a model, by name, some with another type."""
    defined = [
        (field.name, fields[field.name], msgspec.field(default=field.default, name=field.encode_name))
        for field in structs.fields(model)
        if field.name in fields
    ]
    return msgspec.defstruct(f"{model.__name__}Read", defined, bases=(Struct,), frozen=True, kw_only=True)


def _values(names: list[str]) -> Callable[[Any], dict[str, Any]]:
    """Reads some attributes of an object."""
    if len(names) < 2:
        # attrgetter gives a tuple for several names only.
        return lambda twin: {name: getattr(twin, name) for name in names}
    getter = operator.attrgetter(*names)
    return lambda twin: dict(zip(names, getter(twin), strict=True))


_META_FIELDS: Final = {field.name: field.type for field in structs.fields(meta.ObjectMeta) if field.name != _SKIPPED}
_META_TWIN: Final = _twin(meta.ObjectMeta, _META_FIELDS)
_meta_values: Final = _values(list(_META_FIELDS))


class ReadForm(Generic[ObjectT]):
    """How objects of one type are read; ``decoded`` is the type to decode them into."""

    def __init__(self, model: type[ObjectT]) -> None:
        rest = {field.name: field.type for field in structs.fields(model) if field.name != _METADATA}
        self.decoded: Final = cast(type[Any], _twin(model, {_METADATA: _META_TWIN, **rest}))
        self._model: Final = model
        self._rest: Final = _values(list(rest))

    def restore(self, twin: Any) -> ObjectT:
        """The object of which a twin was decoded."""
        return self._model(metadata=meta.ObjectMeta(**_meta_values(twin.metadata)), **self._rest(twin))
