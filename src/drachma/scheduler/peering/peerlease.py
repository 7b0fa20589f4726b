"""The lease of one of several schedulers: it shows that the scheduler lives, and carries its announcements.

Everything that is announced during one write, and a moment longer, goes into the next write: a few writes a second for
any number of pods. A scheduler that cannot renew its lease in time must assume that others have taken over
(:attr:`PeerLease.is_current`), well before they do.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import random
from collections.abc import Mapping
from typing import Any, Final

from drachma import errors
from drachma.api import lease, meta
from drachma.client import patches, protocol
from drachma.runtime import clock, resourceversion
from drachma.scheduler.peering import announcements, membership

_log = logging.getLogger(__name__)

NAMESPACE: Final = "kube-system"
SELECTION: Final = protocol.Selection(NAMESPACE, labels="drachma/component=scheduler")
"""Leases of all schedulers."""

ANNOTATION: Final = "drachma/announcements"

_VALID_SECONDS: Final = 15
_CURRENT_SECONDS: Final = 10.0
_RENEW_SECONDS: Final = 2.0
_GATHER_SECONDS: Final = 0.1
_PAUSE_SECONDS: Final = 1.0

_REMEMBERED_SECONDS: Final = 5.0
"""Time for which the lease shows that an announcement was taken back, so that all peers see it."""


class PeerLease:
    """Lease of this process; every process has a new ``name``."""

    def __init__(self, client: protocol.Client, *, scheduler: str, clock: clock.Clock, rng: random.Random) -> None:
        self.name: Final = f"drachma-scheduler-{rng.getrandbits(64):016x}"
        self._client: Final = client
        self._scheduler: Final = scheduler
        self._clock: Final = clock
        self._texts: Final[dict[str, bytes]] = {}
        self._taken_back: Final[dict[str, float]] = {}
        self._due: Final = asyncio.Event()
        self._next: asyncio.Future[int] | None = None
        self._began = -math.inf
        self._renewed = -math.inf

    @property
    def is_current(self) -> bool:
        """True if no peer can have declared this scheduler dead."""
        return self._clock.monotonic() - self._renewed < _CURRENT_SECONDS

    async def announce(self, contents: Mapping[str, announcements.Announcement]) -> int:
        """Announce pods by uid in one write, and return the version of the lease."""
        for uid, content in contents.items():
            self._texts[uid] = announcements.encode(content)
            self._taken_back.pop(uid, None)
        return await self.written()

    async def written(self) -> int:
        """Return the version of the lease once its current content is written."""
        self._due.set()
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        return await asyncio.shield(self._next)

    def take_back(self, uid: str) -> None:
        """Write soon that a pod is released and goes to no node."""
        if self._texts.pop(uid, None) is not None:
            self._taken_back[uid] = self._clock.monotonic() + _REMEMBERED_SECONDS
            self._due.set()

    def drop(self, uid: str) -> None:
        """Leave the announcement of a bound pod out of the next write."""
        self._texts.pop(uid, None)

    async def run(self) -> None:
        """Write announcements and renew the lease until cancelled. Then give the lease up."""
        try:
            while True:
                await self._write()
                await self._wait_until_due()
        finally:
            with contextlib.suppress(errors.DrachmaError):
                await self._client.delete(lease.Lease, self.name, namespace=NAMESPACE)

    async def _wait_until_due(self) -> None:
        """Return when there is something to write, at a limited rate, or when the lease must be renewed."""
        tasks = {
            asyncio.ensure_future(self._due.wait()),
            asyncio.ensure_future(self._clock.sleep(_RENEW_SECONDS)),
        }
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        seconds = self._began + _GATHER_SECONDS - self._clock.monotonic()
        if seconds > 0:
            await self._clock.sleep(seconds)

    async def _write(self) -> None:
        waiters: list[asyncio.Future[int]] = []
        while True:
            self._due.clear()
            if self._next is not None:
                waiters.append(self._next)
                self._next = None
            began = self._began = self._clock.monotonic()
            try:
                version = await self._put(self._content())
            except errors.DrachmaError as error:
                _log.warning("lease %s/%s not renewed: %s", NAMESPACE, self.name, error)
                await self._clock.sleep(_PAUSE_SECONDS)
                continue
            self._renewed = began
            for future in waiters:
                future.set_result(version)
            return

    def _content(self) -> dict[str, Any]:
        now = self._clock.monotonic()
        for uid in [uid for uid, until in self._taken_back.items() if until <= now]:
            del self._taken_back[uid]
        texts = {**self._texts, **dict.fromkeys(self._taken_back, announcements.TAKEN_BACK)}
        return {
            "metadata": {
                "annotations": {
                    membership.SCHEDULER_ANNOTATION: self._scheduler,
                    ANNOTATION: announcements.join(texts),
                }
            },
            "spec": {
                "holderIdentity": self.name,
                "leaseDurationSeconds": _VALID_SECONDS,
                "renewTime": meta.micro_time_text(self._clock.utc()),
            },
        }

    async def _put(self, content: dict[str, Any]) -> int:
        """Write the lease, or create it if it does not exist. Return its version."""
        try:
            patch = patches.merge(content)
            patched_lease = await self._client.patch(lease.Lease, self.name, namespace=NAMESPACE, patch=patch)
            return resourceversion.number(patched_lease.metadata.resource_version)
        except errors.ObjectNotFoundError:
            # This is the first write, or peers have declared this scheduler dead.
            place = {"name": self.name, "namespace": NAMESPACE, "labels": {"drachma/component": "scheduler"}}
            document = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {**content["metadata"], **place},
                "spec": content["spec"],
            }
            created_lease = await self._client.create_document(lease.Lease, document)
            return int(created_lease["metadata"]["resourceVersion"])
