"""Decoding of JSON on the wire into typed objects, lists and events.

There is one :class:`Reader` per target and version. It decodes most answers in one pass into structs. Only an answer
that this pass refuses, such as one with a null where Kubernetes reads absence, is examined value by value. An answer
that still does not decode raises an ``errors.DecodeError`` that names the object and the path.

Objects are read without ``metadata.managedFields``, which are two fifths of an object's JSON and two thirds of its
size in memory, and which no component reads. Objects are decoded into a twin of their type that lacks this field, and
copied from the twin. An update without managedFields leaves them as they are, as upstream does for clients that do not
know them.
"""

import functools
import operator
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

import msgspec
from msgspec import structs

from drachma import errors
from drachma.api import codec, conversion, hooks, meta, shape
from drachma.api.struct import Struct
from drachma.client import protocol, refusal, target

ObjectT = TypeVar("ObjectT", bound=meta.Object)
WireT = TypeVar("WireT")

_SKIPPED: Final = "managed_fields"
_METADATA: Final = "metadata"


def _twin(model: type[Struct], fields: dict[str, Any]) -> Any:
    """Return a type with these fields of a model, by name, some with another type."""
    defined = [
        (field.name, fields[field.name], msgspec.field(default=field.default, name=field.encode_name))
        for field in structs.fields(model)
        if field.name in fields
    ]
    return msgspec.defstruct(f"{model.__name__}Read", defined, bases=(Struct,), frozen=True, kw_only=True)


def _attributes(names: list[str]) -> Callable[[Any], dict[str, Any]]:
    """Return a function that reads some attributes of an object."""
    if len(names) < 2:
        # attrgetter gives a tuple for several names only.
        return lambda twin: {name: getattr(twin, name) for name in names}
    getter = operator.attrgetter(*names)
    return lambda twin: dict(zip(names, getter(twin), strict=True))


_META_FIELDS: Final = {field.name: field.type for field in structs.fields(meta.ObjectMeta) if field.name != _SKIPPED}
_META_TWIN: Final = _twin(meta.ObjectMeta, _META_FIELDS)
_meta_values: Final = _attributes(list(_META_FIELDS))


class ReadForm(Generic[ObjectT]):
    """Form without managedFields in which objects of one type are read; ``decoded`` is the type to decode them into."""

    def __init__(self, model: type[ObjectT]) -> None:
        fields = {field.name: field.type for field in structs.fields(model) if field.name != _METADATA}
        self.decoded: Final = cast(type[Any], _twin(model, {_METADATA: _META_TWIN, **fields}))
        self._model: Final = model
        self._rest: Final = _attributes(list(fields))

    def restore(self, twin: Any) -> ObjectT:
        """Return the object that a twin was decoded from."""
        return self._model(metadata=meta.ObjectMeta(**_meta_values(twin.metadata)), **self._rest(twin))


_ENVELOPE: Final = frozenset({"apiVersion", "kind"})
_CHANGES: Final = {str(change): change for change in protocol.Change}
_ERROR: Final = "ERROR"


class _ListMeta(Struct, frozen=True, kw_only=True):
    resource_version: str = ""
    continue_token: str = msgspec.field(default="", name="continue")
    remaining_item_count: int | None = None


class _List(Struct, Generic[WireT], frozen=True, kw_only=True):
    metadata: _ListMeta = _ListMeta()
    items: tuple[WireT, ...] = ()


class _Event(Struct, Generic[WireT], frozen=True, kw_only=True):
    type: str
    object: WireT


class _Items(Struct, frozen=True, kw_only=True):
    items: tuple[msgspec.Raw, ...] | None = None


class _EventObject(Struct, frozen=True, kw_only=True):
    object: msgspec.Raw


class _Envelope(Struct, frozen=True, kw_only=True):
    kind: str = ""


_split_list: Final = msgspec.json.Decoder(_Items).decode
_split_event: Final = msgspec.json.Decoder(_EventObject).decode
_read_envelope: Final = msgspec.json.Decoder(_Envelope).decode


class BodySource(NamedTuple):
    """Object of an answer; see ``protocol.Source``."""

    data: bytes


class LineSource(NamedTuple):
    """Object of a line of a watch; see ``protocol.Source``."""

    line: bytes

    @property
    def data(self) -> bytes:
        return bytes(_split_event(self.line).object)


class ItemSource(NamedTuple):
    """Item of a list; see ``protocol.Source``."""

    item: msgspec.Raw
    head: bytes

    @property
    def data(self) -> bytes:
        if _read_envelope(self.item).kind:
            return bytes(self.item)
        return self.head + bytes(self.item)[1:]


class PageSources:
    """Items of a page of a list, split when they are iterated."""

    def __init__(self, page: bytes, *, api_version: str, kind: str) -> None:
        self._page: Final = page
        self._head: Final = msgspec.json.encode({"kind": kind, "apiVersion": api_version})[:-1] + b","

    def __iter__(self) -> Iterator[ItemSource]:
        return (ItemSource(item, self._head) for item in _split_list(self._page).items or ())


class Reader(Generic[ObjectT]):
    """Decoder of answers about one resource in one version."""

    def __init__(self, resource: target.Target[ObjectT], version: str) -> None:
        self._target: Final = resource
        self._api_version: Final = resource.api_version(version)
        self._shape: Final[Any] = resource.shape(version)
        self._is_reshaped: Final = resource.is_reshaped(version)
        self._form: Final[ReadForm[Any]] = ReadForm(self._shape)
        self._object: Final = msgspec.json.Decoder(self._form.decoded, dec_hook=hooks.decode)
        self._list: Final[msgspec.json.Decoder[_List[Any]]] = msgspec.json.Decoder(
            _List[self._form.decoded],  # type: ignore[name-defined]
            dec_hook=hooks.decode,
        )
        self._event: Final[msgspec.json.Decoder[_Event[Any]]] = msgspec.json.Decoder(
            _Event[self._form.decoded],  # type: ignore[name-defined]
            dec_hook=hooks.decode,
        )

    def object(self, data: bytes) -> ObjectT:
        """Decode one object."""
        try:
            return self._restore(self._object.decode(data))
        except msgspec.DecodeError:
            return self.convert(document(data, self._target))

    def listing(self, data: bytes) -> protocol.Listing[ObjectT]:
        """Decode a list, or a page of one."""
        try:
            page = self._list.decode(data)
            items = tuple(map(self._restore, page.items))
            metadata = page.metadata
        except msgspec.DecodeError:
            answer = document(data, self._target)
            try:
                metadata = msgspec.convert(answer.get("metadata") or {}, _ListMeta)
            except msgspec.ValidationError as error:
                raise errors.DecodeError(f"list of {self._target.qualified}: metadata: {error}") from None
            items = tuple(map(self.convert, answer.get("items") or ()))
        return protocol.Listing(
            items=items,
            resource_version=metadata.resource_version,
            continue_token=metadata.continue_token,
            remaining=metadata.remaining_item_count,
            sources=PageSources(data, api_version=self._api_version, kind=self._target.kind),
        )

    def event(self, line: bytes) -> protocol.Event[ObjectT]:
        """Decode one line of a watch. A line of type ERROR is raised as the error it stands for."""
        try:
            event = self._event.decode(line)
            kind, decoded = event.type, event.object
        except msgspec.DecodeError:
            answer = document(line, self._target)
            kind, decoded = str(answer.get("type")), answer.get("object")
            if kind != _ERROR:
                decoded = self._loose(decoded)
        if kind == _ERROR:
            raise refusal.error(document(line, self._target)["object"])
        change = _CHANGES.get(kind)
        if change is None:
            raise errors.DecodeError(f"watch of {self._target.qualified}: unknown type of event {kind!r}")
        return protocol.Event(change, self._restore(decoded), LineSource(line))

    def convert(self, content: Any) -> ObjectT:
        """Convert one object from its document. Items of lists may lack their kind."""
        return self._restore(self._loose(content))

    def _loose(self, content: Any) -> Any:
        examined = shape.examine(content, self._shape, allowed_names=_ENVELOPE)
        if examined.mismatches:
            name = codec.title({"kind": self._target.kind, **content} if isinstance(content, dict) else content)
            raise errors.DecodeError(f"{name} in {self._api_version}: " + "; ".join(map(str, examined.mismatches)))
        return msgspec.convert(examined.document, self._form.decoded, dec_hook=hooks.decode)

    def _restore(self, decoded: Any) -> ObjectT:
        restored: ObjectT = self._form.restore(decoded)
        return cast(ObjectT, conversion.to_memory(restored)) if self._is_reshaped else restored


def document(data: bytes, resource: target.Target[Any]) -> dict[str, Any]:
    """Decode an answer that is a JSON object."""
    try:
        content = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise errors.DecodeError(f"answer about {resource.qualified}: not JSON: {error}") from None
    if not isinstance(content, dict):
        problem = f"expected an object, found {shape.describe(content)}"
        raise errors.DecodeError(f"answer about {resource.qualified}: {problem}")
    return content


def reader(resource: target.Target[ObjectT], version: str) -> Reader[ObjectT]:
    """Return the reader of a target in a version, made once."""
    return cast(Reader[ObjectT], _reader(resource, version))


@functools.lru_cache(maxsize=256)
def _reader(resource: target.Target[Any], version: str) -> Reader[Any]:
    return Reader(resource, version)
