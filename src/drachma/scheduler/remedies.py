"""Carries out what PostFilter proposed for pods that fit nowhere: claims in the way are freed, pods are evicted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from typing import Any, Final

from drachma import errors
from drachma.api import resourceclaim
from drachma.claims import identity
from drachma.scheduler import evictor, metrics, peers, queue
from drachma.scheduler.framework import collision, remedy
from drachma.scheduler.plugins.dynamicresources import claimwriter
from drachma.scheduler.snapshot import podinfo

_log = logging.getLogger(__name__)

Spawn = Callable[[Coroutine[Any, Any, None], str], None]
"""Has something done in the background, under a name."""


class Remedies:
    """Tries to make pods fit next time."""

    def __init__(
        self,
        waiting: queue.Queue,
        *,
        writer: claimwriter.ClaimWriter,
        evicting: evictor.Evictor,
        measured: metrics.Metrics,
        spawn: Spawn,
        scheduler: str,
        others: peers.Peers | None = None,
    ) -> None:
        """``others`` is there where other schedulers write at the same time."""
        self._queue: Final = waiting
        self._writer: Final = writer
        self._evictor: Final = evicting
        self._metrics: Final = measured
        self._spawn: Final = spawn
        self._scheduler: Final = scheduler
        self._peers: Final = others

    def apply(self, proposed: remedy.Remedy, info: podinfo.PodInfo) -> None:
        """Starts what may help a pod; it takes effect later, and then wakes the pod."""
        match proposed:
            case remedy.Deallocation(claim=claim):
                what = f"deallocation of {identity.label(claim.metadata)}"
                self._spawn(_logged(self._deallocate(claim, info), what), what)
            case remedy.ClaimDeletion(claim=claim):
                what = f"deletion of {identity.label(claim.metadata)}"
                self._spawn(_logged(self._writer.delete(claim), what), what)
            case remedy.Eviction(victims=victims):
                self._metrics.preemption_victims.observe(len(victims))
                self._spawn(self._evict(proposed, info), f"preemption for {info.key}")

    async def _deallocate(self, claim: resourceclaim.ResourceClaim, info: podinfo.PodInfo) -> None:
        if self._peers is None or not claim.status.reserved_for:
            await self._writer.deallocate(claim)
            return
        # Another scheduler may be about to bind the pod with this very claim; then it is not in the way.
        hold = await self._peers.hold_back(info.pod)
        try:
            await self._writer.deallocate(claim)
        finally:
            self._peers.let_go(hold)

    async def _evict(self, eviction: remedy.Eviction, info: podinfo.PodInfo) -> None:
        if not await self._evictor.evict(eviction, info.pod, scheduler=self._scheduler):
            self._queue.activate(info.key)


async def _logged(write: Coroutine[Any, Any, object], what: str) -> None:
    try:
        await write
    except (errors.DrachmaError, claimwriter.ClaimError, collision.CollisionError) as error:
        _log.warning("%s failed: %s", what, error)
