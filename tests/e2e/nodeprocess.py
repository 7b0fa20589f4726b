"""The agent of a node as a process of its own, which can be killed and started again."""

import contextlib
import os
import pathlib
import subprocess
from collections.abc import Iterator, Sequence

from tests.scenarios import processes

BOOTSTRAP = "bootstrap.kubeconfig"


class Agent:
    """A running agent."""

    def __init__(self, command: Sequence[str], root: pathlib.Path) -> None:
        self.root = root
        self._command = command
        self._process = subprocess.Popen(command, env=dict(os.environ))

    def restart(self) -> None:
        """Kills it and starts it again."""
        self._process.kill()
        self._process.wait(60)
        self._process = subprocess.Popen(self._command, env=dict(os.environ))

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(60)


@contextlib.contextmanager
def control_plane(folder: pathlib.Path) -> Iterator[processes.Process]:
    """A control plane that lets nodes in by a bootstrap token."""
    options = ("--bootstrap-kubeconfig-out", str(folder / BOOTSTRAP), "--allow-loopback-nodes")
    with processes.running(folder / "data", command_name="up", options=options) as started:
        yield started


@contextlib.contextmanager
def agent(server: processes.Process, folder: pathlib.Path, *, runtime: str) -> Iterator[Agent]:
    """The agent of the node n1, which joins such a control plane."""
    options = ["--name", "n1", "--kubeconfig", str(folder / "kubeconfig"), "--listen", "127.0.0.1:0"]
    options += ["--bootstrap-kubeconfig", str(server.folder.parent / BOOTSTRAP)]
    root = folder / "root"
    started = Agent([*processes.DRACHMA, "node", "--root", str(root), *options, "--runtime", runtime], root)
    try:
        yield started
    finally:
        started.end()
