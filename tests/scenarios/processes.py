"""The API server, or a whole control plane, as users run it: a process of its own, on loopback, with TLS."""

import asyncio
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import yaml

from tests import patience

DRACHMA = (sys.executable, "-c", "from drachma import cli; cli.main()")

ALONE = ("--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection",)
"""For a server without controllers: nobody makes the accounts that pods run as."""


class Process:
    """A running server: where it is, and how to get in."""

    def __init__(self, process: subprocess.Popen[bytes], folder: pathlib.Path, kubeconfig: pathlib.Path) -> None:
        self.process = process
        self.folder = folder
        self.kubeconfig = kubeconfig
        content: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
        self.url: str = content["clusters"][0]["cluster"]["server"]
        self.token: str = content["users"][0]["user"]["token"]
        self.authority = folder / "pki" / "ca.crt"

    def kill(self) -> None:
        """Ends it as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """Asks it to end, and waits until it has; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(patience.SECONDS)


def start(
    folder: pathlib.Path,
    *,
    listen: str = "127.0.0.1:0",
    command_name: str = "apiserver",
    options: Sequence[str] | None = None,
) -> Process:
    """Starts a server and waits until it serves; RuntimeError with its output if it does not."""
    kubeconfig = folder / "kubeconfig.yaml"
    if options is None:
        options = ALONE if command_name == "apiserver" else ()
    own: tuple[str, ...] = ("--data", str(folder), "--listen", listen, "--kubeconfig-out", str(kubeconfig))
    if command_name == "up" and not {"--nodes", "--autoscale", "--pretend-nodes"} & set(options):
        own += ("--nodes", "0")
    # In a file, for nobody reads a pipe while the server runs: full, it would hold the server.
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [*DRACHMA, command_name, *own, *options],
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )

        def look() -> tuple[bool, str]:
            has_ended = process.poll() is not None
            return has_ended, os.pread(log.fileno(), 1_000_000, 0).decode()

        try:
            _, said = patience.until(look, lambda seen: seen[0] or "serving on" in seen[1], what="the server starts")
        except BaseException:
            process.kill()
            process.wait()
            raise
    if "serving on" not in said:
        raise RuntimeError(f"the server did not start: {said}")
    return Process(process, folder, kubeconfig)


@contextlib.contextmanager
def running(
    folder: pathlib.Path, *, command_name: str = "apiserver", options: Sequence[str] | None = None
) -> Iterator[Process]:
    """A server that is stopped in the end, whatever happens."""
    server = start(folder, command_name=command_name, options=options)
    try:
        yield server
    finally:
        server.kill()


@contextlib.asynccontextmanager
async def command(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A command with its arguments, and what it logs in a pipe; ended in the end whatever happens."""
    started = await asyncio.create_subprocess_exec(
        *DRACHMA, *arguments, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    try:
        yield started
    finally:
        if started.returncode is None:
            started.kill()
        await started.communicate()


async def stopped(process: asyncio.subprocess.Process) -> int | None:
    """Asks a command to end, and waits until it has; its exit code."""
    process.send_signal(signal.SIGTERM)
    await process.communicate()
    return process.returncode
