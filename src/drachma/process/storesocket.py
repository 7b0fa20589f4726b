"""The socket of a store: how ``drachma store`` asks a running server for a backup, a compaction or a rewrite.

Only one process may open the files of a store, so other commands ask that process. The socket is in the data
directory and belongs to its owner, like the files that it gives access to. A request is one line of JSON; the answer
is a sequence of chunks as in a backup file.
"""

import asyncio
import contextlib
import datetime as dt
import logging
import os
import pathlib
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final

import msgspec

from drachma import errors
from drachma.store import backupfile, online, record, sqlite

_NAME: Final = "drachma.sock"
_LONGEST_REQUEST: Final = 64 * 1024
_ANSWER_SECONDS: Final = 600.0
"""Longest wait of a client for the next part of an answer; a large database takes minutes to vacuum."""

_log = logging.getLogger(__name__)


class BackUp(msgspec.Struct, frozen=True, tag="backup", kw_only=True):
    """Send all objects; ``resume`` and ``after`` continue an earlier backup."""

    resume: backupfile.Head | None = None
    after: record.Key | None = None


class Compact(msgspec.Struct, frozen=True, tag="compact"):
    """Forget history, and give unused room back to the disk."""


class Rewrite(msgspec.Struct, frozen=True, tag="rewrite"):
    """Write encrypted objects again with the newest key."""


class Done(msgspec.Struct, frozen=True, tag="done", kw_only=True):
    """Success, with the number of objects or revisions that it is about."""

    count: int


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """Failure, with its reason."""

    message: str


Request = BackUp | Compact | Rewrite
_requests: Final[msgspec.json.Decoder[Request]] = msgspec.json.Decoder(Request)
_results: Final[msgspec.json.Decoder[Done | Refused]] = msgspec.json.Decoder(Done | Refused)

_CHUNK: Final = b"C"
_RESULT: Final = b"R"


@contextlib.asynccontextmanager
async def serve(
    objects: sqlite.SqliteStore, folder: pathlib.Path, *, utc: Callable[[], dt.datetime]
) -> AsyncIterator[None]:
    """Answer requests about a store for as long as the context lasts."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _answer(objects, reader, writer, now=utc())
        except (OSError, ValueError, RuntimeError) as error:
            # The client is gone, its request is too long, or the store is closed.
            _log.warning("store socket: request given up: %s", error)
        finally:
            writer.close()

    with _listen(folder) as opened:
        server = await asyncio.start_unix_server(answer, sock=opened, limit=_LONGEST_REQUEST)
        try:
            yield
        finally:
            server.close()
            with contextlib.suppress(OSError):
                (folder / _NAME).unlink()


async def _answer(
    objects: sqlite.SqliteStore, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, now: dt.datetime
) -> None:
    try:
        request = _requests.decode(await reader.readline())
    except msgspec.MsgspecError as error:
        await _finish(writer, Refused(f"the request cannot be read: {error}"))
        return
    try:
        match request:
            case BackUp():
                count = 0
                async for chunk in online.chunks(objects, now=now, resume=request.resume, after=request.after):
                    writer.write(_CHUNK + backupfile.encode(chunk))
                    await writer.drain()
                    count += 1
            case Compact():
                await objects.compact(objects.revision)
                await objects.vacuum()
                count = objects.revision
            case Rewrite():
                count = await online.rewrite(objects)
    except errors.StoreError as error:
        await _finish(writer, Refused(str(error)))
        return
    await _finish(writer, Done(count=count))


async def _finish(writer: asyncio.StreamWriter, result: Done | Refused) -> None:
    writer.write(_RESULT + msgspec.json.encode(result) + b"\n")
    await writer.drain()


@contextlib.contextmanager
def _short_path(folder: pathlib.Path) -> Iterator[str]:
    """Return a path of the socket that is short enough for any data directory."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{handle}/{_NAME}"
    finally:
        os.close(handle)


@contextlib.contextmanager
def _listen(folder: pathlib.Path) -> Iterator[socket.socket]:
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with contextlib.suppress(FileNotFoundError):
            (folder / _NAME).unlink()
        with _short_path(folder) as path:
            opened.bind(path)
        # Before it listens, so no other user can have connected.
        (folder / _NAME).chmod(0o600)
        yield opened
    except OSError as error:
        raise errors.RefusedFileError(f"store socket {folder / _NAME}: cannot be made: {error.strerror}") from error
    finally:
        opened.close()


class Connection:
    """A connection to the server that has a store open."""

    def __init__(self, opened: socket.socket) -> None:
        self._socket = opened
        self._file = opened.makefile("rwb")

    def close(self) -> None:
        self._file.close()
        self._socket.close()

    def ask(self, request: Request) -> Iterator[backupfile.Chunk | Done]:
        """Send a request and return the parts of its answer; the last one says that it is complete.

        Raises:
            errors.StoreError: the server refuses, or ends in the middle.
        """
        try:
            self._file.write(msgspec.json.encode(request) + b"\n")
            self._file.flush()
            while self._read(1) == _CHUNK:
                prefix = self._read(backupfile.FRAME_BYTES)
                yield backupfile.decode(prefix, self._read(backupfile.frame_size(prefix)))
            result = _results.decode(self._file.readline())
        except (OSError, msgspec.MsgspecError) as error:
            raise errors.StoreError(f"the server does not answer: {error}; run the command again") from error
        if isinstance(result, Refused):
            raise errors.StoreError(f"the server refuses: {result.message}")
        yield result

    def _read(self, count: int) -> bytes:
        data = self._file.read(count)
        if len(data) < count:
            raise OSError("the connection was closed")
        return data


def connect(folder: pathlib.Path) -> Connection | None:
    """Connect to the server that has a data directory open, or return None if no server answers."""
    opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    opened.settimeout(_ANSWER_SECONDS)
    try:
        with _short_path(folder) as path:
            opened.connect(path)
    except OSError:
        opened.close()
        return None
    return Connection(opened)
