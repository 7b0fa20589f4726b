"""Documents in files and folders of manifests, or on standard input: the values of ``-f`` options."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import structs

from drachma import errors
from drachma.api import manifest, meta, shape

SUFFIXES: Final = (".json", ".yaml", ".yml")
DEFAULT_NAMESPACE: Final = "default"

ObjectT = TypeVar("ObjectT", bound=meta.Object)


class Source(NamedTuple):
    """Document of one object, and the place it was read from, for messages."""

    place: str
    content: Any


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
        documents = manifest.read(data, max_bytes=max_bytes)
    except OSError as error:
        yield Unreadable(name, error.strerror or str(error))
    except errors.DecodeError as error:
        yield Unreadable(name, str(error))
    else:
        for document in documents:
            yield from _members(f"{name}: document {document.number}", document.content)


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
