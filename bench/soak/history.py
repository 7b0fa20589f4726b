"""History of a cluster as an observer outside it saw it: watch events and acknowledged writes.

A history is kept as gzipped JSON lines, so that the invariants can be checked again later without the cluster.
"""

from __future__ import annotations

import gzip
import pathlib
from collections.abc import Iterator
from typing import Any

import msgspec

METADATA_FIELDS = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "deletionTimestamp",
    "ownerReferences",
    "labels",
    "finalizers",
)
"""Metadata that the invariants or a human reader need; managedFields are most of an object otherwise."""


class Event(msgspec.Struct, frozen=True, tag_field="entry", tag="event"):
    """One watch event: ``ADDED``, ``MODIFIED`` or ``DELETED``, or ``LISTED`` for an object found by a list."""

    kind: str
    type: str
    document: dict[str, Any]
    seconds: float = 0.0

    @property
    def uid(self) -> str:
        return str(self.document["metadata"]["uid"])

    @property
    def revision(self) -> int:
        return int(self.document["metadata"]["resourceVersion"])


class Gap(msgspec.Struct, frozen=True, tag_field="entry", tag="gap"):
    """Revisions of a kind that the observer could not see, up to the revision of its next list."""

    kind: str
    revision: int
    seconds: float = 0.0


class Write(msgspec.Struct, frozen=True, tag_field="entry", tag="write"):
    """Create or change that the server acknowledged with a revision."""

    kind: str
    uid: str
    revision: int
    seconds: float = 0.0


class Delete(msgspec.Struct, frozen=True, tag_field="entry", tag="delete"):
    """Deletion that the server acknowledged."""

    kind: str
    uid: str
    seconds: float = 0.0


class Mark(msgspec.Struct, frozen=True, tag_field="entry", tag="mark"):
    """Remark about the run: the beginning or end of a fault, or a violation."""

    text: str
    seconds: float = 0.0


Entry = Event | Gap | Write | Delete | Mark


class HistoryFile:
    """Writer of a history."""

    def __init__(self, path: pathlib.Path) -> None:
        self._file = gzip.open(path, "wb", compresslevel=1)  # noqa: SIM115
        self._encoder = msgspec.json.Encoder()

    def add(self, entry: Entry) -> None:
        self._file.write(self._encoder.encode(entry) + b"\n")
        if isinstance(entry, Mark):
            # What led to a fault or violation can be read even if the run ends early.
            self._file.flush()

    def close(self) -> None:
        self._file.close()


def read_history(path: pathlib.Path) -> Iterator[Entry]:
    """Yield the entries of a history file in the order in which they were recorded."""
    decoder = msgspec.json.Decoder(Entry)
    with gzip.open(path, "rb") as file:
        for line in file:
            yield decoder.decode(line)


def reduce_document(document: dict[str, Any]) -> dict[str, Any]:
    """Return the part of an object that a history keeps."""
    metadata = {name: document["metadata"][name] for name in METADATA_FIELDS if name in document["metadata"]}
    reduced: dict[str, Any] = {"metadata": metadata}
    spec = document.get("spec", {})
    kept = {name: spec[name] for name in ("nodeName", "suspend", "resourceGroups", "cohortName") if name in spec}
    if kept:
        reduced["spec"] = kept
    if "status" in document:
        reduced["status"] = document["status"]
    return reduced
