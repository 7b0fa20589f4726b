"""What is the case when somebody asks, under Kueue's names: who waits, who holds quota, how much there is."""

from __future__ import annotations

import collections
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import prometheus_client
from prometheus_client import core, registry

from drachma.queueing import amounts, conditions
from drachma.queueing.admission import dominantshare, queuestatus
from drachma.queueing.admission.admitter import Admitter
from drachma.queueing.component.activeconfiguration import ActiveConfiguration
from drachma.queueing.component.caches import Caches, key_of
from drachma.queueing.component.queuemeasures import ROLE
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.kinds import localqueue, workload
from drachma.queueing.workloads import workloadstate
from drachma.queueing.workloads.requests import FlavorResource

_STATES: Final = ("pending", "active", "terminating")
_ANSWERS: Final = ("True", "False", "Unknown")

_FAMILIES: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "pending_workloads": ("Workloads that wait.", ("cluster_queue", "status")),
    "local_queue_pending_workloads": ("Workloads that wait.", ("name", "namespace", "status")),
    "reserving_active_workloads": ("Workloads that hold quota.", ("cluster_queue",)),
    "local_queue_reserving_active_workloads": ("Workloads that hold quota.", ("name", "namespace")),
    "admitted_active_workloads": ("Workloads that are admitted.", ("cluster_queue",)),
    "local_queue_admitted_active_workloads": ("Workloads that are admitted.", ("name", "namespace")),
    "unadmitted_workloads": ("Workloads that are not admitted.", ("cluster_queue", "reason", "underlying_cause")),
    "local_queue_unadmitted_workloads": (
        "Workloads that are not admitted.",
        ("name", "namespace", "cluster_queue", "reason", "underlying_cause"),
    ),
    "cluster_queue_status": ("Whether queues admit.", ("cluster_queue", "status")),
    "local_queue_status": ("Whether queues take workloads.", ("name", "namespace", "active")),
    "cluster_queue_weighted_share": (
        "How much more than their own queues use, where they share fairly; NaN: of weight zero, and more.",
        ("cluster_queue", "cohort"),
    ),
    "cohort_weighted_share": ("How much more than their own cohorts use.", ("cohort",)),
    "cluster_queue_info": ("Where queues are in the tree.", ("cluster_queue", "parent_cohort", "root_cohort")),
    "cohort_info": ("Where cohorts are in the tree.", ("cohort", "parent_cohort", "root_cohort")),
    "cohort_subtree_quota": ("What cohorts and all below have.", ("cohort", "flavor", "resource")),
    "cohort_subtree_resource_reservations": (
        "What workloads below cohorts hold.", ("cohort", "flavor", "resource"),
    ),
    "cohort_subtree_admitted_active_workloads": ("Workloads below cohorts that are admitted.", ("cohort",)),
    "cluster_queue_nominal_quota": ("What queues have.", ("cohort", "cluster_queue", "flavor", "resource")),
    "cluster_queue_borrowing_limit": (
        "What queues may borrow; +Inf: all there is.", ("cohort", "cluster_queue", "flavor", "resource"),
    ),
    "cluster_queue_lending_limit": (
        "What queues lend; +Inf: all they have.", ("cohort", "cluster_queue", "flavor", "resource"),
    ),
    "cluster_queue_resource_reservation": (
        "What workloads with quota hold.", ("cohort", "cluster_queue", "flavor", "resource"),
    ),
    "cluster_queue_resource_usage": (
        "What admitted workloads hold.", ("cohort", "cluster_queue", "flavor", "resource"),
    ),
    "cluster_queue_resource_pending": ("What workloads that wait ask for.", ("cluster_queue", "resource")),
    "local_queue_resource_reservation": (
        "What workloads with quota hold.", ("name", "namespace", "flavor", "resource"),
    ),
    "local_queue_resource_usage": ("What admitted workloads hold.", ("name", "namespace", "flavor", "resource")),
    "local_queue_admission_fair_sharing_usage": (
        "What local queues have used in the past, by the weights of resources and their own.",
        ("name", "namespace", "cluster_queue"),
    ),
}  # fmt: skip
"""Names without their prefix, what they are about, and labels beside the role."""


class QueueLevels(registry.Collector):
    """Of an admitter that may be replaced by another: ``admitter`` says which it is."""

    def __init__(
        self,
        into: prometheus_client.CollectorRegistry,
        caches: Caches,
        configured: ActiveConfiguration,
        *,
        admitter: Callable[[], Admitter],
        role: str,
    ) -> None:
        self._caches: Final = caches
        self._configured: Final = configured
        self._admitter: Final = admitter
        self._role: Final = role
        into.register(self)

    def describe(self) -> Iterable[core.Metric]:
        return [family for _, family in _made()]

    def collect(self) -> Iterable[core.Metric]:
        look = _Look(self._caches, self._configured, self._admitter(), role=self._role)
        look.at_waiting()
        look.at_holders()
        look.at_readiness()
        look.at_past_usage()
        if self._configured.gates.on(Gate.METRICS_FOR_COHORTS):
            look.at_tree()
        if self._configured.settings.fair_sharing:
            look.at_shares()
        if self._configured.configuration.metrics.enable_cluster_queue_resources:
            look.at_quotas()
        return look.families.values()


class _Look:
    """One look at everything."""

    def __init__(self, caches: Caches, configured: ActiveConfiguration, admitter: Admitter, *, role: str) -> None:
        self.families: Final = dict(_made())
        self._caches: Final = caches
        self._configured: Final = configured
        self._admitter: Final = admitter
        self._role: Final = role
        self._local_queues: Final = [
            each for each in caches.local_queues.cache if configured.measures_local_queue(each.metadata.labels)
        ]
        self._local_keys: Final = frozenset(map(key_of, self._local_queues))

    def _set(self, name: str, value: float, *labels: str) -> None:
        self.families[name].add_metric((*labels, self._role), value)

    def at_waiting(self) -> None:
        local: collections.Counter[tuple[str, str]] = collections.Counter()
        for name, queue in self._admitter.queues.items():
            for status, keys in (("active", queue.active), ("inadmissible", queue.parked)):
                self._set("pending_workloads", len(keys), name, status)
                for key in keys:
                    info = queue.get(key)
                    if info is not None:
                        local[_local_key(info.workload), status] += 1
        for of in self._local_queues:
            for status in ("active", "inadmissible"):
                self._set("local_queue_pending_workloads", local[key_of(of), status], *_names(of), status)
        if self._configured.gates.on(Gate.UNADMITTED_OBSERVABILITY):
            self._at_unadmitted()

    def _at_unadmitted(self) -> None:
        counts: collections.Counter[tuple[str, str, str, str]] = collections.Counter()
        for each in self._caches.workloads.cache:
            queue = self._caches.local_queue_of(each)
            if queue is not None and not _is_settled(each):
                counts[key_of(queue), queue.spec.cluster_queue, *_why(each)] += 1
        by_cluster_queue: collections.Counter[tuple[str, str, str]] = collections.Counter()
        for (key, cluster_queue, reason, cause), count in counts.items():
            by_cluster_queue[cluster_queue, reason, cause] += count
            if key in self._local_keys:
                namespace, _, name = key.partition("/")
                self._set("local_queue_unadmitted_workloads", count, name, namespace, cluster_queue, reason, cause)
        for labels, count in by_cluster_queue.items():
            self._set("unadmitted_workloads", count, *labels)

    def at_holders(self) -> None:
        reserving: collections.Counter[str] = collections.Counter()
        admitted: collections.Counter[str] = collections.Counter()
        for state in self._admitter.snapshot.states:
            name = state.name
            holders = [each.workload for each in state.workloads.values()]
            running = [each for each in holders if workloadstate.is_admitted(each)]
            self._set("reserving_active_workloads", len(holders), name)
            self._set("admitted_active_workloads", len(running), name)
            reserving.update(map(_local_key, holders))
            admitted.update(map(_local_key, running))
        for of in self._local_queues:
            self._set("local_queue_reserving_active_workloads", reserving[key_of(of)], *_names(of))
            self._set("local_queue_admitted_active_workloads", admitted[key_of(of)], *_names(of))

    def at_readiness(self) -> None:
        active = {}
        for queue in self._caches.cluster_queues.cache:
            readiness = self._caches.readiness(queue)
            active[queue.metadata.name] = readiness.is_active
            is_going = readiness.reason == "Terminating"
            state = "active" if readiness.is_active else "terminating" if is_going else "pending"
            for each in _STATES:
                self._set("cluster_queue_status", float(each == state), queue.metadata.name, each)
        for of in self._local_queues:
            local = queuestatus.local_readiness(of, is_active=active.get(of.spec.cluster_queue))
            for answer in _ANSWERS:
                self._set("local_queue_status", float(answer == str(local.is_active)), *_names(of), answer)

    def at_past_usage(self) -> None:
        ledger = self._admitter.ledger
        if ledger is None:
            return
        for of in self._local_queues:
            used = ledger.usage((of.metadata.namespace, of.metadata.name))
            self._set("local_queue_admission_fair_sharing_usage", used, *_names(of), of.spec.cluster_queue)

    def at_tree(self) -> None:
        snapshot = self._admitter.snapshot
        for name, node in snapshot.tree.queues.items():
            parent = node.parent.name if node.parent is not None else ""
            self._set("cluster_queue_info", 1, name, parent, node.root.name if parent else "")
        for name, node in snapshot.tree.cohorts.items():
            self._set("cohort_info", 1, name, node.parent.name if node.parent is not None else "", node.root.name)
            for key, amount in node.subtree.items():
                self._set("cohort_subtree_quota", _float(key, amount), name, *key)
            held: collections.Counter[FlavorResource] = collections.Counter()
            admitted = 0
            for queue in node.walk_queues():
                state = snapshot.state(queue.name)
                for info in state.workloads.values() if state is not None else ():
                    held.update(info.usage)
                    admitted += workloadstate.is_admitted(info.workload)
            for key, amount in held.items():
                self._set("cohort_subtree_resource_reservations", _float(key, amount), name, *key)
            self._set("cohort_subtree_admitted_active_workloads", admitted, name)

    def at_shares(self) -> None:
        tree = self._admitter.snapshot.tree
        for name, node in tree.queues.items():
            weighted = dominantshare.share(node).weighted
            cohort = node.parent.name if node.parent is not None else ""
            self._set("cluster_queue_weighted_share", math.nan if math.isinf(weighted) else weighted, name, cohort)
        for name, node in tree.cohorts.items():
            self._set("cohort_weighted_share", dominantshare.share(node).weighted, name)

    def at_quotas(self) -> None:
        local: dict[str, collections.Counter[FlavorResource]] = collections.defaultdict(collections.Counter)
        used: dict[str, collections.Counter[FlavorResource]] = collections.defaultdict(collections.Counter)
        for state in self._admitter.snapshot.states:
            name = state.name
            cohort = state.node.parent.name if state.node.parent is not None else ""
            reserved: collections.Counter[FlavorResource] = collections.Counter()
            admitted: collections.Counter[FlavorResource] = collections.Counter()
            for info in state.workloads.values():
                is_admitted = workloadstate.is_admitted(info.workload)
                for into in (reserved, local[_local_key(info.workload)]):
                    into.update(info.usage)
                for into in (admitted, used[_local_key(info.workload)]) if is_admitted else ():
                    into.update(info.usage)
            for key, quota in state.node.quotas.items():
                labels = (cohort, name, *key)
                self._set("cluster_queue_nominal_quota", _float(key, quota.nominal), *labels)
                self._set("cluster_queue_borrowing_limit", _limit(key, quota.borrowing_limit), *labels)
                self._set("cluster_queue_lending_limit", _limit(key, quota.lending_limit), *labels)
                self._set("cluster_queue_resource_reservation", _float(key, reserved[key]), *labels)
                self._set("cluster_queue_resource_usage", _float(key, admitted[key]), *labels)
            for of in self._local_queues:
                if of.spec.cluster_queue == name:
                    for key in state.node.quotas:
                        labels = (*_names(of), *key)
                        self._set("local_queue_resource_reservation", _float(key, local[key_of(of)][key]), *labels)
                        self._set("local_queue_resource_usage", _float(key, used[key_of(of)][key]), *labels)
        for name, queue in self._admitter.queues.items():
            pending: collections.Counter[str] = collections.Counter()
            for info in queue.waiting():
                for pod_set in info.pod_sets:
                    pending.update(pod_set.requests)
            for resource, amount in pending.items():
                self._set(
                    "cluster_queue_resource_pending", _float(FlavorResource("", resource), amount), name, resource
                )


def _made() -> Iterable[tuple[str, core.GaugeMetricFamily]]:
    for name, (about, labels) in _FAMILIES.items():
        yield name, core.GaugeMetricFamily(f"kueue_{name}", about, labels=(*labels, ROLE))


def _names(of: localqueue.LocalQueue) -> tuple[str, str]:
    return of.metadata.name, of.metadata.namespace


def _local_key(of: workload.Workload) -> str:
    return f"{of.metadata.namespace}/{of.spec.queue_name}"


def _is_settled(of: workload.Workload) -> bool:
    """Whether a workload does not wait to be admitted."""
    is_deleted = of.metadata.deletion_timestamp is not None
    return is_deleted or workloadstate.is_admitted(of) or workloadstate.is_finished(of)


def _why(of: workload.Workload) -> tuple[str, str]:
    """Why a workload is not admitted, and what is behind that."""
    admitted = conditions.find(of.status.conditions, conditions.ADMITTED)
    reserved = conditions.find(of.status.conditions, conditions.QUOTA_RESERVED)
    reason = admitted.reason if admitted is not None else "NoReservation"
    if reserved is None:
        return reason, "PendingEvaluation"
    return reason, "" if reserved.status == "True" else reserved.reason


def _float(key: FlavorResource, amount: int) -> float:
    return float(amounts.as_quantity(key.resource, amount).nanos) / 1e9


def _limit(key: FlavorResource, amount: int | None) -> float:
    return math.inf if amount is None else _float(key, amount)
