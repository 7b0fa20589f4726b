"""Evictions because of taints: deletion of a pod, its condition and event, and metrics.

The two controllers that evict, from tainted nodes and from tainted devices, decide when. Before a pod is deleted, the
server is asked whether it is still the same pod, and its status gets a condition with the reason.
"""

import enum
from typing import Final, NamedTuple

import msgspec
import prometheus_client

from drachma import errors
from drachma.api import event, pod
from drachma.claims import podstate
from drachma.controllers import objectwrites
from drachma.runtime import Surroundings, events

_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240)


class PodID(NamedTuple):
    """A pod with its uid, which a later pod of the same name does not have."""

    namespace: str
    name: str
    uid: str


class Wording(msgspec.Struct, frozen=True, kw_only=True):
    """Texts of a controller: the kind of taints for metrics, the reasons for events and conditions."""

    taints: str
    event_reason: str
    condition_reason: str
    condition_message: str


class EvictionResult(enum.Enum):
    """Result of an eviction."""

    DELETED = enum.auto()
    WAS_GOING = enum.auto()
    WAS_GONE = enum.auto()


class PodEvictor:
    """Deletes pods for one controller."""

    def __init__(self, surroundings: Surroundings, controller: str, *, wording: Wording) -> None:
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._recorder: Final = surroundings.recorder(controller)
        self._wording: Final = wording
        prefix = controller.replace("-", "_")
        self._deletions: Final = prometheus_client.Counter(
            f"{prefix}_pod_deletions_total",
            f"Pods deleted because of {wording.taints} taints.",
            registry=surroundings.registry,
        )
        self._delays: Final = prometheus_client.Histogram(
            f"{prefix}_pod_deletion_duration_seconds",
            f"Delay between the effect of a {wording.taints} taint and the deletion of a pod.",
            buckets=_BUCKETS,
            registry=surroundings.registry,
        )

    async def delete(self, subject: PodID, *, message: str) -> EvictionResult:
        """Delete a pod, with a condition and an event that give the reason, unless it is being deleted."""
        try:
            current = await self._client.get(pod.Pod, subject.name, namespace=subject.namespace)
        except errors.ObjectNotFoundError:
            return EvictionResult.WAS_GONE
        if current.metadata.uid != subject.uid:
            return EvictionResult.WAS_GONE
        if current.metadata.deletion_timestamp is not None:
            return EvictionResult.WAS_GOING
        self.tell(subject, message)
        condition = podstate.disruption_target(
            current,
            reason=self._wording.condition_reason,
            message=self._wording.condition_message,
            now=self._clock.utc(),
        )
        if condition is not None:
            await objectwrites.write_pod_status(self._client, current, {"conditions": [condition]})
        return (
            EvictionResult.DELETED if await objectwrites.delete_pod(self._client, current) else EvictionResult.WAS_GONE
        )

    def tell(self, subject: PodID, message: str) -> None:
        """Record an event about a pod."""
        reference = event.ObjectReference(api_version="v1", kind="Pod", **subject._asdict())
        self._recorder.record(reference, type=events.NORMAL, reason=self._wording.event_reason, message=message)

    def count(self, delay_seconds: float) -> None:
        """Count an eviction and its delay."""
        self._deletions.inc()
        self._delays.observe(delay_seconds)
