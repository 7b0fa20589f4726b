"""The tree of cohorts and cluster queues: nominal, used, borrowed and lent quota, and pending workloads in order."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from operator import attrgetter
from typing import Final, NamedTuple

from drachma.claims import conditions
from drachma.queueing.kinds import clusterqueue, workload
from drachma.queueing.workloads import workloadstate
from drachma.queueing.workloads.workloadinfo import WorkloadInfo
from drachma.runtime.cache import Key
from drachma.values import quantity
from drachma.web.models import Model

_ZERO: Final = quantity.Quantity.parse("0")
_MOST_SHARE: Final = 2**62


class Quota(NamedTuple):
    """Quota of one resource in one flavor."""

    flavor: str
    resource: str
    nominal: quantity.Quantity
    used: quantity.Quantity
    borrowed: quantity.Quantity
    lent: quantity.Quantity
    borrowing_limit: quantity.Quantity | None
    lending_limit: quantity.Quantity | None

    @property
    def bar(self) -> Bar:
        """The quota as a bar."""
        nominal, used, lent = self.nominal.nanos, self.used.nanos, self.lent.nanos
        limit = self.borrowing_limit.nanos if self.borrowing_limit is not None else 0
        scale = max(nominal + limit, used, 1)
        own = min(used, nominal)
        return Bar(
            own=100 * own / scale,
            borrowed=100 * (used - own) / scale,
            lent=100 * min(lent, nominal - own) / scale,
            nominal=100 * nominal / scale,
        )


class Bar(NamedTuple):
    """Parts of a quota's bar, in hundredths of its length, which is the nominal quota and what may be borrowed."""

    own: float
    borrowed: float
    lent: float
    nominal: float


class Queue(NamedTuple):
    """A cluster queue."""

    name: str
    strategy: str
    is_active: bool
    message: str
    pending: int
    admitted: int
    weight: str
    fair_share: str
    """Borrowed part of the lendable quota by weight, as the status has it; empty without fair sharing."""
    quotas: tuple[Quota, ...]


class Cohort(NamedTuple):
    """A cohort with its queues and the cohorts below it; the nameless one holds queues without a cohort."""

    name: str
    queues: tuple[Queue, ...]
    children: tuple[Cohort, ...]
    quotas: tuple[Quota, ...] = ()
    """Own quota of the cohort, which its queues share."""
    totals: tuple[Quota, ...] = ()
    """Quota and usage of everything in the cohort."""
    weight: str = "1"
    fair_share: str = ""


class Pending(NamedTuple):
    """A pending workload."""

    key: Key
    position: int
    cluster_queue: str
    local_queue: str
    priority: int
    created: dt.datetime | None
    reason: str


def build(model: Model) -> list[Cohort]:
    """Return the roots of the tree, by name. Cohorts in a circle are shown as roots."""
    parents = {name: str(each.spec.parent_name or "") for name, each in model.cohorts.items()}
    names = {*parents, *(str(each.spec.cohort_name) for each in model.cluster_queues.values() if each.spec.cohort_name)}
    names |= {parent for parent in parents.values() if parent}
    children: dict[str, list[str]] = {}
    for name in names:
        children.setdefault(parents.get(name, ""), []).append(name)
    visited: set[str] = set()
    roots = [_cohort(model, name, children, visited) for name in sorted(children.get("", ()))]
    roots += [_cohort(model, name, children, visited) for name in sorted(names) if name not in visited]
    alone = tuple(_queue(each, ()) for name, each in sorted(model.cluster_queues.items()) if not each.spec.cohort_name)
    return [*roots, Cohort("", alone, ())] if alone else roots


def _cohort(model: Model, name: str, children: dict[str, list[str]], visited: set[str]) -> Cohort:
    visited.add(name)
    below = tuple(
        _cohort(model, child, children, visited) for child in sorted(children.get(name, ())) if child not in visited
    )
    members = [each for each in model.cluster_queues.values() if each.spec.cohort_name == name]
    members.sort(key=lambda each: each.metadata.name)
    own = model.cohorts.get(name)
    quotas = tuple(_quotas(own.spec.resource_groups, (), ())) if own is not None else ()
    queues = tuple(_queue(each, members) for each in members)
    parts = [*quotas, *(quota for queue in queues for quota in queue.quotas)]
    parts += [quota for cohort in below for quota in cohort.totals]
    fair = own.status.fair_sharing if own is not None else None
    return Cohort(
        name,
        queues,
        below,
        quotas,
        _totals(parts),
        _weight(own.spec.fair_sharing) if own is not None else "1",
        _fair_share(fair),
    )


def _totals(parts: Iterable[Quota]) -> tuple[Quota, ...]:
    """Return sums of quota and usage by flavor and resource. Quota that is borrowed or lent inside is in neither."""
    sums: dict[tuple[str, str], Quota] = {}
    for each in parts:
        total = sums.get((each.flavor, each.resource))
        nominal = each.nominal.nanos + (total.nominal.nanos if total is not None else 0)
        used = each.used.nanos + (total.used.nanos if total is not None else 0)
        like = each.nominal
        sums[each.flavor, each.resource] = Quota(
            each.flavor,
            each.resource,
            _amount(nominal, like),
            _amount(used, like),
            _amount(max(used - nominal, 0), like),
            _ZERO,
            None,
            None,
        )
    return tuple(sums.values())


def _amount(nanos: int, like: quantity.Quantity) -> quantity.Quantity:
    """Return an amount with the suffixes of another; queues count in thousandths."""
    return quantity.Quantity.from_milli(nanos // 10**6, format=like.format)


def _weight(fair: clusterqueue.FairSharing | None) -> str:
    return str(fair.weight) if fair is not None and fair.weight is not None else "1"


def _fair_share(status: clusterqueue.FairSharingStatus | None) -> str:
    if status is None:
        return ""
    # A queue of weight zero that borrows has the largest number there is.
    return f"{status.weighted_share / 10:.1f} %" if status.weighted_share < _MOST_SHARE else "above all others"


def _queue(queue: clusterqueue.ClusterQueue, members: Iterable[clusterqueue.ClusterQueue]) -> Queue:
    active = conditions.find(queue.status.conditions, "Active")
    siblings = [each for each in members if each is not queue]
    return Queue(
        queue.metadata.name,
        queue.spec.queueing_strategy or clusterqueue.BEST_EFFORT_FIFO,
        active is None or active.status == "True",
        active.message if active is not None else "",
        int(queue.status.pending_workloads),
        int(queue.status.admitted_workloads),
        _weight(queue.spec.fair_sharing),
        _fair_share(queue.status.fair_sharing),
        tuple(_quotas(queue.spec.resource_groups, queue.status.flavors_reservation, siblings)),
    )


def _quotas(
    groups: Iterable[clusterqueue.ResourceGroup],
    usages: Iterable[clusterqueue.FlavorUsage],
    others: Iterable[clusterqueue.ClusterQueue],
) -> Iterable[Quota]:
    used = {(usage.name, each.name): each for usage in usages for each in usage.resources}
    borrowed = _borrowed(others)
    for group in groups:
        for flavor in group.flavors:
            for resource in flavor.resources:
                key = flavor.name, resource.name
                usage = used.get(key)
                total = usage.total if usage is not None else _ZERO
                unused = max(resource.nominal_quota.nanos - total.nanos, 0)
                if resource.lending_limit is not None:
                    unused = min(unused, resource.lending_limit.nanos)
                # What siblings borrow comes from the unused quota of this queue and of others like it.
                lent = min(borrowed.get(key, 0), unused)
                yield Quota(
                    flavor.name,
                    resource.name,
                    resource.nominal_quota,
                    total,
                    usage.borrowed if usage is not None else _ZERO,
                    _amount(lent, resource.nominal_quota),
                    resource.borrowing_limit,
                    resource.lending_limit,
                )


def _borrowed(queues: Iterable[clusterqueue.ClusterQueue]) -> dict[tuple[str, str], int]:
    amounts: dict[tuple[str, str], int] = {}
    for queue in queues:
        for flavor in queue.status.flavors_reservation:
            for each in flavor.resources:
                key = flavor.name, each.name
                amounts[key] = amounts.get(key, 0) + each.borrowed.nanos
    return amounts


def pending(model: Model) -> dict[str, list[Pending]]:
    """Return the pending workloads of each cluster queue in the order in which it considers them."""
    by_queue: dict[str, list[workload.Workload]] = {}
    for each in model.workloads.values():
        if conditions.is_true(each.status.conditions, "QuotaReserved") or conditions.is_true(
            each.status.conditions, "Finished"
        ):
            continue
        local = model.local_queues.get(Key(each.metadata.namespace, each.spec.queue_name))
        by_queue.setdefault(local.spec.cluster_queue if local is not None else "", []).append(each)
    return {
        name: [_pending(each, place, name) for place, each in enumerate(_ordered(listed), 1)]
        for name, listed in by_queue.items()
    }


def _ordered(listed: list[workload.Workload]) -> list[workload.Workload]:
    return [info.workload for info in sorted((WorkloadInfo(each, (), "") for each in listed), key=attrgetter("order"))]


def _pending(each: workload.Workload, position: int, queue: str) -> Pending:
    reserved = conditions.find(each.status.conditions, "QuotaReserved")
    return Pending(
        Key(each.metadata.namespace, each.metadata.name),
        position,
        queue,
        each.spec.queue_name,
        workloadstate.priority(each),
        each.metadata.creation_timestamp,
        reserved.message if reserved is not None else "not considered yet",
    )
