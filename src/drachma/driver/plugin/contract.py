"""What a driver does when a node agent calls it, without any gRPC."""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from drachma.api import resourceclaim


class ClaimReference(NamedTuple):
    """A claim as node agents name it; the claim itself may be gone."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class PreparedDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A device that is ready: for which requests, and what container runtimes know it by."""

    requests: tuple[str, ...]
    pool: str
    device: str
    cdi_device_ids: tuple[str, ...] = ()
    share_id: str | None = None


class Status(enum.IntEnum):
    """How a device is, by its number on the wire."""

    UNKNOWN = 0
    HEALTHY = 1
    UNHEALTHY = 2


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How a device is; without news within ``timeout`` it counts as unknown, after the agent's own time where 0."""

    pool: str
    device: str
    status: Status
    message: str = ""
    updated: dt.datetime | None = None
    timeout: dt.timedelta = dt.timedelta()


class Plugin(Protocol):
    """Answers calls for several claims at once. What it raises fails the whole call."""

    async def prepare(
        self, claims: Sequence[resourceclaim.ResourceClaim]
    ) -> Mapping[str, Sequence[PreparedDevice] | Exception]:
        """By the uid of each claim its devices, or why it has none."""

    async def unprepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, Exception | None]:
        """By the uid of each claim None, or why it could not be done."""

    def watch_health(self) -> AsyncIterator[Sequence[Health]]:
        """How devices are, again and again: those that are not told of any more count as unknown after a while."""
