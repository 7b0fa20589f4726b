"""From JSON on the wire to typed objects, lists and events.

There is one :class:`Reader` per target and version. The usual answer is decoded in one pass straight into structs;
only what this refuses (a null where Kubernetes reads absence) is looked at value by value. What makes no sense is an
``errors.DecodeError`` that names the object and the path.
"""

import functools
from typing import Any, Final, Generic, TypeVar, cast

import msgspec

from drachma import errors
from drachma.api import codec, conversion, hooks, meta, shape
from drachma.api.struct import Struct
from drachma.client import protocol, refusal, target

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

    def __init__(self, wanted: target.Target[ObjectT], version: str) -> None:
        self._target: Final = wanted
        self._api_version: Final = wanted.api_version(version)
        self._shape: Final[Any] = wanted.shape(version)
        self._is_reshaped: Final = wanted.is_reshaped(version)
        self._object: Final = msgspec.json.Decoder(self._shape, dec_hook=hooks.decode)
        self._list: Final[msgspec.json.Decoder[_List[Any]]] = msgspec.json.Decoder(
            _List[self._shape],  # type: ignore[name-defined]
            dec_hook=hooks.decode,
        )
        self._event: Final[msgspec.json.Decoder[_Event[Any]]] = msgspec.json.Decoder(
            _Event[self._shape],  # type: ignore[name-defined]
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
            found = self._list.decode(data)
            items = tuple(map(self._to_memory, found.items)) if self._is_reshaped else found.items
            metadata = found.metadata
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
            found = self._event.decode(line)
            kind, decoded = found.type, found.object
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

    def convert(self, given: Any) -> ObjectT:
        """One object from its document; items of lists need not say their kind."""
        return self._to_memory(self._loose(given))

    def _loose(self, given: Any) -> Any:
        examined = shape.examine(given, self._shape, known=_ENVELOPE)
        if examined.mismatches:
            name = codec.title({"kind": self._target.kind, **given} if isinstance(given, dict) else given)
            raise errors.DecodeError(f"{name} in {self._api_version}: " + "; ".join(map(str, examined.mismatches)))
        return msgspec.convert(examined.document, self._shape, dec_hook=hooks.decode)

    def _to_memory(self, decoded: Any) -> ObjectT:
        return cast(ObjectT, conversion.to_memory(decoded)) if self._is_reshaped else decoded


def document(data: bytes, wanted: target.Target[Any]) -> dict[str, Any]:
    """The JSON object that an answer consists of."""
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise errors.DecodeError(f"answer about {wanted.qualified}: not JSON: {error}") from None
    if not isinstance(found, dict):
        raise errors.DecodeError(f"answer about {wanted.qualified}: expected an object, found {shape.describe(found)}")
    return found


def reader(wanted: target.Target[ObjectT], version: str) -> Reader[ObjectT]:
    """The reader of a target in a version, made once."""
    return cast(Reader[ObjectT], _reader(wanted, version))


@functools.lru_cache(maxsize=256)
def _reader(wanted: target.Target[Any], version: str) -> Reader[Any]:
    return Reader(wanted, version)
