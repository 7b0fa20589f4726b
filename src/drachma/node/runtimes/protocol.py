"""The protocol between an agent and a container runtime."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Mapping, Sequence, Set
from typing import NamedTuple, Protocol

import msgspec

from drachma.api import pod as pods
from drachma.node.logs.log import Log
from drachma.node.runtimes.security import Security


class Mount(NamedTuple):
    """A file or directory of the machine, mounted in a container.

    On a machine that cannot mount, containers start without their dispensable mounts.
    """

    source: str
    target: str
    is_read_only: bool = False
    is_dispensable: bool = False
    options: tuple[str, ...] = ()
    """Further mount options: nodev, noexec and nosuid."""

    @property
    def manner(self) -> str:
        """Mount options in the form of mount(8): ``rw``, or ``ro,nosuid``."""
        return ",".join(("ro" if self.is_read_only else "rw", *self.options))


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """Setup of a container: command, arguments and environment with all references expanded, mounts, and security."""

    command: Sequence[str] = ()
    args: Sequence[str] = ()
    environment: Mapping[str, str] = {}
    mounts: Sequence[Mount] = ()
    security: Security = Security()
    has_terminal: bool = False
    has_input: bool = False


class Cgroup(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a cgroup; None leaves a setting alone. ``huge_pages`` maps the page size to bytes."""

    cpu_shares: int
    cpu_quota: int | None = None
    cpu_period: int | None = None
    memory: int | None = None
    huge_pages: dict[int, int] = {}


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of a container and its pod: their cgroups, and the container's OOM score."""

    quality: str
    """Quality of service class of the pod."""
    pod: Cgroup
    container: Cgroup
    oom_score: int


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One start of a container; ``devices`` are CDI ids, and ``attempt`` is the number of earlier runs."""

    pod: pods.Pod
    container: pods.Container
    devices: Sequence[str] = ()
    attempt: int = 0
    setup: Setup = Setup()
    bounds: Bounds | None = None

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.pod.metadata.annotations


class Exit(NamedTuple):
    """Exit of a container. The reason is empty if the code is enough."""

    code: int
    reason: str = ""
    message: str = ""


class Usage(NamedTuple):
    """CPU time of a container since its start, and its memory now."""

    cpu_seconds: float
    memory_bytes: int


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A command to run in a container."""

    words: Sequence[str]
    has_terminal: bool = False
    has_input: bool = False


class Session(Protocol):
    """Session with a command in a container, or with the container's own streams."""

    def output(self) -> AsyncIterator[tuple[str, bytes]]:
        """Yield the output with the name of its stream, until all writers have closed it."""

    async def feed(self, data: bytes) -> None:
        """Write input; ignored if the command does not read."""

    async def end_input(self) -> None:
        """Close the input."""

    def resize(self, width: int, height: int) -> None:
        """Set the size of the terminal; ignored if there is none."""

    async def wait(self) -> Exit:
        """Wait for the end, and return the exit."""

    async def close(self) -> None:
        """End the processes of the session, and nothing else."""


class Connection(NamedTuple):
    """An open connection to a port of a container."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class Container(Protocol):
    """A run of a container."""

    @property
    def id(self) -> str:
        """Id of the run in the runtime, ``runtime://...``."""

    @property
    def log(self) -> Log:
        """Log of the run."""

    async def wait(self) -> Exit:
        """Wait for the end, and return the exit. May be called any number of times."""

    async def stop(self, grace_seconds: float) -> None:
        """Ask the container to end, kill it after the grace period, and return when it has ended."""

    async def execute(self, command: Command) -> Session:
        """Run a command in the container.

        Raises:
            StreamError: the command cannot be run.
        """

    async def attach(self) -> Session:
        """Return a session with the container's own streams, from now on.

        Raises:
            StreamError: the container cannot be attached to.
        """

    async def connect(self, port: int) -> Connection:
        """Connect to a port of the container.

        Raises:
            StreamError: nothing listens there.
        """

    def usage(self) -> Usage:
        """Return the current usage."""


class Runtime(Protocol):
    """A container runtime."""

    @property
    def name(self) -> str:
        """Name and version that nodes report: ``simulated://1``."""

    @property
    def has_files(self) -> bool:
        """True if containers see files, so that they need volumes."""

    def unenforced(self, work: Work) -> Sequence[str]:
        """Return the fields of a container's security context that this runtime cannot enforce."""

    async def start(self, work: Work) -> Container:
        """Start a container.

        Raises:
            StartError: the container cannot be started now.
        """

    async def update(self, work: Work) -> None:
        """Apply other bounds to a running container.

        Raises:
            errors.NodeError: they cannot be applied now.
        """

    async def recall(self, work: Work, name: str, *, since: dt.datetime) -> Container | None:
        """Return a run that an earlier agent started, by its id and start time; None if it is lost.

        Only pod, container and attempt of the work count.

        Raises:
            errors.NodeError: the runtime does not answer now.
        """

    async def retain(self, uids: Set[str]) -> None:
        """Remove what earlier agents left of pods other than these."""

    def log(self, work: Work) -> Log | None:
        """Return the log of a run that ended before this agent started, by pod, container and attempt; None if lost."""

    def forget(self, uid: str) -> None:
        """Remove what the containers of a pod left; the pod is gone."""

    async def close(self) -> None:
        """Close the runtime at the end of the agent. Containers that no other agent could take over end with it."""


class StartError(Exception):
    """A container cannot be started now; ``reason`` is for its status, such as ``ErrImagePull``."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class StreamError(Exception):
    """A command, stream or connection that a container cannot provide."""
