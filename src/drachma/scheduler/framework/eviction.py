"""Eviction: the remedy that preemption proposes, for a pod or for a gang."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import NamedTuple

from drachma import errors
from drachma.api import pod, resourceclaim
from drachma.claims import conditions, identity, wellknown
from drachma.client import patches
from drachma.runtime import events
from drachma.scheduler.framework import handle

Claim = resourceclaim.ResourceClaim

_log = logging.getLogger(__name__)


class Preemptor(NamedTuple):
    """Pod or gang that other pods are evicted for."""

    kind: str
    """Upstream's word: ``pod`` or ``podgroup``."""
    uid: str


class Eviction(NamedTuple):
    """Eviction of less important pods. A remedy."""

    preemptor: Preemptor
    node: str
    """Node that the pods leave; for a gang, upstream's word for the whole cluster."""
    victims: tuple[pod.Pod, ...]
    """Pods to evict, most important first."""
    violations: int = 0
    """Number of evictions beyond what disruption budgets allow."""
    freed: tuple[resourceclaim.ResourceClaim, ...] = ()
    """Claims whose devices the eviction frees, if it is for their devices."""
    waiting: tuple[pod.Pod, ...] = ()
    """Pods that need these devices."""

    @property
    def title(self) -> str:
        """Name of the action in logs, one for each preemptor."""
        return title(self.preemptor)

    async def apply(self, handle: handle.Handle) -> bool:
        """Delete the victims, each with a condition that says why. Return False if some could not be deleted.

        Failures are logged. The preemptor's next attempt evicts the remaining victims.
        """
        if self.freed and not await self._is_still_helpful(handle):
            return False
        handle.measures.preempted(self.preemptor.kind, len(self.victims))
        is_done = True
        for victim in self.victims:
            if victim.metadata.deletion_timestamp is not None:
                continue
            try:
                await self._evict(victim, handle)
            except errors.ObjectNotFoundError:
                continue
            except errors.DrachmaError as error:
                is_done = False
                _log.warning("pod %s/%s not preempted: %s", victim.metadata.namespace, victim.metadata.name, error)
        return is_done

    async def _is_still_helpful(self, handle: handle.Handle) -> bool:
        """Ask the server again, because evicted pods do not come back: the pods wait, and the devices are in use."""
        for each in self.waiting:
            try:
                current = await handle.client.get(pod.Pod, each.metadata.name, namespace=each.metadata.namespace)
            except errors.ObjectNotFoundError:
                return False
            if current.metadata.uid != each.metadata.uid or current.spec.node_name:
                return False
        for claim in self.freed:
            metadata = claim.metadata
            try:
                stored_claim = await handle.client.get(Claim, metadata.name, namespace=metadata.namespace)
            except errors.ObjectNotFoundError:
                return False
            is_same = stored_claim.metadata.uid == metadata.uid
            if not is_same or stored_claim.status.reserved_for != claim.status.reserved_for:
                return False
        return True

    async def _evict(self, victim: pod.Pod, handle: handle.Handle) -> None:
        condition = conditions.document(
            wellknown.DISRUPTION_TARGET,
            "True",
            reason=wellknown.PREEMPTION_BY_SCHEDULER,
            message=f"{handle.scheduler}: preempting to accommodate a higher priority {self.preemptor.kind}",
            now=handle.clock.utc(),
        )
        name, namespace = victim.metadata.name, victim.metadata.namespace
        await handle.client.patch(
            pod.Pod,
            name,
            namespace=namespace,
            subresource="status",
            patch=patches.strategic({"status": {"conditions": [condition]}}, patches.same(victim)),
        )
        await handle.client.delete(pod.Pod, name, namespace=namespace, preconditions=patches.same(victim))
        handle.recorder.record(
            victim,
            type=events.NORMAL,
            reason="Preempted",
            message=f"Preempted by {self.preemptor.kind} {self.preemptor.uid} on node {self.node}",
            component=handle.scheduler,
        )


def freed_devices(claims: Iterable[Claim]) -> str:
    """Return the end of a message that names the devices which an eviction frees; nothing if there are none."""
    devices = [
        str(identity.device_of(result))
        for claim in claims
        if claim.status.allocation is not None
        for result in claim.status.allocation.devices.results
    ]
    return f", freeing {', '.join(devices)}" if devices else ""


def title(preemptor: Preemptor) -> str:
    """Return the title of every eviction for a preemptor."""
    return f"preemption for {preemptor.kind} {preemptor.uid}"
