"""Carries out what PostFilter proposed for pods that fit nowhere: claims in the way are freed, pods are evicted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from drachma import errors
from drachma.api import resourceclaim
from drachma.claims import identity
from drachma.runtime import cache
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
        self._evicting: Final[set[str]] = set()

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
                preemptor = remedy.Preemptor("pod", info.uid)
                self._spawn(self._evict(proposed, preemptor, (info.key,)), f"preemption for {info.key}")

    def make_room(self, eviction: remedy.Eviction, preemptor: remedy.Preemptor, members: Sequence[cache.Key]) -> None:
        """Starts the eviction of pods for a gang, as :meth:`apply` does for a pod."""
        self._metrics.workload_preemption_victims.observe(len(eviction.victims))
        self._evicting.add(preemptor.uid)
        self._spawn(self._evict(eviction, preemptor, members), f"preemption for {preemptor.kind} {preemptor.uid}")

    def is_making_room(self, preemptor: remedy.Preemptor) -> bool:
        """Whether pods are still being evicted for a gang."""
        return preemptor.uid in self._evicting

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

    async def _evict(
        self, eviction: remedy.Eviction, preemptor: remedy.Preemptor, members: Sequence[cache.Key]
    ) -> None:
        try:
            is_done = await self._evictor.evict(eviction, preemptor, scheduler=self._scheduler)
        finally:
            self._evicting.discard(preemptor.uid)
        if not is_done:
            for key in members:
                self._queue.activate(key)


async def _logged(write: Coroutine[Any, Any, object], what: str) -> None:
    try:
        await write
    except (errors.DrachmaError, claimwriter.ClaimError, collision.CollisionError) as error:
        _log.warning("%s failed: %s", what, error)
