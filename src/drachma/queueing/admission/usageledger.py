"""The usage ledger: past usage of local queues, and charges for admissions that it does not include yet.

A workload is charged with its entry penalty when quota is reserved for it (:meth:`UsageLedger.charge`). When it is
admitted, the penalty becomes part of its local queue's usage; when it will not be admitted, the penalty is dropped
(:meth:`UsageLedger.follow`). At every sampling interval, past usage is updated with current usage
(:meth:`UsageLedger.sample`) and written to the local queue's status, from which a new ledger starts.

As in Kueue, charges that are not in a status yet are lost with the process and with a change of the configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final

from drachma.api import meta
from drachma.queueing import amounts
from drachma.queueing.kinds import clusterqueue, localqueue, workload
from drachma.queueing.workloads import pastusage, workloadstate
from drachma.queueing.workloads.pastusage import Consumed, UsageRates
from drachma.queueing.workloads.workloadinfo import WorkloadInfo
from drachma.values import quantity

LocalQueueKey = tuple[str, str]
"""Namespace and name."""


def is_by_usage(spec: clusterqueue.ClusterQueueSpec) -> bool:
    """Return True if a cluster queue orders its workloads by their local queues' past usage."""
    scope = spec.admission_scope
    return scope is not None and scope.admission_mode == clusterqueue.USAGE_BASED


def local_queue(wl: workload.Workload) -> LocalQueueKey:
    """Return the local queue that a workload names."""
    return wl.metadata.namespace, wl.spec.queue_name


def admitted_usage(holders: Iterable[WorkloadInfo], queue_key: LocalQueueKey) -> Consumed:
    """Return the usage of a local queue's admitted workloads, among those that hold quota."""
    total: dict[str, int] = {}
    for info in holders:
        if local_queue(info.workload) == queue_key and workloadstate.is_admitted(info.workload):
            for key, amount in info.usage.items():
                total[key.resource] = total.get(key.resource, 0) + amounts.nanos(key.resource, amount)
    return total


def _weight(local_queue: localqueue.LocalQueue) -> float:
    sharing = local_queue.spec.fair_sharing
    return 1.0 if sharing is None or sharing.weight is None else sharing.weight.as_approximate_float()


class _Entry:
    """State of one local queue."""

    __slots__ = ("consumed", "last_update", "pending", "uid", "usage", "weight")

    def __init__(self, local_queue: localqueue.LocalQueue) -> None:
        self.uid = local_queue.metadata.uid
        status = local_queue.status.fair_sharing
        self.weight = _weight(local_queue)
        stored_sharing = status.admission_fair_sharing_status if status is not None else None
        self.consumed: Consumed = (
            {}
            if stored_sharing is None
            else {name: amount.nanos for name, amount in stored_sharing.consumed_resources.items()}
        )
        self.last_update: datetime | None = None
        """Time since which usage decays; None starts the decay at the next sample."""
        self.pending: Consumed = {}
        """All charged penalties."""
        self.usage = 0.0


class UsageLedger:
    """Past usage of all local queues. Times are those of objects, in whole seconds."""

    def __init__(self, rates: UsageRates) -> None:
        self.rates: Final = rates
        self._entries: dict[LocalQueueKey, _Entry] = {}
        self._penalties: dict[str, tuple[LocalQueueKey, Consumed]] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._entries

    def set_local_queues(self, queues: Iterable[localqueue.LocalQueue]) -> None:
        """Set all local queues: new ones start with their status, and missing ones are forgotten."""
        present = {(each.metadata.namespace, each.metadata.name): each for each in queues}
        for key in [*present, *(key for key in self._entries if key not in present)]:
            self.set_local_queue(key, present.get(key))

    def set_local_queue(self, key: LocalQueueKey, queue: localqueue.LocalQueue | None) -> None:
        """Set a local queue: a new one starts with its status, and a missing one is forgotten."""
        before = self._entries.get(key)
        if queue is not None and before is not None and before.uid == queue.metadata.uid:
            before.weight = _weight(queue)
            self._weigh(before)
            return
        if before is not None:
            del self._entries[key]
            for name in [name for name, (place, _) in self._penalties.items() if place == key]:
                del self._penalties[name]
        if queue is not None:
            entry = self._entries[key] = _Entry(queue)
            self._weigh(entry)

    def usage(self, key: LocalQueueKey) -> float:
        """Return the past usage of a local queue as one number; the least comes first."""
        entry = self._entries.get(key)
        return entry.usage if entry is not None else 0.0

    # Penalties

    def charge(self, info: WorkloadInfo, *, resources: Iterable[str] | None = None) -> None:
        """Charge a workload for which quota was reserved; ``resources`` limits the charge to some resources."""
        key = local_queue(info.workload)
        requests: dict[str, int] = {}
        for each in info.pod_sets:
            for name, amount in each.requests.items():
                if resources is None or name in resources:
                    requests[name] = requests.get(name, 0) + amounts.nanos(name, amount)
        self.drop(info.key)
        entry = self._entries.get(key)
        if entry is not None:
            penalty = pastusage.entry_penalty(requests, rates=self.rates)
            self._penalties[info.key] = key, penalty
            entry.pending = pastusage.plus(entry.pending, penalty)
            self._weigh(entry)

    def drop(self, key: str) -> None:
        """Drop the charge of a workload that does not get its reserved quota."""
        self._remove(key)

    def follow(self, wl: workload.Workload, now: datetime, *, in_use: Callable[[LocalQueueKey], Consumed]) -> None:
        """Update the charge of a workload; ``in_use`` returns the usage of a local queue with this workload.

        The penalty becomes past usage when the workload is admitted. It is dropped when the workload is finished, has
        moved to another queue, or is inactive without quota. Evicted workloads keep it until they are admitted again.
        """
        key = workloadstate.key(wl)
        penalty = self._penalties.get(key)
        if penalty is None:
            return
        place, has_quota = local_queue(wl), workloadstate.has_reservation(wl)
        is_active = workloadstate.is_active(wl)
        if workloadstate.is_finished(wl) or penalty[0] != place or not (is_active or has_quota):
            self._remove(key)
        elif is_active and has_quota and workloadstate.is_admitted(wl):
            entry, settled = self._entries[place], self._remove(key)
            self._decay(entry, now, lambda: in_use(place))
            entry.consumed = pastusage.plus(entry.consumed, settled)
            self._weigh(entry)

    def _remove(self, key: str) -> Consumed:
        place, penalty = self._penalties.pop(key, (None, pastusage.NOTHING))
        entry = self._entries.get(place) if place is not None else None
        if entry is not None:
            entry.pending = pastusage.minus(entry.pending, penalty)
            self._weigh(entry)
        return penalty

    # Sampling

    def rest(self, key: LocalQueueKey, now: datetime) -> float:
        """Return the seconds until a local queue has to be sampled; zero while penalties are charged."""
        entry = self._entries[key]
        if entry.last_update is None or any(entry.pending.values()):
            return 0.0
        return max(0.0, self.rates.interval - (now - entry.last_update).total_seconds())

    def sample(self, key: LocalQueueKey, in_use: Consumed, now: datetime) -> None:
        """Update the past usage of a local queue with its current usage."""
        entry = self._entries[key]
        self._decay(entry, now, lambda: in_use)
        if self.rates.half_life == 0:
            entry.consumed = {}
        self._weigh(entry)

    def _decay(self, entry: _Entry, now: datetime, in_use: Callable[[], Consumed]) -> None:
        before = entry.last_update
        seconds = max(0.0, (now - before).total_seconds()) if before is not None else 0.0
        entry.last_update = now if before is None else max(before, now)
        if seconds or before is None:
            entry.consumed = pastusage.decayed(entry.consumed, in_use(), seconds, rates=self.rates)

    def status(self, key: LocalQueueKey) -> dict[str, Any] | None:
        """Return ``status.fairSharing`` of a local queue, or None before it is sampled."""
        entry = self._entries.get(key)
        if entry is None or entry.last_update is None:
            return None
        consumed = {name: str(quantity.Quantity.parse(f"{each}n")) for name, each in sorted(entry.consumed.items())}
        sharing = {"consumedResources": consumed, "lastUpdate": meta.time_text(entry.last_update)}
        return {"weightedShare": 0, "admissionFairSharingStatus": sharing}

    def _weigh(self, entry: _Entry) -> None:
        total = pastusage.plus(entry.consumed, entry.pending)
        entry.usage = pastusage.weighted(total, weight=entry.weight, rates=self.rates)
