"""Input and result of a step of a workload, and the changes that all rules make."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from drachma.claims import podclaims
from drachma.queueing import conditions
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.devices.mappings import NO_MAPPINGS, DeviceMappings
from drachma.queueing.devices.objects import DeviceObjects
from drachma.queueing.devices.requests import DeviceRequests
from drachma.queueing.kinds import clusterqueue, localqueue, workload
from drachma.queueing.workloads import admissibility, settlement, transitions, workloadstate
from drachma.queueing.workloads.settings import Settings
from drachma.queueing.workloads.workloadevents import NORMAL, Event

NO_TIME: Final = timedelta()


class Patience(msgspec.Struct, frozen=True):
    """Time that pods may take to become ready, and the backoff of a workload whose pods do not."""

    timeouts: workloadstate.ReadyTimeouts
    limit: int | None = None
    """Maximum number of times that the workload is requeued."""
    base_seconds: int = 60
    max_seconds: int = 3600

    def backoff(self, attempt: int) -> timedelta:
        """Return the backoff, which doubles with every attempt; the limit applies after the first."""
        longest = max(self.max_seconds or 2**31, self.base_seconds if attempt == 1 else 0)
        return timedelta(seconds=min(self.base_seconds * 2 ** min(attempt - 1, 62), longest))


class Neighbourhood(msgspec.Struct, frozen=True):
    """Objects around a workload."""

    local_queue: localqueue.LocalQueue | None = None
    cluster_queue: clusterqueue.ClusterQueue | None = None
    is_queue_active: bool = False
    """True if the cluster queue admits workloads."""
    places: admissibility.Places = {}
    objects: DeviceObjects = DeviceObjects({}, {}, ())
    claims: podclaims.Claims | None = None
    mappings: DeviceMappings = NO_MAPPINGS
    uses: tuple[settlement.PodUse, ...] = ()
    """Charges for the devices of its pods, if its quota is to be settled."""
    patience: Patience | None = None
    retention: timedelta | None = None
    """Time after which finished workloads are deleted; None keeps them."""
    parked_reason: str | None = None
    """Reason why the workload was parked without being tried, because one of its shape did not fit."""

    @property
    def queue_name(self) -> str:
        return self.local_queue.spec.cluster_queue if self.local_queue is not None else ""


class Outcome(msgspec.Struct, frozen=True):
    """Result of a step: the new workload, or None if it is gone."""

    workload: workload.Workload | None
    events: tuple[Event, ...] = ()
    requeue_after: timedelta = NO_TIME
    error: str = ""
    """Problem after which the step is repeated with growing pauses, or an empty text."""
    devices: DeviceRequests | None = None
    """Charges for devices, if they had to be counted."""
    is_refused: bool = False
    """True if the devices cannot be counted, so that the workload belongs into no queue."""


class WorkloadStep:
    """One step of a workload, which changes in its course. Derived classes have the rules."""

    def __init__(self, wl: workload.Workload, around: Neighbourhood, now: datetime, settings: Settings) -> None:
        self._workload = wl
        self._around = around
        self._now = now
        self._gates = settings.gates
        self._policy = settings.policy
        self._key = workloadstate.key(wl)
        self._events: list[Event] = []
        self._devices: DeviceRequests | None = None

    def _done(self, after: timedelta = NO_TIME) -> Outcome:
        return Outcome(self._workload, tuple(self._events), after, devices=self._devices)

    def _become(self, after: workload.Workload) -> Outcome:
        self._workload = after
        return self._done()

    def _refused(self, after: workload.Workload, error: str = "") -> Outcome:
        return Outcome(after, error=error, is_refused=True)

    def _tell(self, kind: str, reason: str, message: str) -> None:
        self._events.append(Event(self._key, kind, reason, message))

    def _reason(self, granular: str, fallback: str) -> str:
        return granular if self._gates.on(Gate.UNADMITTED_OBSERVABILITY) else fallback

    @property
    def _is_pending(self) -> bool:
        wl = self._workload
        return not (workloadstate.is_finished(wl) or workloadstate.is_admitted(wl) or workloadstate.has_reservation(wl))

    def _unreserved(self, reason: str, message: str) -> workload.Workload:
        return transitions.unreserve(self._workload, reason=reason, message=message, now=self._now, gates=self._gates)

    def _evict(self, wl: workload.Workload, reason: str, message: str, *, cause: str = "") -> Outcome:
        if wl.status.admission is not None:
            event_reason = transitions.reason_with_cause(conditions.EVICTED, reason)
            if reason == transitions.DEACTIVATED and cause:
                event_reason = transitions.reason_with_cause(event_reason, cause)
            self._tell(NORMAL, event_reason, message)
        return self._become(transitions.evict(wl, reason=reason, message=message, now=self._now, cause=cause))


def is_stopped(policy: str | None) -> bool:
    """Return True if a queue admits nothing new."""
    return policy not in (None, "", "None")
