"""Containers of podman, which outlive the agent.

Podman keeps their logs and exit codes. All commands go by the name of the container, so that any agent can use them.
"""

from __future__ import annotations

import asyncio
import collections
import json
import os
from collections.abc import AsyncIterator
from typing import Final

from drachma import errors
from drachma.node.logs.log import Log
from drachma.node.logs.runtimelog import RuntimeLog
from drachma.node.runtimes import descriptors, processes, sessions
from drachma.node.runtimes.child import Child, Finished, run
from drachma.node.runtimes.protocol import Command, Connection, Exit, Session, StreamError, Usage
from drachma.node.runtimes.sessions import CommandSession, OwnedSession

_LOST: Final = 137

CALL_SECONDS: Final = 60.0
_PODMAN: Final = ("podman", "--runtime", "runc")
_ENVIRONMENT: Final = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}


class PodmanContainer:
    """A run that this agent or an earlier one started."""

    def __init__(self, name: str, identifier: str, log: RuntimeLog, *, pid: int, monitor: int) -> None:
        """``pid`` is the first process of the container, and ``monitor`` podman's monitor of it; 0 if it has ended."""
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
        # Podman's monitor ends last, after it has written the log and the exit code.
        if self._monitor:
            await _wait_for_end(self._monitor)
        await call("wait", self._name, seconds=None)
        answer = await self._inspect(".State")
        self._log.end()
        if answer.code != 0:
            return Exit(_LOST, "ContainerStatusUnknown", answer.last_line)
        state = json.loads(answer.output)
        return Exit(int(state["ExitCode"]), "OOMKilled" if state["OOMKilled"] else "")

    async def _inspect(self, field: str) -> Finished:
        return await call("inspect", "--type", "container", "--format", f"{{{{json {field}}}}}", self._name)

    async def wait(self) -> Exit:
        return await asyncio.shield(self._life)

    async def stop(self, grace_seconds: float) -> None:
        if not self._life.done():
            seconds = grace_seconds + CALL_SECONDS
            await call("stop", "--time", str(round(grace_seconds)), self._name, seconds=seconds)
        await self.wait()

    async def execute(self, command: Command) -> CommandSession:
        options = ["--interactive"] if command.has_input or command.has_terminal else []
        options += ["--tty"] if command.has_terminal else []
        try:
            child = start(
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
            return OwnedSession(self, start("attach", "--sig-proxy=false", self._name, has_terminal=True))
        return _Streams(self)

    async def feed(self, data: bytes) -> None:
        """Write input. The input stays open for the next client."""
        if self._input is None:
            self._input = start("attach", "--sig-proxy=false", self._name, has_input=True)
            self._draining = asyncio.create_task(_drain(self._input), name=f"input of {self.id}")
        await self._input.feed(data)

    async def connect(self, port: int) -> Connection:
        return await sessions.connect_to_host(port)

    def usage(self) -> Usage:
        return processes.container_usage(self._pid) if self._pid else Usage(0.0, 0)


class _Streams:
    """Session with the streams of a container without a terminal. Its output is read from its log.

    Attaching by podman only to read would end the container's input.
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
        """Leave the container's input open for the next client."""

    def resize(self, width: int, height: int) -> None:
        """Do nothing: there is no terminal."""

    async def wait(self) -> Exit:
        await self._container.wait()
        return Exit(0)

    async def close(self) -> None:
        self._reading.close()


async def _drain(child: Child) -> None:
    """Read and drop the output of a process."""
    async for _ in child.output():
        pass


async def _wait_for_end(pid: int) -> None:
    """Wait for the end of a process."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        await descriptors.readable(descriptor)
    finally:
        os.close(descriptor)


async def call(*words: str, seconds: float | None = CALL_SECONDS) -> Finished:
    """Run a podman command and return its result, with a timeout in seconds if any.

    Raises:
        errors.NodeError: podman cannot be started.
    """
    try:
        return await run([*_PODMAN, *words], environment=_ENVIRONMENT, seconds=seconds)
    except OSError as error:
        raise errors.NodeError(f"podman cannot be started: {error.strerror}: {error.filename}") from error


def start(*words: str, has_terminal: bool = False, has_input: bool = False) -> Child:
    """Start a podman command with streams, such as a command in a container.

    Raises:
        OSError: podman cannot be started.
    """
    return Child([*_PODMAN, *words], environment=_ENVIRONMENT, has_terminal=has_terminal, has_input=has_input)
