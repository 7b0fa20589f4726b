"""The driver under test: a process that is started, killed and stopped, or one that runs already."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import shlex
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from drachma import errors

_STOP_SECONDS: Final = 60.0
_SHOWN_LINES: Final = 20


class Subject(Protocol):
    """What checks do with the process of a driver."""

    @property
    def can_restart(self) -> bool:
        """Whether it can be ended and started again."""

    async def start(self) -> None:
        """Starts it; its sockets come later."""

    async def kill(self) -> None:
        """Ends it without a chance to clean up."""

    async def stop(self) -> bool:
        """Asks it to end, and waits; whether it did."""

    def problem(self) -> str:
        """Why it does not run, as far as that is known."""


class RunningSubject:
    """A driver that somebody else runs."""

    can_restart: Final = False

    async def start(self) -> None:
        """It runs."""

    async def kill(self) -> None:
        """It is not ours to end."""

    async def stop(self) -> bool:
        """The same."""
        return True

    def problem(self) -> str:
        return ""


class ProcessSubject:
    """A driver that a command runs, in a group of processes of its own; what it says goes to a file."""

    can_restart: Final = True

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], *, output: pathlib.Path) -> None:
        self._command: Final = list(command)
        self._environment: Final = {**os.environ, **environment}
        self._output: Final = output
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """See :class:`Subject`.

        Raises:
            errors.DriverError: there is no such command.
        """
        try:
            with self._output.open("wb") as output:
                # Not the event loop's own way, which forks: gRPC has threads that do not like that.
                self._process = subprocess.Popen(
                    self._command,
                    env=self._environment,
                    # Some drivers stop at the end of their input.
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except OSError as error:
            raise errors.DriverError(f"{shlex.join(self._command)}: {error.strerror}") from error

    async def kill(self) -> None:
        """See :class:`Subject`."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> bool:
        """See :class:`Subject`; it is killed where it does not end in time."""
        if await self._end(signal.SIGTERM):
            return True
        await self.kill()
        return False

    def problem(self) -> str:
        """How it ended, if it did, and the last that it said."""
        if self._process is None or self._process.poll() is None:
            return ""
        said = self._output.read_text(encoding="utf-8", errors="replace").splitlines()[-_SHOWN_LINES:]
        return "\n".join((f"{shlex.join(self._command)}: ended with {self._process.returncode}", *said))

    async def _end(self, number: signal.Signals) -> bool:
        process = self._process
        if process is None:
            return True
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        try:
            await asyncio.to_thread(process.wait, _STOP_SECONDS)
        except subprocess.TimeoutExpired:
            return False
        if process.stdin is not None:
            process.stdin.close()
        self._process = None
        return True
