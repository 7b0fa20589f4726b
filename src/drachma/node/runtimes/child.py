"""Child processes with their own process group: streams, signals and exit.

Commands in containers are such processes, and so are the containers of the process runtime.
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

from drachma.node.logs.log import STDERR, STDOUT
from drachma.node.runtimes import descriptors
from drachma.node.runtimes.protocol import Exit

_SIGNALLED: Final = 128
_TIMED_OUT: Final = 124
_MOST_OUTPUT: Final = 1 << 20
_SHOWN: Final = 64
"""Characters that an error shows of a bad word."""
_DRAIN_SECONDS: Final = 1.0
"""Time to wait for output after the end of the process, because another process may hold its streams open."""


class Child:
    """A child process. It belongs to the event loop that it was started on."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        environment: Mapping[str, str],
        directory: str | os.PathLike[str] | None = None,
        has_terminal: bool = False,
        has_input: bool = False,
    ) -> None:
        """Start the process.

        Raises:
            OSError: the command or directory does not exist or may not be used.
        """
        _check_words(words, environment)
        self._terminal = self._input = -1
        self._outputs: dict[str, int] = {}
        if has_terminal:
            self._process = self._start_on_terminal(words, environment, directory)
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

    def _start_on_terminal(
        self, words: Sequence[str], environment: Mapping[str, str], directory: str | os.PathLike[str] | None
    ) -> subprocess.Popen[bytes]:
        self._terminal, child_end = os.openpty()
        try:
            process = subprocess.Popen(
                list(words),
                env={"TERM": "xterm", **environment},
                cwd=directory,
                stdin=child_end,
                stdout=child_end,
                stderr=child_end,
                start_new_session=True,
                # Its own terminal must be its controlling terminal, so that it can be interrupted.
                preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            )
        except OSError:
            os.close(self._terminal)
            raise
        finally:
            os.close(child_end)
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
        # The processes that it started end with it, as in a container.
        self.signal(signal.SIGKILL)
        return Exit(code if code >= 0 else _SIGNALLED - code)

    @property
    def has_ended(self) -> bool:
        """True once :meth:`wait` returns at once."""
        return self._ended.done()

    async def wait(self) -> Exit:
        """Wait for the end, and return the exit. May be called any number of times."""
        return await asyncio.shield(self._ended)

    def signal(self, number: int) -> None:
        """Send a signal to the process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def stop(self, grace_seconds: float) -> None:
        """Ask the process to end, and kill its group after the grace period."""
        if self.has_ended:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)
        done, _ = await asyncio.wait({self._ended}, timeout=grace_seconds)
        if not done:
            self.signal(signal.SIGKILL)
            await self.wait()

    async def output(self) -> AsyncIterator[tuple[str, bytes]]:
        """Yield the output with the name of its stream, until all processes of the group have closed it."""
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
        """Write input; ignored if the process does not read."""
        if self._input >= 0 and not await descriptors.write(self._input, data):
            await self.end_input()

    async def end_input(self) -> None:
        """Close the input; on a terminal, send the end-of-file character."""
        if self._input < 0:
            return
        if self._input == self._terminal:
            await descriptors.write(self._terminal, b"\x04")
        else:
            descriptors.close(self._input)
        self._input = -1

    def resize(self, width: int, height: int) -> None:
        """Set the size of the terminal; ignored if there is none."""
        if self._terminal >= 0:
            with contextlib.suppress(OSError):
                fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def close(self) -> None:
        """Close the streams."""
        for descriptor in {self._input, self._terminal, *self._outputs.values()} - {-1}:
            descriptors.close(descriptor)
        self._input = self._terminal = -1
        self._outputs = {}


def _check_words(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Check that the kernel accepts the words and variables of a command.

    Raises:
        OSError: a word has a null character, or cannot be encoded.
    """
    for word in (*words, *environment, *environment.values()):
        try:
            is_good = b"\0" not in os.fsencode(word)
        except UnicodeEncodeError:
            is_good = False
        if not is_good:
            raise OSError(errno.EINVAL, "has a null character or is no text", repr(word[:_SHOWN]))


class Finished(NamedTuple):
    """Result of a command."""

    code: int
    output: bytes
    errors: bytes

    @property
    def last_line(self) -> str:
        """Last line of the output, for error messages."""
        lines = (self.errors.strip() or self.output.strip()).decode(errors="replace").splitlines()
        return lines[-1] if lines else f"exit code {self.code}"


async def run(words: Sequence[str], *, environment: Mapping[str, str], seconds: float | None) -> Finished:
    """Run a command, with a timeout in seconds if any. Its output is kept up to a megabyte.

    Raises:
        OSError: the command does not exist.
    """
    child = Child(words, environment=environment)
    outputs = {STDOUT: b"", STDERR: b""}

    async def read() -> Exit:
        async for stream, data in child.output():
            outputs[stream] = (outputs[stream] + data)[:_MOST_OUTPUT]
        return await child.wait()

    try:
        async with asyncio.timeout(seconds):
            exit_ = await read()
    except TimeoutError:
        return Finished(_TIMED_OUT, b"", f"no end after {seconds:g} s".encode())
    finally:
        # Also if the caller was cancelled.
        child.signal(signal.SIGKILL)
    return Finished(exit_.code, outputs[STDOUT], outputs[STDERR])
