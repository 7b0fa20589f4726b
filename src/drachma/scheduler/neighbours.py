"""Other schedulers that allocate from the same devices and know nothing of this one, such as kube-scheduler.

The API does not prevent two schedulers from allocating one device twice. The order of writes decides which of two
allocations is valid: the earlier one. This scheduler checks each of its own allocations before it binds the pod, and
takes it back if it was later. If the other scheduler was later, it does not find out. So this scheduler watches the
allocations of all others, and undoes those that were later than an allocation of the same device: it deletes the pods
that use the claim, and clears the claim if no pod is bound with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final

from drachma import errors
from drachma.api import pod, resourceclaim
from drachma.claims import conditions, identity, wellknown
from drachma.client import patches, protocol
from drachma.runtime import clock, events, informer, informers
from drachma.scheduler.framework import handle
from drachma.scheduler.peering import claimorder, progress
from drachma.scheduler.snapshot import Snapshot

_log = logging.getLogger(__name__)

REASON: Final = "DeviceAllocatedTwice"
"""Reason of events and conditions."""

_GRACE_SECONDS: Final = 2.0
"""Time in which the writer of an allocation may take it back itself, as this scheduler does with its own."""

Claim = resourceclaim.ResourceClaim
_Spawn = Callable[[Coroutine[Any, Any, None], str], None]


class Neighbours:
    """Allocations of all schedulers, in their order."""

    def __init__(
        self,
        client: protocol.Client,
        informers: informers.Informers,
        snapshot: Snapshot,
        *,
        name: str,
        recorder: events.Recorder,
        measures: handle.Measures,
        clock: clock.Clock,
        spawn: _Spawn,
    ) -> None:
        self._client: Final = client
        self._claims: Final = informers.of(Claim)
        self._pods: Final = informers.of(pod.Pod)
        self._tracker: Final = snapshot.devices.claims
        self._name: Final = name
        self._recorder: Final = recorder
        self._measures: Final = measures
        self._clock: Final = clock
        self._spawn: Final = spawn
        self._progress: Final = progress.Progress(self._claims)
        self._order: Final = claimorder.ClaimOrder(snapshot, self._progress)
        self._under_examination: Final[set[str]] = set()

    def register(self) -> None:
        """Register handlers, after all other handlers."""
        self._claims.add_handler(
            informer.Handler(
                added=self._progress.heard,
                updated=lambda _, new: self._changed(new),
                deleted=self._progress.heard,
            )
        )

    async def check_claims(self, claims: Iterable[Claim]) -> None:
        """Return once no other scheduler can own the devices of these claims. Raises CollisionError if one does."""
        try:
            await self._order.check(claims)
        except handle.CollisionError:
            self._measures.allocated_twice("withdrawn")
            raise

    def _changed(self, claim: Claim) -> None:
        self._progress.heard(claim)
        uid = claim.metadata.uid
        if uid in self._under_examination or self._order.collision(claim) is None:
            return
        self._under_examination.add(uid)
        self._spawn(self._examine(claim), f"examination of claim {identity.label(claim.metadata)}")

    async def _examine(self, claim: Claim) -> None:
        """Undo an allocation that is still there after a while, if an earlier one has the same devices."""
        try:
            await self._clock.sleep(_GRACE_SECONDS)
            current = self._tracker.get(claim.metadata.namespace, claim.metadata.name)
            if current is None or current.metadata.uid != claim.metadata.uid:
                return
            problem = self._order.collision(current)
            if problem is not None:
                await self._undo(current, problem)
        except errors.DrachmaError as error:
            # The claim has changed, or the server does not answer; doctor finds collisions that stay.
            _log.warning("claim %s: its allocation could not be undone: %s", identity.label(claim.metadata), error)
        finally:
            self._under_examination.discard(claim.metadata.uid)

    async def _undo(self, claim: Claim, problem: str) -> None:
        _log.warning("%s: another scheduler gave out devices that were in use; undoing the later allocation", problem)
        self._measures.allocated_twice("undone")
        self._recorder.record(claim, type=events.WARNING, reason=REASON, message=problem)
        consumers = {each.uid for each in claim.status.reserved_for}
        bound = [each for each in self._pods.cache if each.metadata.uid in consumers and each.spec.node_name]
        for each in bound:
            await self._delete(each, problem)
        if not bound:
            status = {"allocation": None, "reservedFor": None, "devices": None}
            await self._client.patch(
                Claim,
                claim.metadata.name,
                namespace=claim.metadata.namespace,
                subresource="status",
                patch=patches.merge({"status": status}, patches.unchanged(claim)),
            )

    async def _delete(self, victim: pod.Pod, problem: str) -> None:
        """Delete a pod that uses devices of another one; the controller of claims frees its claim afterwards."""
        name, namespace = victim.metadata.name, victim.metadata.namespace
        condition = conditions.document(
            wellknown.DISRUPTION_TARGET,
            "True",
            reason=REASON,
            message=f"{self._name}: {problem}",
            now=self._clock.utc(),
        )
        try:
            await self._client.patch(
                pod.Pod,
                name,
                namespace=namespace,
                subresource="status",
                patch=patches.strategic({"status": {"conditions": [condition]}}, patches.same(victim)),
            )
            await self._client.delete(pod.Pod, name, namespace=namespace, preconditions=patches.same(victim))
        except errors.ObjectNotFoundError:
            return
        self._recorder.record(victim, type=events.WARNING, reason=REASON, message=problem)
