"""The API server, or a whole control plane, as users run it: a process of its own, on loopback, with TLS."""

import asyncio
import contextlib
import os
import pathlib
import selectors
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import yaml

START_SECONDS = 60.0

DRACHMA = (sys.executable, "-c", "from drachma import cli; cli.main()")

_ALONE = ("--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",)
"""For a server without controllers: nobody makes the accounts that pods run as."""


class Process:
    """A running server: where it is, and how to get in."""

    def __init__(self, process: subprocess.Popen[str], folder: pathlib.Path, kubeconfig: pathlib.Path) -> None:
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
        return self.process.wait(timeout=60)


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
        options = _ALONE if command_name == "apiserver" else ()
    own = ("--data", str(folder), "--listen", listen, "--kubeconfig-out", str(kubeconfig))
    process = subprocess.Popen(
        [*DRACHMA, command_name, *own, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    said = _until_serving(process)
    if "serving on" not in said:
        process.kill()
        process.communicate()
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
        server.process.kill()
        server.process.communicate()


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


def _until_serving(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None, "the output is piped"
    said = ""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while "serving on" not in said:
            if not selector.select(START_SECONDS):
                break
            # Past the buffer of the stream: lines that wait there would not be seen by the selector.
            more = os.read(process.stdout.fileno(), 65_536)
            if not more:
                break
            said += more.decode()
    return said
