"""Faults that a component can be put under: a partition, a slow or full disk, and a wrong clock.

Partitions are made by a proxy between a component and the API server. Disks are file systems of their own in a file,
which takes root and a loop device. Clocks are moved by libfaketime, which reads the offset from a file.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import pathlib
import subprocess
from typing import Final

LIBFAKETIME: Final = pathlib.Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")

_FREEZE: Final = 0xC0045877
_THAW: Final = 0xC0045878
_FROZEN_SECONDS: Final = 0.35
_THAWED_SECONDS: Final = 0.15
_PART: Final = 1 << 16


class Partition:
    """TCP proxy on loopback that can hold everything back.

    Connections stay open while it is closed and nothing passes, as when packets are dropped: what was sent meanwhile
    arrives once it is open again. New connections are accepted and hear nothing.
    """

    def __init__(self, port: int) -> None:
        self._upstream = port
        self._open = asyncio.Event()
        self._open.set()
        self.port = 0
        self._connections: set[asyncio.Task[None]] = set()

    async def serve(self) -> Partition:
        """Listen on a free port of the loopback address."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=_PART)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def close(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    async def end(self) -> None:
        """Stop listening, and end all connections."""
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._handle(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open.wait()
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self._upstream, limit=_PART)
        except OSError:
            writer.transport.abort()
            return
        pumps = (
            asyncio.create_task(self._pump(reader, upstream_writer)),
            asyncio.create_task(self._pump(upstream_reader, writer)),
        )
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            upstream_writer.close()
            writer.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_PART):
                await self._open.wait()
                writer.write(data)
                await writer.drain()


class Disk:
    """Small ext4 file system in a file, for the data of one component."""

    def __init__(self, image: pathlib.Path, folder: pathlib.Path, *, mebibytes: int) -> None:
        self.folder = folder
        self._image = image
        self._ballast = folder / "ballast"
        folder.mkdir(parents=True, exist_ok=True)
        with image.open("wb") as file:
            file.truncate(mebibytes << 20)
        for command in (
            ("mkfs.ext4", "-q", "-m", "0", str(image)),
            ("mount", "-o", "loop", str(image), str(folder)),
        ):
            subprocess.run(command, check=True, capture_output=True)

    @staticmethod
    def missing() -> str:
        """Return why disks cannot be made here, or an empty text."""
        if os.geteuid() != 0:
            return "mounting needs root"
        return "" if pathlib.Path("/dev/loop-control").exists() else "there are no loop devices"

    def fill(self) -> None:
        """Take all free space."""
        with self._ballast.open("ab", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while True:
                        file.write(b"\0" * size)
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise

    def free(self) -> None:
        self._ballast.unlink(missing_ok=True)

    async def slow_down(self, seconds: float) -> None:
        """Make every write and fsync wait: the file system is frozen for 350 ms out of every 500 ms."""
        descriptor = os.open(self.folder, os.O_RDONLY)
        end = asyncio.get_running_loop().time() + seconds
        try:
            while asyncio.get_running_loop().time() < end:
                await asyncio.to_thread(fcntl.ioctl, descriptor, _FREEZE, 0)
                try:
                    await asyncio.sleep(_FROZEN_SECONDS)
                finally:
                    fcntl.ioctl(descriptor, _THAW, 0)
                await asyncio.sleep(_THAWED_SECONDS)
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        """Unmount it; processes that use it must have ended."""
        subprocess.run(("umount", "--lazy", str(self.folder)), check=False, capture_output=True)
        self._image.unlink(missing_ok=True)


class Clock:
    """Offset of the wall clock that one component sees; its monotonic clock is left alone."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self.set_offset(0)

    @staticmethod
    def missing() -> str:
        """Return why clocks cannot be moved here, or an empty text."""
        return "" if LIBFAKETIME.exists() else f"{LIBFAKETIME} is absent (Debian: apt-get install faketime)"

    def set_offset(self, seconds: int) -> None:
        """Move the clock; a running process sees it within a second."""
        partial = self._path.with_suffix(".new")
        partial.write_text(f"{seconds:+d}\n")
        partial.rename(self._path)

    def environment(self) -> dict[str, str]:
        """Variables for a process that is to see this clock."""
        return {
            "LD_PRELOAD": str(LIBFAKETIME),
            "FAKETIME_TIMESTAMP_FILE": str(self._path),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
