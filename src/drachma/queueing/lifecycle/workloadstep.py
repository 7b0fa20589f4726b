"""What a look at a workload begins with and ends in, and what all of its rules do."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from drachma.claims import podclaims
from drachma.queueing import conditions
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.devices.devicemappings import NO_MAPPINGS, DeviceMappings
from drachma.queueing.devices.deviceobjects import DeviceObjects
from drachma.queueing.devices.devicerequests import DeviceRequests
from drachma.queueing.kinds import clusterqueue, localqueue, workload
from drachma.queueing.workloads import admissibility, settlement, transitions, workloadstate
from drachma.queueing.workloads.settings import Settings
from drachma.queueing.workloads.workloadevents import NORMAL, Event

NO_TIME: Final = timedelta()


class Patience(msgspec.Struct, frozen=True):
    """How long pods may take to get ready, and how a workload whose pods do not comes back."""

    timeouts: workloadstate.ReadyTimeouts
    limit: int | None = None
    """How often it comes back."""
    base_seconds: int = 60
    max_seconds: int = 3600

    def backoff(self, attempt: int) -> timedelta:
        """How long it stays out of its queue, doubling with every attempt; the limit is for those after the first."""
        longest = max(self.max_seconds or 2**31, self.base_seconds if attempt == 1 else 0)
        return timedelta(seconds=min(self.base_seconds * 2 ** min(attempt - 1, 62), longest))


class Neighbourhood(msgspec.Struct, frozen=True):
    """What a workload has around it."""

    local_queue: localqueue.LocalQueue | None = None
    cluster_queue: clusterqueue.ClusterQueue | None = None
    is_queue_active: bool = False
    """Whether the cluster queue admits workloads."""
    places: admissibility.Places = {}
    objects: DeviceObjects = DeviceObjects({}, {}, ())
    claims: podclaims.Claims | None = None
    mappings: DeviceMappings = NO_MAPPINGS
    uses: tuple[settlement.PodUse, ...] = ()
    """What the devices of its pods count for, if it has quota that is to be settled."""
    patience: Patience | None = None
    retention: timedelta | None = None
    """How long finished workloads are kept; None: for ever."""
    parked_reason: str | None = None
    """Why the workload was parked without being tried, because one like it did not fit."""

    @property
    def queue_name(self) -> str:
        return self.local_queue.spec.cluster_queue if self.local_queue is not None else ""


class Outcome(msgspec.Struct, frozen=True):
    """What a step made of a workload: None if it is gone."""

    workload: workload.Workload | None
    events: tuple[Event, ...] = ()
    look_again_after: timedelta = NO_TIME
    error: str = ""
    """What went wrong and is tried again, with growing patience."""
    devices: DeviceRequests | None = None
    """What it is charged with for devices, if that had to be counted."""
    is_refused: bool = False
    """Whether its devices cannot be counted, so that it belongs into no queue."""


class WorkloadStep:
    """One look at a workload, which changes in the course of it; rules are in the classes that derive from it."""

    def __init__(self, of: workload.Workload, around: Neighbourhood, now: datetime, settings: Settings) -> None:
        self._workload = of
        self._around = around
        self._now = now
        self._gates = settings.gates
        self._policy = settings.policy
        self._key = workloadstate.key(of)
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
        of = self._workload
        return not (workloadstate.is_finished(of) or workloadstate.is_admitted(of) or workloadstate.has_reservation(of))

    def _unreserved(self, reason: str, message: str) -> workload.Workload:
        return transitions.unreserve(self._workload, reason=reason, message=message, now=self._now, gates=self._gates)

    def _evict(self, of: workload.Workload, reason: str, message: str, *, cause: str = "") -> Outcome:
        if of.status.admission is not None:
            told = transitions.reason_with_cause(conditions.EVICTED, reason)
            if reason == transitions.DEACTIVATED and cause:
                told = transitions.reason_with_cause(told, cause)
            self._tell(NORMAL, told, message)
        return self._become(transitions.evict(of, reason=reason, message=message, now=self._now, cause=cause))


def is_stopped(policy: str | None) -> bool:
    """Whether a queue admits nothing new."""
    return policy not in (None, "", "None")
