"""What an agent asks of whatever runs containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from drachma.api import pod as pods


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """One start of a container: the pod, the container, the CDI ids of its devices, and how often it ran before."""

    pod: pods.Pod
    container: pods.Container
    devices: Sequence[str] = ()
    attempt: int = 0

    @property
    def annotations(self) -> Mapping[str, str]:
        return self.pod.metadata.annotations


class Exit(NamedTuple):
    """How a container ended; a reason is for people, and empty where the code says enough."""

    code: int
    reason: str = ""
    message: str = ""


class Container(Protocol):
    """A container that was started."""

    @property
    def id(self) -> str:
        """Its name in the runtime, ``runtime://...``."""

    async def wait(self) -> Exit:
        """Returns when it has ended; any number of times."""

    async def stop(self, grace_seconds: float) -> None:
        """Asks it to end, and ends it after so many seconds; returns when it has ended."""


class Runtime(Protocol):
    """Runs containers."""

    @property
    def name(self) -> str:
        """What nodes say about it: ``simulated://1``."""

    async def start(self, work: Work) -> Container:
        """Starts a container.

        Raises:
            StartError: it cannot be started, or not yet.
        """


class StartError(Exception):
    """A container cannot be started now; ``reason`` is what its status says, as ``ErrImagePull``."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
