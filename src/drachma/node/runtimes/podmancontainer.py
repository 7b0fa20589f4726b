"""A container of podman's: a process of its own beside the agent, which may come and go meanwhile.

Podman keeps its log and how it ended. What it is asked here goes by its name, so that any agent can ask.
"""

from __future__ import annotations

import asyncio
import collections
import json
import os
from collections.abc import AsyncIterator
from typing import Final

from drachma.node.logs.log import Log
from drachma.node.logs.runtimelog import RuntimeLog
from drachma.node.runtimes import descriptors, hostnetwork, podmancommand, processusage
from drachma.node.runtimes.child import Child, Finished
from drachma.node.runtimes.protocol import Command, Connection, Exit, Session, StreamError, Usage
from drachma.node.runtimes.sessions import CommandSession, HeldSession

_LOST: Final = 137


class PodmanContainer:
    """A container that was started, by this agent or one before it."""

    def __init__(self, name: str, identifier: str, log: RuntimeLog, *, pid: int, monitor: int) -> None:
        """``pid`` is its first process, and ``monitor`` podman's that watches it; 0 for what has ended."""
        self.id: Final = f"podman://{identifier}"
        self.log: Final[Log] = log
        self._name = name
        self._log = log
        self._pid = pid
        self._monitor = monitor
        self._input: Child | None = None
        self._draining: asyncio.Task[None] | None = None
        self._life = asyncio.create_task(self._live(), name=self.id)

    async def _live(self) -> Exit:
        # Whoever watches it for podman ends last: when its log is written, and how it ended is known.
        if self._monitor:
            await _gone(self._monitor)
        await podmancommand.call("wait", self._name, seconds=None)
        answer = await self._inspect(".State")
        self._log.end()
        if answer.code != 0:
            return Exit(_LOST, "ContainerStatusUnknown", answer.said)
        state = json.loads(answer.output)
        return Exit(int(state["ExitCode"]), "OOMKilled" if state["OOMKilled"] else "")

    async def _inspect(self, field: str) -> Finished:
        return await podmancommand.call(
            "inspect", "--type", "container", "--format", f"{{{{json {field}}}}}", self._name
        )

    async def wait(self) -> Exit:
        return await asyncio.shield(self._life)

    async def stop(self, grace_seconds: float) -> None:
        if not self._life.done():
            seconds = grace_seconds + podmancommand.CALL_SECONDS
            await podmancommand.call("stop", "--time", str(round(grace_seconds)), self._name, seconds=seconds)
        await self.wait()

    async def execute(self, command: Command) -> CommandSession:
        options = ["--interactive"] if command.has_input or command.has_terminal else []
        options += ["--tty"] if command.has_terminal else []
        try:
            child = podmancommand.begin(
                "exec",
                *options,
                "--",
                self._name,
                *command.words,
                has_terminal=command.has_terminal,
                has_input=command.has_input,
            )
        except OSError as error:
            raise StreamError(f"cannot run {command.words[0]!r}: {error.strerror}") from error
        return CommandSession(child)

    async def attach(self) -> Session:
        if self._life.done():
            raise StreamError("the container has ended")
        if (await self._inspect(".Config.Tty")).output.strip() == b"true":
            return HeldSession(self, podmancommand.begin("attach", "--sig-proxy=false", self._name, has_terminal=True))
        return _Streams(self)

    async def feed(self, data: bytes) -> None:
        """Gives it input, which stays open for whoever comes next."""
        if self._input is None:
            self._input = podmancommand.begin("attach", "--sig-proxy=false", self._name, has_input=True)
            self._draining = asyncio.create_task(_drain(self._input), name=f"input of {self.id}")
        await self._input.feed(data)

    async def connect(self, port: int) -> Connection:
        return await hostnetwork.connect(port)

    def usage(self) -> Usage:
        return processusage.of_namespace(self._pid) if self._pid else Usage(0.0, 0)


class _Streams:
    """The container's own streams without a terminal: what it writes is in its log.

    Whoever attached by podman only to listen would end the container's input.
    """

    def __init__(self, container: PodmanContainer) -> None:
        self._container = container
        self._reading = container.log.read()
        collections.deque(self._reading.past(), maxlen=0)

    async def output(self) -> AsyncIterator[tuple[str, bytes]]:
        async for entry in self._reading.more():
            yield entry.stream, entry.output

    async def feed(self, data: bytes) -> None:
        await self._container.feed(data)

    async def end_input(self) -> None:
        """Leaves the container's input open: who attaches next may type too."""

    def resize(self, width: int, height: int) -> None:
        """There is no terminal."""

    async def wait(self) -> Exit:
        await self._container.wait()
        return Exit(0)

    async def close(self) -> None:
        self._reading.close()


async def _drain(child: Child) -> None:
    """Has a process write what nobody wants to know."""
    async for _ in child.output():
        pass


async def _gone(pid: int) -> None:
    """Returns when a process has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        await descriptors.readable(descriptor)
    finally:
        os.close(descriptor)
