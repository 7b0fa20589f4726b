"""Documents in files and folders of manifests, or on standard input: the values of ``-f`` options."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import structs

from drachma import errors
from drachma.api import codec, manifest, meta, shape

SUFFIXES: Final = (".json", ".yaml", ".yml")
DEFAULT_NAMESPACE: Final = "default"

_LARGE_BYTES: Final = 1024 * 1024
"""Size of a file from which its members are decoded one by one, and only if they matter."""

ObjectT = TypeVar("ObjectT", bound=meta.Object)


class Source:
    """Document of one object, and the place it was read from, for messages.

    The members of a large list are decoded only when they are asked for.
    """

    __slots__ = ("_content", "_json", "api_version", "kind", "place")

    def __init__(self, place: str, content: Any) -> None:
        head = content if isinstance(content, dict) else {}
        self.place: Final = place
        self.api_version: str = _text(head.get("apiVersion"))
        """Its apiVersion; empty if it has none."""
        self.kind: str = _text(head.get("kind"))
        """Its kind; empty if it has none."""
        self._content: Any = content
        self._json: bytes | None = None

    @classmethod
    def of_json(cls, place: str, text: bytes, *, api_version: str, kind: str) -> Source:
        """Return the source of an object as JSON, which is known to be well-formed."""
        source = cls(place, None)
        source.api_version, source.kind, source._json = api_version, kind, text
        return source

    @property
    def content(self) -> Any:
        """Content of the document."""
        if self._content is None and self._json is not None:
            self._content = msgspec.json.decode(self._json)
        return self._content

    def decode(self) -> meta.Object:
        """Return the object of the document in its v1 form. Raises DecodeError."""
        if self._json is None:
            return codec.decode(self.content)
        return codec.decode_json_of(self._json, self.api_version, self.kind)

    def has_uid(self) -> bool:
        """Return True if a server has stored the object."""
        if self._json is not None and self._content is None:
            with contextlib.suppress(msgspec.ValidationError):
                return bool(_named_decoder.decode(self._json).metadata.uid)
        return bool((self.content.get("metadata") or {}).get("uid"))

    def replace_content(self, content: Any) -> Source:
        """Return the source of another content from the same place."""
        return Source(self.place, content)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


class _Metadata(msgspec.Struct, frozen=True):
    uid: str | None = None


class _Named(msgspec.Struct):
    metadata: _Metadata = _Metadata()


class _Head(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str


class _List(msgspec.Struct, rename="camel"):
    kind: str
    items: list[msgspec.Raw]


_named_decoder: Final = msgspec.json.Decoder(_Named)
_head_decoder: Final = msgspec.json.Decoder(_Head)
_list_decoder: Final = msgspec.json.Decoder(_List)


class Unreadable(NamedTuple):
    """Place without readable documents, and the problem."""

    place: str
    problem: str

    def __str__(self) -> str:
        return f"{self.place}: {self.problem}"


def read(paths: list[str], *, max_bytes: int = manifest.MAX_BYTES) -> Iterator[Source | Unreadable]:
    """Yield every object in these files, in order, with the members of Lists one by one. Problems are values too."""
    for path in paths:
        for file in _files(path):
            if isinstance(file, Unreadable):
                yield file
            else:
                yield from _documents(file, max_bytes)


def read_all(paths: list[str]) -> list[Source]:
    """Return every object in these files. Raises DecodeError for the first problem."""
    sources: list[Source] = []
    for source in read(paths):
        if isinstance(source, Unreadable):
            raise errors.DecodeError(str(source))
        sources.append(source)
    return sources


def _files(path: str) -> Iterator[Path | Unreadable | None]:
    if path == "-":
        yield None
        return
    file = Path(path)
    if not file.is_dir():
        yield file
        return
    files = sorted(each for each in file.rglob("*") if each.suffix in SUFFIXES and each.is_file())
    if files:
        yield from files
    else:
        yield Unreadable(path, f"the folder has no manifest ({', '.join(SUFFIXES)})")


def _documents(file: Path | None, max_bytes: int) -> Iterator[Source | Unreadable]:
    name = "standard input" if file is None else str(file)
    try:
        if file is None:
            data = sys.stdin.buffer.read(max_bytes + 1)
        else:
            with file.open("rb") as opened:
                data = opened.read(max_bytes + 1)
        if len(data) > max_bytes:
            size = "more" if file is None else f"{file.stat().st_size}"
            raise errors.DecodeError(f"has {size} bytes: must have at most {max_bytes}")
        members = _read_large_list(data, name)
        documents = [] if members is not None else manifest.read(data, max_bytes=max_bytes)
    except OSError as error:
        yield Unreadable(name, error.strerror or str(error))
    except errors.DecodeError as error:
        yield Unreadable(name, str(error))
    else:
        yield from members or ()
        for document in documents:
            yield from _members(f"{name}: document {document.number}", document.content)


def _read_large_list(data: bytes, name: str) -> list[Source] | None:
    """Return the members of a ``v1`` List that a program has written as JSON; None for anything else.

    Duplicate keys are not looked for. A file of this size has more objects than people write by hand.
    """
    if len(data) < _LARGE_BYTES or not data.startswith(b"{"):
        return None
    try:
        content = _list_decoder.decode(data)
        heads = [_head_decoder.decode(item) for item in content.items]
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if content.kind != "List":
        return None
    return [
        Source.of_json(f"{name}: document 1, items[{index}]", bytes(item), api_version=head.api_version, kind=head.kind)
        for index, (item, head) in enumerate(zip(content.items, heads, strict=True))
    ]


def _members(place: str, content: Any) -> Iterator[Source | Unreadable]:
    """Yield the members of a ``v1`` List or a list of a kind (``ResourceClaimList``), or the document itself."""
    kind = content.get("kind") if isinstance(content, dict) else None
    if not isinstance(kind, str) or not kind.endswith("List") or "items" not in content:
        yield Source(place, content)
        return
    items = content["items"]
    if not isinstance(items, list):
        yield Unreadable(place, f"items: expected a list, found {shape.describe(items)}")
        return
    inherited = {"apiVersion": content.get("apiVersion"), "kind": kind[: -len("List")]} if kind != "List" else {}
    for index, item in enumerate(items):
        member = {**inherited, **item} if isinstance(item, dict) else item
        yield Source(f"{place}, items[{index}]", member)


def with_namespace(decoded: ObjectT) -> ObjectT:
    """Return a namespaced object with the namespace "default" if its manifest names none."""
    if decoded.metadata.namespace:
        return decoded
    return structs.replace(decoded, metadata=structs.replace(decoded.metadata, namespace=DEFAULT_NAMESPACE))
