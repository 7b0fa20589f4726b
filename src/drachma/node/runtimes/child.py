"""A process of this machine with a group of its own: its streams, its signals and its end.

Commands in containers are such processes, and so are the containers of the process runtime themselves.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import signal
import struct
import subprocess
import termios
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final, NamedTuple

from drachma.node.logs.entry import STDERR, STDOUT
from drachma.node.runtimes import descriptors
from drachma.node.runtimes.protocol import Exit

_SIGNALLED: Final = 128
_TIMED_OUT: Final = 124
_MOST_KEPT: Final = 1 << 20
_SHOWN: Final = 64
"""Characters that an error shows of a bad word."""
_DRAIN_SECONDS: Final = 1.0
"""For how long to wait for output after the process has ended: somebody else may hold its streams open for ever."""


class Child:
    """A process that was started. It belongs to the event loop that it was started on."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        environment: Mapping[str, str],
        directory: str | os.PathLike[str] | None = None,
        has_terminal: bool = False,
        has_input: bool = False,
    ) -> None:
        """Starts it.

        Raises:
            OSError: there is no such command or directory, or it may not be used.
        """
        _check_words(words, environment)
        self._terminal = self._input = -1
        self._outputs: dict[str, int] = {}
        if has_terminal:
            self._process = self._on_terminal(words, environment, directory)
        else:
            self._process = subprocess.Popen(
                list(words),
                env=dict(environment),
                cwd=directory,
                stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                bufsize=0,
            )
            assert self._process.stdout is not None, "it has pipes"
            assert self._process.stderr is not None, "it has pipes"
            self._outputs = {
                STDOUT: os.dup(self._process.stdout.fileno()),
                STDERR: os.dup(self._process.stderr.fileno()),
            }
            if self._process.stdin is not None:
                self._input = os.dup(self._process.stdin.fileno())
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
                if stream is not None:
                    stream.close()
        self.pid: Final = self._process.pid
        self._ended = asyncio.create_task(self._wait(), name=f"process {self.pid}")

    def _on_terminal(
        self, words: Sequence[str], environment: Mapping[str, str], directory: str | os.PathLike[str] | None
    ) -> subprocess.Popen[bytes]:
        self._terminal, other = os.openpty()
        try:
            process = subprocess.Popen(
                list(words),
                env={"TERM": "xterm", **environment},
                cwd=directory,
                stdin=other,
                stdout=other,
                stderr=other,
                start_new_session=True,
                # Its own terminal is the one that interrupts it.
                preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            )
        except OSError:
            os.close(self._terminal)
            raise
        finally:
            os.close(other)
        self._outputs = {STDOUT: self._terminal}
        self._input = self._terminal
        return process

    async def _wait(self) -> Exit:
        descriptor = os.pidfd_open(self.pid)
        try:
            await descriptors.readable(descriptor)
        finally:
            os.close(descriptor)
        code = self._process.wait()
        # What it has left behind ends with it, as in a container.
        self.signal(signal.SIGKILL)
        return Exit(code if code >= 0 else _SIGNALLED - code)

    async def wait(self) -> Exit:
        """How it ended, once it has; any number of times."""
        return await asyncio.shield(self._ended)

    def signal(self, number: int) -> None:
        """Sends a signal to all of its group that are left."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def stop(self, grace_seconds: float) -> None:
        """Asks it to end, and ends it with its group after so many seconds."""
        if self._ended.done():
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        done, _ = await asyncio.wait({self._ended}, timeout=grace_seconds)
        if not done:
            self.signal(signal.SIGKILL)
            await self.wait()

    async def output(self) -> AsyncIterator[tuple[str, bytes]]:
        """What it writes, by stream, until nobody of its group is left who could."""
        queue: asyncio.Queue[tuple[str, bytes] | None] = asyncio.Queue(maxsize=16)
        readers = [asyncio.create_task(self._read(name, queue)) for name in self._outputs]
        closing = asyncio.create_task(self._close_when_ended(readers, queue))
        try:
            while (chunk := await queue.get()) is not None:
                yield chunk
        finally:
            for task in (*readers, closing):
                task.cancel()
            await asyncio.gather(*readers, closing, return_exceptions=True)
            self.close()

    async def _read(self, name: str, queue: asyncio.Queue[tuple[str, bytes] | None]) -> None:
        async for data in descriptors.chunks(self._outputs[name]):
            await queue.put((name, data))

    async def _close_when_ended(
        self, readers: Sequence[asyncio.Task[None]], queue: asyncio.Queue[tuple[str, bytes] | None]
    ) -> None:
        reading = asyncio.ensure_future(asyncio.gather(*readers, return_exceptions=True))
        await asyncio.wait((self._ended, reading), return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait((reading,), timeout=_DRAIN_SECONDS if self._ended.done() else None)
        reading.cancel()
        await queue.put(None)

    async def feed(self, data: bytes) -> None:
        """Gives it input; ignored where nobody reads."""
        if self._input >= 0 and not await descriptors.write(self._input, data):
            await self.end_input()

    async def end_input(self) -> None:
        """There is no more input; on a terminal that is what a person types for it."""
        if self._input < 0:
            return
        if self._input == self._terminal:
            await descriptors.write(self._terminal, b"\x04")
        else:
            descriptors.close(self._input)
        self._input = -1

    def resize(self, width: int, height: int) -> None:
        """Its terminal has another size; ignored where it has none."""
        if self._terminal >= 0:
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def close(self) -> None:
        """Lets go of its streams."""
        for descriptor in {self._input, self._terminal, *self._outputs.values()} - {-1}:
            descriptors.close(descriptor)
        self._input = self._terminal = -1
        self._outputs = {}


def _check_words(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Check that the kernel takes the words and variables of a command.

    Raises:
        OSError: one of them has a null character, or is no text.
    """
    for word in (*words, *environment, *environment.values()):
        try:
            is_good = b"\0" not in os.fsencode(word)
        except UnicodeEncodeError:
            is_good = False
        if not is_good:
            raise OSError(errno.EINVAL, "has a null character or is no text", repr(word[:_SHOWN]))


class Finished(NamedTuple):
    """A command that has run to its end."""

    code: int
    output: bytes
    errors: bytes

    @property
    def said(self) -> str:
        """What it said last, for people."""
        lines = (self.errors.strip() or self.output.strip()).decode(errors="replace").splitlines()
        return lines[-1] if lines else f"exit code {self.code}"


async def run(words: Sequence[str], *, environment: Mapping[str, str], seconds: float | None) -> Finished:
    """Runs a command that has so many seconds, or as many as it takes; what it writes is kept up to a megabyte.

    Raises:
        OSError: there is no such command.
    """
    child = Child(words, environment=environment)
    written = {STDOUT: b"", STDERR: b""}

    async def read() -> Exit:
        async for stream, data in child.output():
            written[stream] = (written[stream] + data)[:_MOST_KEPT]
        return await child.wait()

    try:
        async with asyncio.timeout(seconds):
            ended = await read()
    except TimeoutError:
        return Finished(_TIMED_OUT, b"", f"no end after {seconds:g} s".encode())
    finally:
        # Also where nobody waits for it any more.
        child.signal(signal.SIGKILL)
    return Finished(ended.code, written[STDOUT], written[STDERR])
