"""Sessions of clients with containers that are held by processes of this machine: a command, or what it runs itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol

from drachma.node.runtimes.child import Child
from drachma.node.runtimes.protocol import Exit


class CommandSession:
    """A command beside the container's own processes; it ends with the session."""

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


class Ending(Protocol):
    """What ends some time, such as a container."""

    async def wait(self) -> Exit: ...


class AttachedSession:
    """The container's own streams; the container goes on when the session ends."""

    def __init__(self, container: Ending, child: Child, listen: Callable[[], AsyncIterator[tuple[str, bytes]]]) -> None:
        """``child`` is the process that takes input; ``listen`` has what the container writes from now on."""
        self._container = container
        self._child = child
        self._listen = listen

    def output(self) -> AsyncIterator[tuple[str, bytes]]:
        return self._listen()

    async def feed(self, data: bytes) -> None:
        await self._child.feed(data)

    async def end_input(self) -> None:
        """Leaves the container's input open: who attaches next may type too."""

    def resize(self, width: int, height: int) -> None:
        self._child.resize(width, height)

    async def wait(self) -> Exit:
        """Who was attached has seen all there was: how the container ended is told by its pod."""
        await self._container.wait()
        return Exit(0)

    async def close(self) -> None:
        """The process is the container's, and stays."""


class HeldSession(AttachedSession):
    """The same by a process of the session's own, which ends with it."""

    def __init__(self, container: Ending, child: Child) -> None:
        super().__init__(container, child, child.output)

    async def close(self) -> None:
        await self._child.stop(0)
        self._child.close()
