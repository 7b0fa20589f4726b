"""The usage ledger: what local queues have used in the past, and what admissions count for that do not show there yet.

A workload is booked with its entry penalty when quota is reserved for it (:meth:`UsageLedger.charge`). When it is
admitted, the penalty becomes a part of what its local queue has used; when it goes without that, the penalty is dropped
(:meth:`UsageLedger.follow`). Every sampling interval what is remembered is brought up to date with what is used then
(:meth:`UsageLedger.sample`) and shown in the local queue's status, which is where a new ledger begins.

Nobody else remembers: what is charged and not yet shown is lost with the process and with another configuration, as in
Kueue.
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
    """Whether a cluster queue asks for its workloads to be ordered by their local queues' past usage."""
    scope = spec.admission_scope
    return scope is not None and scope.admission_mode == clusterqueue.USAGE_BASED


def local_queue(of: workload.Workload) -> LocalQueueKey:
    """The local queue that a workload names."""
    return of.metadata.namespace, of.spec.queue_name


def admitted_usage(holders: Iterable[WorkloadInfo], of: LocalQueueKey) -> Consumed:
    """What the workloads of a local queue use that are admitted, among those that hold quota."""
    total: dict[str, int] = {}
    for info in holders:
        if local_queue(info.workload) == of and workloadstate.is_admitted(info.workload):
            for key, amount in info.usage.items():
                total[key.resource] = total.get(key.resource, 0) + amounts.nanos(key.resource, amount)
    return total


class _Entry:
    """What is known of one local queue."""

    __slots__ = ("consumed", "last_update", "pending", "uid", "usage", "weight")

    def __init__(self, of: localqueue.LocalQueue) -> None:
        self.uid = of.metadata.uid
        sharing, status = of.spec.fair_sharing, of.status.fair_sharing
        self.weight = 1.0 if sharing is None or sharing.weight is None else sharing.weight.as_approximate_float()
        shown = status.admission_fair_sharing_status if status is not None else None
        self.consumed: Consumed = (
            {} if shown is None else {name: amount.nanos for name, amount in shown.consumed_resources.items()}
        )
        self.last_update: datetime | None = None
        """Since when what is remembered fades; None: since it is looked at, for the time before has passed unseen."""
        self.pending: Consumed = {}
        """All penalties that are charged."""
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
        """All local queues there are: new ones begin with what their status says, and others are forgotten."""
        before, self._entries = self._entries, {}
        for each in queues:
            key = each.metadata.namespace, each.metadata.name
            made, known = _Entry(each), before.get(key)
            if known is not None and known.uid == made.uid:
                known.weight = made.weight
                made = known
            self._entries[key] = made
            self._weigh(made)
        for name, (key, _) in tuple(self._penalties.items()):
            if self._entries.get(key) is not before.get(key):
                del self._penalties[name]

    def usage(self, of: LocalQueueKey) -> float:
        """What a local queue has used, in one number: who has the least comes first."""
        entry = self._entries.get(of)
        return entry.usage if entry is not None else 0.0

    # Penalties

    def charge(self, info: WorkloadInfo, *, resources: Iterable[str] | None = None) -> None:
        """Quota was reserved for a workload, which counts at once; only some resources of it, where they are said."""
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
        """A workload does not get what was reserved for it."""
        self._remove(key)

    def follow(self, of: workload.Workload, now: datetime, *, in_use: Callable[[LocalQueueKey], Consumed]) -> None:
        """Sees what became of a workload; ``in_use`` says what a local queue uses now, with this workload.

        Its penalty becomes past usage when it is admitted. It is dropped when that cannot be any more: the workload is
        over, went to another queue, or is inactive and has no quota. Evicted workloads keep it until they are admitted
        again.
        """
        key = workloadstate.key(of)
        penalty = self._penalties.get(key)
        if penalty is None:
            return
        place, has_quota = local_queue(of), workloadstate.has_reservation(of)
        is_active = workloadstate.is_active(of)
        if workloadstate.is_finished(of) or penalty[0] != place or not (is_active or has_quota):
            self._remove(key)
        elif is_active and has_quota and workloadstate.is_admitted(of):
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

    def rest(self, of: LocalQueueKey, now: datetime) -> float:
        """In how many seconds a local queue is to be sampled; zero: now, as long as penalties are charged."""
        entry = self._entries[of]
        if entry.last_update is None or any(entry.pending.values()):
            return 0.0
        return max(0.0, self.rates.interval - (now - entry.last_update).total_seconds())

    def sample(self, of: LocalQueueKey, in_use: Consumed, now: datetime) -> None:
        """Brings past usage of a local queue up to date with what it uses now."""
        entry = self._entries[of]
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

    def status(self, of: LocalQueueKey) -> dict[str, Any] | None:
        """The ``status.fairSharing`` of a local queue; None before it is sampled."""
        entry = self._entries.get(of)
        if entry is None or entry.last_update is None:
            return None
        consumed = {name: str(quantity.Quantity.parse(f"{each}n")) for name, each in sorted(entry.consumed.items())}
        shown = {"consumedResources": consumed, "lastUpdate": meta.time_text(entry.last_update)}
        return {"weightedShare": 0, "admissionFairSharingStatus": shown}

    def _weigh(self, entry: _Entry) -> None:
        total = pastusage.plus(entry.consumed, entry.pending)
        entry.usage = pastusage.weighted(total, weight=entry.weight, rates=self.rates)
