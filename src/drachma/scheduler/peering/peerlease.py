"""The lease of one of several schedulers: it says that the scheduler lives, and carries its announcements.

All that is announced while one write is under way, and a moment longer, goes into the next: a few writes a second,
however many pods. Who cannot renew the lease in time has to assume that others have taken over
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
"""The leases of all schedulers."""

ANNOTATION: Final = "drachma/announcements"

_VALID_SECONDS: Final = 15
_CURRENT_SECONDS: Final = 10.0
_RENEW_SECONDS: Final = 2.0
_GATHER_SECONDS: Final = 0.1
_PAUSE_SECONDS: Final = 1.0

_REMEMBERED_SECONDS: Final = 5.0
"""How long it is written that something was taken back, for everybody to see."""


class PeerLease:
    """Made anew for every process; ``name`` tells it from all others."""

    def __init__(self, client: protocol.Client, *, scheduler: str, time: clock.Clock, chance: random.Random) -> None:
        self.name: Final = f"drachma-scheduler-{chance.getrandbits(64):016x}"
        self._client: Final = client
        self._scheduler: Final = scheduler
        self._clock: Final = time
        self._texts: Final[dict[str, bytes]] = {}
        self._taken_back: Final[dict[str, float]] = {}
        self._due: Final = asyncio.Event()
        self._next: asyncio.Future[int] | None = None
        self._began = -math.inf
        self._renewed = -math.inf

    @property
    def is_current(self) -> bool:
        """Whether nobody can have taken this scheduler for dead."""
        return self._clock.monotonic() - self._renewed < _CURRENT_SECONDS

    async def announce(self, contents: Mapping[str, announcements.Announcement]) -> int:
        """Returns once announcements of pods, by uid, are written in one write: the version of the lease."""
        for uid, content in contents.items():
            self._texts[uid] = announcements.encode(content)
            self._taken_back.pop(uid, None)
        return await self.written()

    async def written(self) -> int:
        """Returns once the lease is written as it is now: its version."""
        self._due.set()
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        return await asyncio.shield(self._next)

    def take_back(self, uid: str) -> None:
        """Have it written soon that a pod is not in hand any more, and goes nowhere."""
        if self._texts.pop(uid, None) is not None:
            self._taken_back[uid] = self._clock.monotonic() + _REMEMBERED_SECONDS
            self._due.set()

    def drop(self, uid: str) -> None:
        """Have the announcement of a pod that was bound left out of the next write."""
        self._texts.pop(uid, None)

    async def run(self) -> None:
        """Writes what is announced, and renews the lease, until cancelled; then gives it up."""
        try:
            while True:
                await self._write()
                await self._until_due()
        finally:
            with contextlib.suppress(errors.DrachmaError):
                await self._client.delete(lease.Lease, self.name, namespace=NAMESPACE)

    async def _until_due(self) -> None:
        """Returns when there is something to write, but not too soon after the last time; or when it has to be."""
        tasks = {
            asyncio.ensure_future(self._due.wait()),
            asyncio.ensure_future(self._clock.sleep(_RENEW_SECONDS)),
        }
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        left = self._began + _GATHER_SECONDS - self._clock.monotonic()
        if left > 0:
            await self._clock.sleep(left)

    async def _write(self) -> None:
        waiting: list[asyncio.Future[int]] = []
        while True:
            self._due.clear()
            if self._next is not None:
                waiting.append(self._next)
                self._next = None
            began = self._began = self._clock.monotonic()
            try:
                version = await self._put(self._content())
            except errors.DrachmaError as error:
                _log.warning("lease %s/%s not renewed: %s", NAMESPACE, self.name, error)
                await self._clock.sleep(_PAUSE_SECONDS)
                continue
            self._renewed = began
            for future in waiting:
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
        """Writes the lease, and makes it where there is none; returns its version."""
        try:
            patch = patches.merge(content)
            written = await self._client.patch(lease.Lease, self.name, namespace=NAMESPACE, patch=patch)
            return resourceversion.number(written.metadata.resource_version)
        except errors.ObjectNotFoundError:
            # The first time; or others took this scheduler for dead.
            place = {"name": self.name, "namespace": NAMESPACE, "labels": {"drachma/component": "scheduler"}}
            document = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": {**content["metadata"], **place},
                "spec": content["spec"],
            }
            made = await self._client.create_document(lease.Lease, document)
            return int(made["metadata"]["resourceVersion"])
