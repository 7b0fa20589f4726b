"""The redo log: every acknowledged batch, kept apart from the database until a checkpoint has stored it there.

The journal appends a batch and syncs this file before SQLite writes the batch to its own write-ahead log, which is
then not synced. So there is one sync per batch, two copies of every recent write, and a record of the last
acknowledged revision that damage to the database or to its write-ahead log cannot change.

The file begins with two header slots that are written in turn, so a torn header leaves the older one. A header names
the store, the generation of the records after it, and the revision of the database when the generation began.
Records have a checksum each. Records of an older generation count for nothing.

A batch is synced before the next one is written. A valid record after an invalid one therefore proves damage, whereas
an invalid record with nothing after it is a write that never finished and was never acknowledged.
"""

import os
import pathlib
import struct
import zlib
from collections.abc import Sequence
from typing import Final, Self

import msgspec

from drachma.store import row, state

STEP: Final = 2**20
"""Bytes by which the file grows. It is never shortened, so most appends overwrite room that is there."""

_MAGIC: Final = b"drachma redo 1\n\0"
_HEADER: Final = struct.Struct("<16sQ16sQQ")
_SLOT: Final = 4096
_START: Final = 2 * _SLOT
_CHECKSUM: Final = struct.Struct("<I")
_RECORD_MAGIC: Final = b"\xd2rec"
_RECORD: Final = struct.Struct("<4sIQQ")


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """Rows of one batch in revision order, and the compaction that was committed with them."""

    rows: Sequence[row.Row]
    compaction: state.Compaction | None = None

    @property
    def revision(self) -> int:
        """Newest revision of the batch; 0 for a compaction alone."""
        return self.rows[-1][0] if self.rows else 0


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """Store, generation, and the state of the database when the generation began."""

    generation: int
    lineage: str
    revision: int
    compacted: int

    def encode(self) -> bytes:
        fields = _HEADER.pack(_MAGIC, self.generation, bytes.fromhex(self.lineage), self.revision, self.compacted)
        return fields + _CHECKSUM.pack(zlib.crc32(fields))


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """Everything valid in a redo log.

    ``strays`` are valid records after an invalid one. ``is_cut_off`` says that records of a newer generation were
    found than the newest valid header knows of.
    """

    header: Header
    entries: Sequence[Entry]
    strays: Sequence[Entry] = ()
    is_cut_off: bool = False

    @property
    def acknowledged(self) -> int:
        """Newest revision that is known to be acknowledged."""
        return max([self.header.revision, *(entry.revision for entry in (*self.entries, *self.strays))])


class InvalidLogError(Exception):
    """The file has no valid header; the message says why."""


def read(path: pathlib.Path) -> Contents:
    """Read a redo log without changing it.

    Raises:
        InvalidLogError: it has no valid header.
        OSError: it cannot be read.
    """
    data = path.read_bytes()
    headers = [header for slot in (0, _SLOT) if (header := _decode_header(data[slot : slot + _SLOT])) is not None]
    if not headers:
        raise InvalidLogError("not a redo log, or damaged at its start")
    header = max(headers, key=lambda each: each.generation)
    entries: list[Entry] = []
    position = _START
    sequence = 0
    while (decoded := _decode_record(data, position)) is not None:
        generation, number, entry, end = decoded
        if (generation, number) != (header.generation, sequence):
            break
        entries.append(entry)
        position, sequence = end, sequence + 1
    strays: list[Entry] = []
    is_cut_off = False
    position = data.find(_RECORD_MAGIC, position)
    while position >= 0:
        decoded = _decode_record(data, position)
        if decoded is not None:
            generation, number, entry, end = decoded
            is_cut_off |= generation > header.generation
            if generation > header.generation or (generation == header.generation and number >= sequence):
                strays.append(entry)
        position = data.find(_RECORD_MAGIC, position + 1 if decoded is None else end)
    return Contents(header=header, entries=entries, strays=strays, is_cut_off=is_cut_off)


class RedoLog:
    """A redo log that this process appends to."""

    def __init__(self, file: int, header: Header) -> None:
        self._file = file
        self._header = header
        self._size = os.fstat(file).st_size
        self._position = _START
        self._sequence = 0

    @classmethod
    def create(cls, path: pathlib.Path, header: Header) -> Self:
        """Make an empty redo log under a temporary name, and give it its name when it is complete.

        Raises:
            OSError: the disk is full or fails.
        """
        unfinished = path.with_name(f"{path.name}.new")
        file = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            # Written, not only allocated: syncing an append must not change the file's layout.
            _write(file, bytes(_START + STEP), 0)
            _write(file, header.encode(), header.generation % 2 * _SLOT)
            os.fsync(file)
            unfinished.replace(path)
        except BaseException:
            os.close(file)
            raise
        return cls(file, header)

    @classmethod
    def open(cls, path: pathlib.Path, header: Header) -> Self:
        """Open an existing redo log; ``begin`` comes before the first append."""
        return cls(os.open(path, os.O_RDWR), header)

    @property
    def header(self) -> Header:
        return self._header

    def begin(self, *, revision: int, compacted: int) -> None:
        """Begin a new generation: the database holds everything up to here, synced.

        Raises:
            OSError: nothing has changed, or the header is torn and the older one counts.
        """
        header = msgspec.structs.replace(
            self._header, generation=self._header.generation + 1, revision=revision, compacted=compacted
        )
        _write(self._file, header.encode(), header.generation % 2 * _SLOT)
        os.fdatasync(self._file)
        self._header, self._position, self._sequence = header, _START, 0

    def append(self, entry: Entry) -> None:
        """Add a batch and wait until it is on disk.

        Raises:
            OSError: the batch may or may not be in the log; ``withdraw`` takes it out.
        """
        payload = _encode(entry)
        fields = _RECORD.pack(_RECORD_MAGIC, len(payload), self._header.generation, self._sequence)
        checksum = _CHECKSUM.pack(zlib.crc32(payload, zlib.crc32(fields)))
        record = b"".join((fields, checksum, payload))
        end = self._position + len(record)
        if end > self._size:
            _write(self._file, bytes(end - self._size + STEP), self._size)
            self._size = end + STEP
        _write(self._file, record, self._position)
        os.fdatasync(self._file)
        self._position = end
        self._sequence += 1

    def mark(self) -> tuple[int, int]:
        """Return the end of the log, for ``withdraw``."""
        return self._position, self._sequence

    def withdraw(self, mark: tuple[int, int]) -> None:
        """Take out what was appended since ``mark``, so that a restart does not find it.

        Raises:
            OSError: the disk fails; the log must not be appended to any more.
        """
        self._position, self._sequence = mark
        _write(self._file, bytes(_RECORD.size + _CHECKSUM.size), self._position)
        os.fdatasync(self._file)

    def close(self) -> None:
        os.close(self._file)


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(Entry).decode


def _write(file: int, data: bytes, position: int) -> None:
    view = memoryview(data)
    while view:
        count = os.pwrite(file, view, position)
        view, position = view[count:], position + count


def _decode_header(slot: bytes) -> Header | None:
    size = _HEADER.size
    fields, checksum = slot[:size], slot[size : size + _CHECKSUM.size]
    if not fields.startswith(_MAGIC) or _CHECKSUM.pack(zlib.crc32(fields)) != checksum:
        return None
    _, generation, lineage, revision, compacted = _HEADER.unpack(fields)
    return Header(generation=generation, lineage=lineage.hex(), revision=revision, compacted=compacted)


def _decode_record(data: bytes, position: int) -> tuple[int, int, Entry, int] | None:
    """Return generation, number, entry and end of the valid record at a position, or None."""
    start = position + _RECORD.size + _CHECKSUM.size
    if start > len(data):
        return None
    magic, length, generation, number = _RECORD.unpack_from(data, position)
    end = start + length
    if magic != _RECORD_MAGIC or end > len(data):
        return None
    (checksum,) = _CHECKSUM.unpack_from(data, position + _RECORD.size)
    payload = data[start:end]
    if zlib.crc32(payload, zlib.crc32(data[position : position + _RECORD.size])) != checksum:
        return None
    try:
        return generation, number, _decode(payload), end
    except msgspec.DecodeError:
        return None
