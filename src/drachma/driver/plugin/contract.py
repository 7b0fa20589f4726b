"""Operations of a driver that node agents call, without gRPC."""

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
    """Health of a device, by its number on the wire."""

    UNKNOWN = 0
    HEALTHY = 1
    UNHEALTHY = 2


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Health of a device. It counts as unknown after ``timeout`` without an update; 0 is the agent's default."""

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
        """Yield the health of devices repeatedly. Devices that are no longer listed count as unknown after a while."""
