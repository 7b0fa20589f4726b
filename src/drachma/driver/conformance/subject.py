"""Driver under test: a process, a driver managed by commands, or one that the user runs."""

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
    """Operations of checks on the process of a driver."""

    @property
    def can_restart(self) -> bool:
        """True if it can be ended and started again."""

    async def start(self) -> None:
        """Starts it; its sockets come later."""

    async def kill(self) -> None:
        """Ends it without a chance to clean up."""

    async def stop(self) -> bool:
        """Asks it to end, and waits; whether it did."""

    def problem(self) -> str:
        """Return the reason why it does not run, as far as that is known."""


class RunningSubject:
    """Driver that the user runs."""

    can_restart: Final = False

    async def start(self) -> None:
        """It runs."""

    async def kill(self) -> None:
        """Do nothing: the user runs the driver, and ends it."""

    async def stop(self) -> bool:
        """Return True without stopping anything: the user runs the driver, and ends it."""
        return True

    def problem(self) -> str:
        return ""


class ServiceSubject:
    """A driver that others look after (systemd, a container engine): commands start it, stop it and kill it."""

    can_restart: Final = True

    def __init__(self, *, start: Sequence[str], stop: Sequence[str], kill: Sequence[str]) -> None:
        self._start: Final = list(start)
        self._stop: Final = list(stop)
        self._kill: Final = list(kill)

    async def start(self) -> None:
        """See :class:`Subject`; this and the others raise a DriverError where the command fails."""
        await _run(self._start)

    async def kill(self) -> None:
        """See :class:`Subject`."""
        await _run(self._kill)

    async def stop(self) -> bool:
        """See :class:`Subject`; the command returns when the driver has ended."""
        await _run(self._stop)
        return True

    def problem(self) -> str:
        """Others know."""
        return ""


async def _run(command: Sequence[str]) -> None:
    try:
        ended = await asyncio.to_thread(
            subprocess.run, command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_STOP_SECONDS, check=False
        )
    except OSError as error:
        raise errors.DriverError(f"{shlex.join(command)}: {error.strerror}") from error
    except subprocess.TimeoutExpired:
        raise errors.DriverError(f"{shlex.join(command)}: does not end within {_STOP_SECONDS:.0f} s") from None
    if ended.returncode:
        output = (ended.stdout + ended.stderr).decode(errors="replace").strip()
        raise errors.DriverError(f"{shlex.join(command)}: ended with {ended.returncode}: {output}")


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
        """Return its exit code, if it has ended, and its last output."""
        if self._process is None or self._process.poll() is None:
            return ""
        lines = self._output.read_text(encoding="utf-8", errors="replace").splitlines()[-_SHOWN_LINES:]
        return "\n".join((f"{shlex.join(self._command)}: ended with {self._process.returncode}", *lines))

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
