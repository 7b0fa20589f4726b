"""From JSON on the wire to typed objects, lists and events.

There is one :class:`Reader` per target and version. The usual answer is decoded in one pass straight into structs,
without managedFields (:mod:`drachma.client.readform`); only what this refuses (a null where Kubernetes reads absence)
is looked at value by value. What makes no sense is an
``errors.DecodeError`` that names the object and the path.
"""

import functools
from typing import Any, Final, Generic, TypeVar, cast

import msgspec

from drachma import errors
from drachma.api import codec, conversion, hooks, meta, shape
from drachma.api.struct import Struct
from drachma.client import protocol, readform, refusal, target

ObjectT = TypeVar("ObjectT", bound=meta.Object)
WireT = TypeVar("WireT")

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


class Reader(Generic[ObjectT]):
    """Reads the answers about one resource in one version."""

    def __init__(self, of: target.Target[ObjectT], version: str) -> None:
        self._target: Final = of
        self._api_version: Final = of.api_version(version)
        self._shape: Final[Any] = of.shape(version)
        self._is_reshaped: Final = of.is_reshaped(version)
        self._form: Final[readform.ReadForm[Any]] = readform.ReadForm(self._shape)
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
        """One object."""
        try:
            return self._to_memory(self._object.decode(data))
        except msgspec.DecodeError:
            return self.convert(document(data, self._target))

    def listing(self, data: bytes) -> protocol.Listing[ObjectT]:
        """A list, or a page of one."""
        try:
            page = self._list.decode(data)
            items = tuple(map(self._to_memory, page.items))
            metadata = page.metadata
        except msgspec.DecodeError:
            whole = document(data, self._target)
            try:
                metadata = msgspec.convert(whole.get("metadata") or {}, _ListMeta)
            except msgspec.ValidationError as error:
                raise errors.DecodeError(f"list of {self._target.qualified}: metadata: {error}") from None
            items = tuple(map(self.convert, whole.get("items") or ()))
        return protocol.Listing(
            items=items,
            resource_version=metadata.resource_version,
            continue_token=metadata.continue_token,
            remaining=metadata.remaining_item_count,
        )

    def event(self, line: bytes) -> protocol.Event[ObjectT]:
        """One line of a watch; one of type ERROR is raised as the error it stands for."""
        try:
            event = self._event.decode(line)
            kind, decoded = event.type, event.object
        except msgspec.DecodeError:
            whole = document(line, self._target)
            kind, decoded = str(whole.get("type")), whole.get("object")
            if kind != _ERROR:
                decoded = self._loose(decoded)
        if kind == _ERROR:
            raise refusal.error(document(line, self._target)["object"])
        change = _CHANGES.get(kind)
        if change is None:
            raise errors.DecodeError(f"watch of {self._target.qualified}: unknown type of event {kind!r}")
        return protocol.Event(change, self._to_memory(decoded))

    def convert(self, content: Any) -> ObjectT:
        """One object from its document; items of lists need not say their kind."""
        return self._to_memory(self._loose(content))

    def _loose(self, content: Any) -> Any:
        examined = shape.examine(content, self._shape, known=_ENVELOPE)
        if examined.mismatches:
            name = codec.title({"kind": self._target.kind, **content} if isinstance(content, dict) else content)
            raise errors.DecodeError(f"{name} in {self._api_version}: " + "; ".join(map(str, examined.mismatches)))
        return msgspec.convert(examined.document, self._form.decoded, dec_hook=hooks.decode)

    def _to_memory(self, decoded: Any) -> ObjectT:
        restored = self._form.restore(decoded)
        return cast(ObjectT, conversion.to_memory(restored) if self._is_reshaped else restored)


def document(data: bytes, about: target.Target[Any]) -> dict[str, Any]:
    """The JSON object that an answer consists of."""
    try:
        content = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise errors.DecodeError(f"answer about {about.qualified}: not JSON: {error}") from None
    if not isinstance(content, dict):
        problem = f"expected an object, found {shape.describe(content)}"
        raise errors.DecodeError(f"answer about {about.qualified}: {problem}")
    return content


def reader(of: target.Target[ObjectT], version: str) -> Reader[ObjectT]:
    """The reader of a target in a version, made once."""
    return cast(Reader[ObjectT], _reader(of, version))


@functools.lru_cache(maxsize=256)
def _reader(of: target.Target[Any], version: str) -> Reader[Any]:
    return Reader(of, version)
