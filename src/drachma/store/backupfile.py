"""Backup files: all objects at one revision, in chunks with a checksum each, and a summary at the end.

A backup is written under a temporary name. A backup that was interrupted is continued after its last whole chunk, as
long as the store still has the history of that revision. It gets its name when it is complete and has been read back.
Objects are in the form that they have in the data file, so encrypted ones stay so.
"""

import hashlib
import os
import pathlib
import struct
import zlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final, Self, TypeAlias

import msgspec

from drachma import errors
from drachma.store import record, row

CHUNK_ROWS: Final = 256
"""Objects in one chunk."""

_MAGIC: Final = b"drachma backup 1\n"
_FRAME: Final = struct.Struct("<II")
_LARGEST: Final = 2**31
"""Bytes of one chunk that are believed; more is damage."""


class Head(msgspec.Struct, frozen=True, tag="head", kw_only=True):
    """Store and revision of the objects, and the time when the backup began."""

    lineage: str
    revision: int
    time: str

    def is_same_state(self, head: "Head") -> bool:
        return (self.lineage, self.revision) == (head.lineage, head.revision)


class Rows(msgspec.Struct, frozen=True, tag="rows"):
    """Objects in key order, as rows of a data file."""

    rows: Sequence[row.Row]

    @property
    def last_key(self) -> record.Key:
        return record.Key(*self.rows[-1][4:7])


class Summary(msgspec.Struct, frozen=True, tag="summary", kw_only=True):
    """Count of objects, and the SHA-256 of everything before the summary."""

    revision: int
    time: str
    objects: int
    bytes: int
    sha256: str


Chunk: TypeAlias = Head | Rows | Summary

_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final[msgspec.msgpack.Decoder[Chunk]] = msgspec.msgpack.Decoder(Chunk)


def encode(chunk: Chunk) -> bytes:
    """Return a chunk with its length and checksum."""
    payload = _encoder.encode(chunk)
    return _FRAME.pack(len(payload), zlib.crc32(payload)) + payload


def frame_size(prefix: bytes) -> int:
    """Return the size of the payload that follows a prefix of ``FRAME_BYTES``. Raises errors.DamagedFileError."""
    length, _ = _FRAME.unpack(prefix)
    if length > _LARGEST:
        raise errors.DamagedFileError(f"backup: a chunk of {length} bytes is more than the limit of {_LARGEST}")
    return int(length)


FRAME_BYTES: Final = _FRAME.size


def decode(prefix: bytes, payload: bytes) -> Chunk:
    """Return the chunk of a payload. Raises errors.DamagedFileError."""
    length, checksum = _FRAME.unpack(prefix)
    if len(payload) != length or zlib.crc32(payload) != checksum:
        raise errors.DamagedFileError("backup: the checksum of a chunk does not match")
    try:
        return _decoder.decode(payload)
    except msgspec.MsgspecError as error:
        raise errors.DamagedFileError(f"backup: a chunk cannot be read: {error}") from error


class Writer:
    """A backup that is being written; resumes what an earlier one left."""

    def __init__(self, path: pathlib.Path) -> None:
        """Raises errors.WriteFailedError, or errors.RefusedFileError if the file exists."""
        self._path = path
        self._unfinished = path.with_name(f"{path.name}.partial")
        if path.exists():
            raise errors.RefusedFileError(f"backup {path}: exists; choose another name")
        self.head: Head | None = None
        self.last_key: record.Key | None = None
        self._objects = 0
        try:
            self._file = os.fdopen(os.open(self._unfinished, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
        except OSError as error:
            raise _write_error(path, error) from error
        self._resume()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def begin(self, head: Head) -> None:
        """Begin, or continue if the part that is there is of the same revision."""
        if self.head is not None and self.head.is_same_state(head):
            return
        self.head, self.last_key, self._objects = head, None, 0
        self._file.seek(0)
        self._file.truncate()
        self._write(_MAGIC + encode(head))

    def add(self, chunk: Rows) -> None:
        self._write(encode(chunk))
        self.last_key = chunk.last_key
        self._objects += len(chunk.rows)

    def finish(self) -> Summary:
        """Write the summary, read everything back, and give the file its name.

        Raises:
            errors.WriteFailedError, errors.DamagedFileError: the disk fails, or has not kept what was written.
        """
        assert self.head is not None, "begin() is called before finish()"
        try:
            self._file.seek(0)
            digest = hashlib.file_digest(self._file, "sha256")
            size = self._file.seek(0, os.SEEK_END)
            summary = Summary(
                revision=self.head.revision,
                time=self.head.time,
                objects=self._objects,
                bytes=size,
                sha256=digest.hexdigest(),
            )
            self._file.write(encode(summary))
            self._file.flush()
            os.fsync(self._file.fileno())
            verify(self._unfinished)
            self._unfinished.replace(self._path)
        except OSError as error:
            raise _write_error(self._path, error) from error
        return summary

    def _write(self, data: bytes) -> None:
        try:
            self._file.write(data)
        except OSError as error:
            raise _write_error(self._path, error) from error

    def _resume(self) -> None:
        """Keep the whole chunks at the start of an unfinished backup."""
        end = 0
        if self._file.read(len(_MAGIC)) == _MAGIC:
            while (chunk := _read_chunk_or_none(self._file)) is not None and not isinstance(chunk, Summary):
                if isinstance(chunk, Head):
                    self.head = chunk
                else:
                    self.last_key = chunk.last_key
                    self._objects += len(chunk.rows)
                end = self._file.tell()
        self._file.seek(end)
        self._file.truncate()


def read(path: pathlib.Path) -> Iterator[Chunk]:
    """Read a complete backup, chunk by chunk; the last one is the summary, and nothing is believed before it came.

    Raises:
        errors.RefusedFileError: it is no backup, or cannot be read.
        errors.DamagedFileError: it is damaged or not complete.
    """
    try:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise errors.RefusedFileError(f"backup {path}: not a backup of drachma")
            digest = hashlib.sha256(_MAGIC)
            objects = 0
            while True:
                prefix = file.read(FRAME_BYTES)
                if len(prefix) < FRAME_BYTES:
                    raise errors.DamagedFileError(f"backup {path}: not complete")
                payload = file.read(frame_size(prefix))
                chunk = decode(prefix, payload)
                if isinstance(chunk, Summary):
                    if (chunk.sha256, chunk.objects) != (digest.hexdigest(), objects):
                        raise errors.DamagedFileError(f"backup {path}: its checksum does not match")
                    yield chunk
                    return
                digest.update(prefix + payload)
                objects += len(chunk.rows) if isinstance(chunk, Rows) else 0
                yield chunk
    except OSError as error:
        raise errors.RefusedFileError(f"backup {path}: cannot be read: {error.strerror}") from error


def verify(path: pathlib.Path) -> Summary:
    """Read a whole backup, and every row in it, and return its summary.

    Raises:
        errors.RefusedFileError, errors.DamagedFileError
    """
    last: Chunk | None = None
    for chunk in read(path):
        if isinstance(chunk, Rows):
            for each in chunk.rows:
                if not row.is_intact(each):
                    raise errors.DamagedFileError(f"backup {path}: the checksum of revision {each[0]} does not match")
        last = chunk
    assert isinstance(last, Summary), "the last chunk is the summary"
    return last


def _read_chunk_or_none(file: BinaryIO) -> Chunk | None:
    prefix = file.read(FRAME_BYTES)
    if len(prefix) < FRAME_BYTES:
        return None
    try:
        return decode(prefix, file.read(frame_size(prefix)))
    except errors.DamagedFileError:
        return None


def _write_error(path: pathlib.Path, error: OSError) -> errors.WriteFailedError:
    return errors.WriteFailedError(f"backup {path}: cannot be written: {error.strerror}")
