"""What is tried for a pod that fits nowhere: a claim in the way is freed, or less important pods are evicted."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.api import resourceclaim
from drachma.claims import identity, reservation
from drachma.scheduler import custody, evictor, metrics, nominations, podinfo, preemption, queue, verdict
from drachma.scheduler.decision import Unfit
from drachma.scheduler.dynamicresources import claimwriter

_log = logging.getLogger(__name__)

_UNNAMED_NODE: Final = "unnamed"

Spawn = Callable[[Coroutine[Any, Any, None], str], None]
"""Has something done in the background, under a name."""


class Tried(NamedTuple):
    """What was tried, in the words of the pod's condition."""

    message: str
    node: str = ""
    """The node that is kept for the pod, where others are evicted from it."""
    is_hopeless: bool = False
    """Whether no node is worth keeping for the pod."""


class PostFilter:
    """Tries to make a pod fit next time."""

    def __init__(
        self,
        victims: preemption.Preemption,
        *,
        waiting: queue.Queue,
        nominated: nominations.Nominations,
        writer: claimwriter.ClaimWriter,
        evicting: evictor.Evictor,
        measured: metrics.Metrics,
        chance: random.Random,
        spawn: Spawn,
        scheduler: str,
        holding: custody.Custody | None = None,
    ) -> None:
        """``holding`` is there where other schedulers write at the same time."""
        self._preemption: Final = victims
        self._queue: Final = waiting
        self._nominated: Final = nominated
        self._writer: Final = writer
        self._evictor: Final = evicting
        self._metrics: Final = measured
        self._chance: Final = chance
        self._spawn: Final = spawn
        self._scheduler: Final = scheduler
        self._custody: Final = holding

    def try_for(self, unfit: Unfit) -> Tried:
        """Starts what may help; it takes effect later, and then wakes the pod."""
        if not unfit.diagnosis.node_count:
            return Tried("")
        try:
            freed = self._free_claim(unfit)
            found = self._preempt(unfit)
        except verdict.AbortError as error:
            return Tried(str(error))
        if isinstance(found, preemption.Candidate):
            return Tried(f"preemption: {found.message}", found.node)
        said = [text for text in (freed, f"preemption: {found}" if found else "") if text]
        return Tried(", ".join(said), is_hopeless=found.startswith("0/"))

    def _free_claim(self, unfit: Unfit) -> str:
        """Have a claim that is in the way and not in use deallocated, or one that is left over deleted."""
        plan = unfit.plan
        if plan is None:
            return ""
        for number in self._chance.sample(unfit.unavailable, len(unfit.unavailable)):
            claim = plan.claims[number].claim
            users = claim.status.reserved_for
            if not users or (len(users) == 1 and reservation.is_reserved_for(claim, unfit.info.pod)):
                what = f"deallocation of {identity.label(claim.metadata)}"
                self._spawn(_logged(self._deallocate(claim, unfit.info), what), what)
                return "deallocation of ResourceClaim completed"
        if plan.is_stale and plan.special is not None:
            what = f"deletion of {identity.label(plan.special.metadata)}"
            self._spawn(_logged(self._writer.delete(plan.special), what), what)
            return "deletion of ResourceClaim completed"
        return ""

    async def _deallocate(self, claim: resourceclaim.ResourceClaim, info: podinfo.PodInfo) -> None:
        if self._custody is None or not claim.status.reserved_for:
            await self._writer.deallocate(claim)
            return
        # Another scheduler may be about to bind the pod with this very claim; then it is not in the way.
        node = _node_of(claim)
        if await self._custody.is_taken(info.pod, node):
            try:
                await self._writer.deallocate(claim)
            finally:
                await self._custody.let_go(info.pod, node)

    def _preempt(self, unfit: Unfit) -> preemption.Candidate | str:
        self._metrics.preemption_attempts.inc()
        found = self._preemption.find(unfit.info, unfit.diagnosis)
        if isinstance(found, preemption.Candidate):
            self._metrics.preemption_victims.observe(len(found.victims))
            for other in self._nominated.behind(unfit.info, found.node):
                self._nominated.remove(other.uid)
                self._queue.activate(other.key)
            self._spawn(self._evict(unfit.info, found), f"preemption for {unfit.info.key}")
        return found

    async def _evict(self, info: podinfo.PodInfo, candidate: preemption.Candidate) -> None:
        if not await self._evictor.evict(candidate, info.pod, scheduler=self._scheduler):
            self._queue.activate(info.key)


def _node_of(claim: resourceclaim.ResourceClaim) -> str:
    """A node that a claim was allocated for, or a name for those that are not known by name."""
    selector = claim.status.allocation.node_selector if claim.status.allocation is not None else None
    for term in selector.node_selector_terms if selector is not None else ():
        for field in term.match_fields:
            return str(field.values[0])
    return _UNNAMED_NODE


async def _logged(write: Coroutine[Any, Any, object], what: str) -> None:
    try:
        await write
    except (errors.DrachmaError, claimwriter.ClaimError) as error:
        _log.warning("%s failed: %s", what, error)
