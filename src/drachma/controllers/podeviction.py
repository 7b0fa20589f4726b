"""Evictions because of taints: how a pod is deleted, what people are told about it, and what is counted.

The two controllers that evict (from tainted nodes, from tainted devices) decide when a pod has to go; the rest is here.
Before a pod is deleted, the server is asked whether it is still the same one, and its status gets a condition that
says why.
"""

import enum
from typing import Final, NamedTuple

import msgspec
import prometheus_client

from drachma import errors
from drachma.api import event, pod
from drachma.claims import podstate
from drachma.controllers import podwrites
from drachma.runtime import Surroundings, events

_BUCKETS: Final = (0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 120, 180, 240)


class PodID(NamedTuple):
    """This very pod, and not a later one of its name."""

    namespace: str
    name: str
    uid: str


class Wording(msgspec.Struct, frozen=True, kw_only=True):
    """What a controller says: in metrics which taints, in events and in the pod's condition why."""

    taints: str
    event_reason: str
    condition_reason: str
    condition_message: str


class Outcome(enum.Enum):
    """What became of a pod that had to go."""

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
            f"How long after a {wording.taints} taint took effect a pod was deleted.",
            buckets=_BUCKETS,
            registry=surroundings.registry,
        )

    async def delete(self, subject: PodID, *, message: str) -> Outcome:
        """Deletes a pod, with a condition that says why and an event with a message; one that is going is left to."""
        try:
            current = await self._client.get(pod.Pod, subject.name, namespace=subject.namespace)
        except errors.ObjectNotFoundError:
            return Outcome.WAS_GONE
        if current.metadata.uid != subject.uid:
            return Outcome.WAS_GONE
        if current.metadata.deletion_timestamp is not None:
            return Outcome.WAS_GOING
        self.tell(subject, message)
        condition = podstate.disruption_target(
            current,
            reason=self._wording.condition_reason,
            message=self._wording.condition_message,
            now=self._clock.utc(),
        )
        if condition is not None:
            await podwrites.write_status(self._client, current, {"conditions": [condition]})
        return Outcome.DELETED if await podwrites.delete(self._client, current) else Outcome.WAS_GONE

    def tell(self, subject: PodID, message: str) -> None:
        """Records an event about a pod."""
        about = event.ObjectReference(api_version="v1", kind="Pod", **subject._asdict())
        self._recorder.record(about, type=events.NORMAL, reason=self._wording.event_reason, message=message)

    def count(self, delay_seconds: float) -> None:
        """One more pod went, so long after its time had come."""
        self._deletions.inc()
        self._delays.observe(delay_seconds)
