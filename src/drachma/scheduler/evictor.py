"""Carries out what preemption decided: victims learn why they have to go, and are deleted."""

from __future__ import annotations

import logging
from typing import Final

from drachma import errors
from drachma.api import pod
from drachma.claims import wellknown
from drachma.client import patches, protocol
from drachma.runtime import clock, events
from drachma.scheduler.framework import remedy

_log = logging.getLogger(__name__)


class Evictor:
    """Evicts pods through a client."""

    def __init__(self, client: protocol.Client, *, time: clock.Clock, recorder: events.Recorder) -> None:
        self._client: Final = client
        self._clock: Final = time
        self._recorder: Final = recorder

    async def evict(self, eviction: remedy.Eviction, preemptor: remedy.Preemptor, *, scheduler: str) -> bool:
        """Whether all victims are on their way; what fails is logged, and tried again when the preemptor is."""
        is_done = True
        for victim in eviction.victims:
            if victim.metadata.deletion_timestamp is not None:
                continue
            try:
                await self._evict(victim, eviction, preemptor, scheduler=scheduler)
            except errors.ObjectNotFoundError:
                continue
            except errors.DrachmaError as error:
                is_done = False
                _log.warning("pod %s/%s not preempted: %s", victim.metadata.namespace, victim.metadata.name, error)
        return is_done

    async def _evict(
        self, victim: pod.Pod, eviction: remedy.Eviction, preemptor: remedy.Preemptor, *, scheduler: str
    ) -> None:
        condition = {
            "type": wellknown.DISRUPTION_TARGET,
            "status": "True",
            "reason": wellknown.PREEMPTION_BY_SCHEDULER,
            "message": f"{scheduler}: preempting to accommodate a higher priority {preemptor.kind}",
            "lastTransitionTime": self._clock.utc().replace(microsecond=0),
        }
        name, namespace = victim.metadata.name, victim.metadata.namespace
        await self._client.patch(
            pod.Pod,
            name,
            namespace=namespace,
            subresource="status",
            patch=patches.strategic({"status": {"conditions": [condition]}}, patches.same(victim)),
        )
        await self._client.delete(pod.Pod, name, namespace=namespace, preconditions=patches.same(victim))
        self._recorder.record(
            victim,
            type=events.NORMAL,
            reason="Preempted",
            message=f"Preempted by {preemptor.kind} {preemptor.uid} on node {eviction.node}",
        )
