"""Claims that a driver has begun to prepare or has prepared, in a file that survives its processes.

The file is read again whenever another process wrote it, as during a rolling update; a writer holds the lock
between instances. Newer versions of it may have fields that are not known here. A file that makes no sense is put
aside: then it is not known what was begun, and drivers are asked to undo whatever they are told to.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import os
import pathlib
from collections.abc import Mapping
from typing import Final, Literal

import msgspec

from drachma.driver.plugin.contract import ClaimReference, PreparedDevice
from drachma.nodewire import wholefile
from drachma.nodewire.deviceuse import DeviceUse

_log = logging.getLogger(__name__)

VERSION: Final = 1
NAME: Final = "checkpoint.json"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A claim whose preparation began, in the boot of the machine that is named.

    ``allocation`` tells which allocation it was about, ``uses`` are its devices, and ``files`` what was written, by
    path with a digest of the content.
    """

    namespace: str
    name: str
    uid: str
    boot_id: str
    allocation: str
    state: Literal["begun", "prepared"] = "begun"
    uses: tuple[DeviceUse, ...] = ()
    devices: tuple[PreparedDevice, ...] = ()
    files: Mapping[str, str] = {}

    @property
    def reference(self) -> ClaimReference:
        return ClaimReference(self.namespace, self.name, self.uid)


class _File(msgspec.Struct, frozen=True):
    version: int
    checksum: str
    claims: str


_entries = msgspec.json.Decoder(tuple[Entry, ...])
_file = msgspec.json.Decoder(_File)


class Checkpoint:
    """The file in a driver's directory."""

    def __init__(self, directory: pathlib.Path) -> None:
        self._path: Final = directory / NAME
        self._entries: dict[str, Entry] = {}
        self._signature: tuple[int, int, int] | None = None
        self.is_lost = False
        """True if a damaged file was put aside: this one may lack claims."""

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, uid: str) -> Entry | None:
        """Return the entry of a claim, or None."""
        self._load()
        return self._entries.get(uid)

    def entries(self) -> tuple[Entry, ...]:
        """Return all entries."""
        self._load()
        return tuple(self._entries.values())

    def put(self, entry: Entry) -> None:
        """Keeps an entry: that a claim is begun for good, that it is prepared until the machine crashes.

        After that it has to be prepared again in any case, as for an entry that was only begun.
        """
        self._load()
        durability = wholefile.Durability.LASTING if entry.state == "begun" else wholefile.Durability.WHOLE
        self._save({**self._entries, entry.uid: entry}, durability)

    def remove(self, uid: str) -> None:
        """Forgets a claim, for good."""
        self._load()
        if uid in self._entries:
            entries = {key: entry for key, entry in self._entries.items() if key != uid}
            self._save(entries, wholefile.Durability.LASTING)

    def _load(self) -> None:
        try:
            state = self._path.stat()
        except FileNotFoundError:
            self._entries, self._signature = {}, None
            return
        signature = _signature(state)
        if signature == self._signature:
            return
        try:
            self._entries = _read(self._path.read_bytes())
        except (msgspec.DecodeError, ValueError) as error:
            self._put_aside(str(error))
            return
        self._signature = signature

    def _save(self, entries: dict[str, Entry], durability: wholefile.Durability) -> None:
        claims = msgspec.json.encode(tuple(entries.values())).decode()
        content = msgspec.json.encode(_File(VERSION, _digest(claims), claims))
        wholefile.write(self._path, content, mode=0o600, durability=durability)
        self._entries, self._signature = entries, _signature(self._path.stat())

    def _put_aside(self, problem: str) -> None:
        paths = (self._path.with_name(f"{NAME}.damaged-{number}") for number in itertools.count(1))
        aside = next(path for path in paths if not path.exists())
        self._path.rename(aside)
        _log.error("checkpoint %s: %s; put aside as %s", self._path, problem, aside.name)
        self.is_lost = True
        self._entries, self._signature = {}, None


def _read(content: bytes) -> dict[str, Entry]:
    file = _file.decode(content)
    if file.checksum != _digest(file.claims):
        raise ValueError("the checksum does not fit its content")
    return {entry.uid: entry for entry in _entries.decode(file.claims)}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _signature(state: os.stat_result) -> tuple[int, int, int]:
    return state.st_ino, state.st_mtime_ns, state.st_size
