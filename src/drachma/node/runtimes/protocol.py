"""What an agent asks of whatever runs containers."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Mapping, Sequence, Set
from typing import NamedTuple, Protocol

import msgspec

from drachma.api import pod as pods
from drachma.node.cgroups import Cgroup
from drachma.node.logs.log import Log
from drachma.node.runtimes.security import Security


class Mount(NamedTuple):
    """A file or directory of the machine that a container sees at a path of its own.

    Where nothing can be mounted, a container does without one that is dispensable.
    """

    source: str
    target: str
    is_read_only: bool = False
    is_dispensable: bool = False
    options: tuple[str, ...] = ()
    """More options of the mount, of nodev, noexec and nosuid."""

    @property
    def manner(self) -> str:
        """How it is mounted, as mount(8) says it: ``rw``, or ``ro,nosuid``."""
        return ",".join(("ro" if self.is_read_only else "rw", *self.options))


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What a container is started with: its own command, arguments and variables with all references replaced."""

    command: Sequence[str] = ()
    args: Sequence[str] = ()
    environment: Mapping[str, str] = {}
    mounts: Sequence[Mount] = ()
    security: Security = Security()
    has_terminal: bool = False
    has_input: bool = False


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """What a container and its pod may use of the machine, and how soon the kernel ends it when memory runs out."""

    quality: str
    """The pod's quality of service class."""
    pod: Cgroup
    container: Cgroup
    oom_score: int


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One start of a container: the pod, the container, the CDI ids of its devices, and how often it ran before.

    Without ``bounds`` it takes what it gets.
    """

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
    """How a container ended; a reason is for people, and empty where the code says enough."""

    code: int
    reason: str = ""
    message: str = ""


class Usage(NamedTuple):
    """What a container has used of the processor since it began, and what it has of the memory now."""

    cpu_seconds: float
    memory_bytes: int


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run in a container, and whether it has a terminal and somebody who types."""

    words: Sequence[str]
    has_terminal: bool = False
    has_input: bool = False


class Session(Protocol):
    """A command that runs in a container, or the container's own streams."""

    def output(self) -> AsyncIterator[tuple[str, bytes]]:
        """What is written, with the name of the stream, until nobody writes any more."""

    async def feed(self, data: bytes) -> None:
        """Gives it input; ignored where nobody reads."""

    async def end_input(self) -> None:
        """There is no more input."""

    def resize(self, width: int, height: int) -> None:
        """The size of the terminal has changed; ignored where there is none."""

    async def wait(self) -> Exit:
        """How it ended, once it has."""

    async def close(self) -> None:
        """Ends what was begun for the session, and nothing else."""


class Connection(NamedTuple):
    """An open connection to a port of a container."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class Container(Protocol):
    """A container that was started."""

    @property
    def id(self) -> str:
        """Its name in the runtime, ``runtime://...``."""

    @property
    def log(self) -> Log:
        """What it writes."""

    async def wait(self) -> Exit:
        """Returns when it has ended; any number of times."""

    async def stop(self, grace_seconds: float) -> None:
        """Asks it to end, and ends it after so many seconds; returns when it has ended."""

    async def execute(self, command: Command) -> Session:
        """Runs a command in it.

        Raises:
            StreamError: that cannot be done.
        """

    async def attach(self) -> Session:
        """Its own streams, as they are from now on.

        Raises:
            StreamError: that cannot be done.
        """

    async def connect(self, port: int) -> Connection:
        """A connection to a port that it listens on.

        Raises:
            StreamError: nobody listens there.
        """

    def usage(self) -> Usage:
        """What it uses now."""


class Runtime(Protocol):
    """Runs containers."""

    @property
    def name(self) -> str:
        """What nodes say about it: ``simulated://1``."""

    @property
    def has_files(self) -> bool:
        """Whether its containers see files, so that volumes are to be made for them."""

    def unenforced(self, security: Security) -> Sequence[str]:
        """Return the fields of a container's security context that this runtime cannot enforce."""

    async def start(self, work: Work) -> Container:
        """Starts a container.

        Raises:
            StartError: it cannot be started, or not yet.
        """

    async def recall(self, work: Work, name: str, *, since: dt.datetime) -> Container | None:
        """A container that an agent before this one started, by its id and since when it runs; None where it is lost.

        Of the work only pod, container and attempt count.

        Raises:
            errors.NodeError: that cannot be said now.
        """

    async def retain(self, uids: Set[str]) -> None:
        """Removes what an agent before this one left of other pods than these, which are all that there are."""

    def log(self, work: Work) -> Log | None:
        """What a run that ended before this agent began wrote, by pod, container and attempt; None where it is lost."""

    def forget(self, uid: str) -> None:
        """The pod of a uid is gone for good, and so is what its containers left."""

    async def close(self) -> None:
        """The agent ends, and with it containers that no other agent could look after."""


class StartError(Exception):
    """A container cannot be started now; ``reason`` is what its status says, as ``ErrImagePull``."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class StreamError(Exception):
    """A command, a stream or a connection that a container cannot give; the message is for people."""
