"""Sessions of clients with containers: a command in a container, or the container's own streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final, Protocol

from drachma.node.runtimes.child import Child
from drachma.node.runtimes.protocol import Connection, Exit, StreamError

_LOCALHOST: Final = "127.0.0.1"


class CommandSession:
    """A command in a container; it ends with the session."""

    def __init__(self, child: Child) -> None:
        self._child = child

    def output(self) -> AsyncIterator[tuple[str, bytes]]:
        return self._child.output()

    async def feed(self, data: bytes) -> None:
        await self._child.feed(data)

    async def end_input(self) -> None:
        await self._child.end_input()

    def resize(self, width: int, height: int) -> None:
        self._child.resize(width, height)

    async def wait(self) -> Exit:
        return await self._child.wait()

    async def close(self) -> None:
        await self._child.stop(0)
        self._child.close()


class Waitable(Protocol):
    """A container, or another process with an end."""

    async def wait(self) -> Exit: ...


class AttachedSession:
    """The container's own streams; the container continues after the session."""

    def __init__(
        self, container: Waitable, child: Child, listen: Callable[[], AsyncIterator[tuple[str, bytes]]]
    ) -> None:
        """``child`` is the process that reads input; ``listen`` yields the output of the container from now on."""
        self._container = container
        self._child = child
        self._listen = listen

    def output(self) -> AsyncIterator[tuple[str, bytes]]:
        return self._listen()

    async def feed(self, data: bytes) -> None:
        await self._child.feed(data)

    async def end_input(self) -> None:
        """Leave the container's input open for the next client."""

    def resize(self, width: int, height: int) -> None:
        self._child.resize(width, height)

    async def wait(self) -> Exit:
        """Wait for the end of the container. The session itself succeeds, whatever the exit of the container."""
        await self._container.wait()
        return Exit(0)

    async def close(self) -> None:
        """Do nothing: the process belongs to the container."""


class OwnedSession(AttachedSession):
    """The container's own streams by a process of the session, which ends with it."""

    def __init__(self, container: Waitable, child: Child) -> None:
        super().__init__(container, child, child.output)

    async def close(self) -> None:
        await self._child.stop(0)
        self._child.close()


async def connect_to_host(port: int) -> Connection:
    """Connect to a port of the machine, whose network the containers use.

    Raises:
        StreamError: nothing listens there.
    """
    try:
        return Connection(*await asyncio.open_connection(_LOCALHOST, port))
    except OSError as error:
        raise StreamError(f"dial tcp {_LOCALHOST}:{port}: {error.strerror or error}") from error
