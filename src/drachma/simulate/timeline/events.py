"""Events of a simulation over time: arrivals of jobs, and changes of the cluster. All are immutable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

import msgspec

from drachma.api import meta, pod


class JobShape(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """Pods that a job consists of. Jobs that share a shape are alike to the scheduler; shapes differ by identity."""

    spec: pod.PodSpec
    count: int = 1
    labels: Mapping[str, str] = {}
    namespace: str = "default"
    queue: str = ""
    """Local queue; empty for jobs that need no quota."""
    is_gang: bool = False
    """True if either all pods start or none."""

    @property
    def priority(self) -> int:
        """Priority of the pods."""
        return self.spec.priority or 0


class Arrival(NamedTuple):
    """Job that arrives."""

    time: float
    """Seconds since the start of the simulation."""
    name: str
    shape: JobShape
    duration: float | None
    """Seconds that each pod runs; None if it runs until the end of the simulation."""


class NodeOutage(NamedTuple):
    """Nodes that are gone for some time. Their pods end and are created again."""

    time: float
    nodes: tuple[str, ...]
    until: float | None
    """Time of the repair; None if there is none."""
    reason: str = "failure"


class DeviceFault(NamedTuple):
    """Devices that fail for some time. Pods that use them end and are created again."""

    time: float
    devices: tuple[tuple[str, str], ...]
    """Node and name of each device."""
    until: float | None
    """Time of the repair; None if there is none."""


class ClusterChange(NamedTuple):
    """Objects that are added, changed or removed at a time."""

    time: float
    applied: tuple[meta.Object, ...] = ()
    removed: tuple[meta.Object, ...] = ()
    title: str = ""


Event: TypeAlias = Arrival | NodeOutage | DeviceFault | ClusterChange


def title(event: Event) -> str:
    """Return the name of an event in messages."""
    match event:
        case Arrival():
            return f"job {event.shape.namespace}/{event.name}"
        case NodeOutage():
            return f"{event.reason} of node {', '.join(event.nodes)}"
        case DeviceFault():
            return f"failure of device {', '.join('/'.join(each) for each in event.devices)}"
        case ClusterChange():
            return f"change {event.title}"


class EventStream:
    """Events in the order of their times, of which the next one can be looked at before it is taken."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._source: Final = iter(events)
        self.head: Event | None = next(self._source, None)
        """Next event; None at the end."""
        self.taken = 0
        """Number of events taken so far."""

    def take(self) -> None:
        """Go on to the event after the next one."""
        self.head = next(self._source, None)
        self.taken += 1
