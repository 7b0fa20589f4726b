"""Gauges under Kueue's names, computed when metrics are collected: pending workloads, quota holders, quotas."""

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
    "pending_workloads": ("Number of pending workloads.", ("cluster_queue", "status")),
    "local_queue_pending_workloads": ("Number of pending workloads.", ("name", "namespace", "status")),
    "reserving_active_workloads": ("Number of workloads with reserved quota.", ("cluster_queue",)),
    "local_queue_reserving_active_workloads": ("Number of workloads with reserved quota.", ("name", "namespace")),
    "admitted_active_workloads": ("Number of admitted workloads.", ("cluster_queue",)),
    "local_queue_admitted_active_workloads": ("Number of admitted workloads.", ("name", "namespace")),
    "unadmitted_workloads": (
        "Number of workloads that are not admitted.", ("cluster_queue", "reason", "underlying_cause"),
    ),
    "local_queue_unadmitted_workloads": (
        "Number of workloads that are not admitted.",
        ("name", "namespace", "cluster_queue", "reason", "underlying_cause"),
    ),
    "cluster_queue_status": ("Status of cluster queues.", ("cluster_queue", "status")),
    "local_queue_status": ("Status of local queues.", ("name", "namespace", "active")),
    "cluster_queue_weighted_share": (
        "Weighted share of cluster queues under fair sharing; NaN if a queue of weight zero borrows.",
        ("cluster_queue", "cohort"),
    ),
    "cohort_weighted_share": ("Weighted share of cohorts under fair sharing.", ("cohort",)),
    "cluster_queue_info": (
        "Position of cluster queues in the tree.", ("cluster_queue", "parent_cohort", "root_cohort"),
    ),
    "cohort_info": ("Position of cohorts in the tree.", ("cohort", "parent_cohort", "root_cohort")),
    "cohort_subtree_quota": ("Subtree quota of cohorts.", ("cohort", "flavor", "resource")),
    "cohort_subtree_resource_reservations": (
        "Quota reserved by workloads below cohorts.", ("cohort", "flavor", "resource"),
    ),
    "cohort_subtree_admitted_active_workloads": ("Number of admitted workloads below cohorts.", ("cohort",)),
    "cluster_queue_nominal_quota": (
        "Nominal quota of cluster queues.", ("cohort", "cluster_queue", "flavor", "resource"),
    ),
    "cluster_queue_borrowing_limit": (
        "Borrowing limit of cluster queues; +Inf without a limit.", ("cohort", "cluster_queue", "flavor", "resource"),
    ),
    "cluster_queue_lending_limit": (
        "Lending limit of cluster queues; +Inf without a limit.", ("cohort", "cluster_queue", "flavor", "resource"),
    ),
    "cluster_queue_resource_reservation": (
        "Quota reserved by workloads.", ("cohort", "cluster_queue", "flavor", "resource"),
    ),
    "cluster_queue_resource_usage": (
        "Quota used by admitted workloads.", ("cohort", "cluster_queue", "flavor", "resource"),
    ),
    "cluster_queue_resource_pending": ("Requests of pending workloads.", ("cluster_queue", "resource")),
    "local_queue_resource_reservation": (
        "Quota reserved by workloads.", ("name", "namespace", "flavor", "resource"),
    ),
    "local_queue_resource_usage": ("Quota used by admitted workloads.", ("name", "namespace", "flavor", "resource")),
    "local_queue_admission_fair_sharing_usage": (
        "Past usage of local queues, weighted by resource and queue.",
        ("name", "namespace", "cluster_queue"),
    ),
}  # fmt: skip
"""Metric names without their prefix, help texts, and labels in addition to the role."""


class QueueLevels(registry.Collector):
    """Collector of the gauges. ``admitter`` returns the current admitter, which may be replaced."""

    def __init__(
        self,
        registry: prometheus_client.CollectorRegistry,
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
        registry.register(self)

    def describe(self) -> Iterable[core.Metric]:
        return [family for _, family in _made()]

    def collect(self) -> Iterable[core.Metric]:
        look = _Collection(self._caches, self._configured, self._admitter(), role=self._role)
        look.collect_pending()
        look.collect_holders()
        look.collect_readiness()
        look.collect_past_usage()
        if self._configured.gates.on(Gate.METRICS_FOR_COHORTS):
            look.collect_tree()
        if self._configured.settings.fair_sharing:
            look.collect_shares()
        if self._configured.configuration.metrics.enable_cluster_queue_resources:
            look.collect_quotas()
        return look.families.values()


class _Collection:
    """One collection of all gauges."""

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

    def collect_pending(self) -> None:
        local: collections.Counter[tuple[str, str]] = collections.Counter()
        for name, queue in self._admitter.queues.items():
            for status, keys in (("active", queue.active), ("inadmissible", queue.parked)):
                self._set("pending_workloads", len(keys), name, status)
                for key in keys:
                    info = queue.get(key)
                    if info is not None:
                        local[_local_key(info.workload), status] += 1
        for local_queue in self._local_queues:
            for status in ("active", "inadmissible"):
                self._set(
                    "local_queue_pending_workloads", local[key_of(local_queue), status], *_names(local_queue), status
                )
        if self._configured.gates.on(Gate.UNADMITTED_OBSERVABILITY):
            self._collect_unadmitted()

    def _collect_unadmitted(self) -> None:
        counts: collections.Counter[tuple[str, str, str, str]] = collections.Counter()
        for each in self._caches.workloads.cache:
            queue = self._caches.local_queue_of(each)
            if queue is not None and not _is_settled(each):
                counts[key_of(queue), queue.spec.cluster_queue, *_unadmitted_reason(each)] += 1
        by_cluster_queue: collections.Counter[tuple[str, str, str]] = collections.Counter()
        for (key, cluster_queue, reason, cause), count in counts.items():
            by_cluster_queue[cluster_queue, reason, cause] += count
            if key in self._local_keys:
                namespace, _, name = key.partition("/")
                self._set("local_queue_unadmitted_workloads", count, name, namespace, cluster_queue, reason, cause)
        for labels, count in by_cluster_queue.items():
            self._set("unadmitted_workloads", count, *labels)

    def collect_holders(self) -> None:
        reserving: collections.Counter[str] = collections.Counter()
        admitted: collections.Counter[str] = collections.Counter()
        for state in self._admitter.snapshot.states:
            name = state.name
            holders = [each.workload for each in state.workloads.values()]
            admitted_workloads = [each for each in holders if workloadstate.is_admitted(each)]
            self._set("reserving_active_workloads", len(holders), name)
            self._set("admitted_active_workloads", len(admitted_workloads), name)
            reserving.update(map(_local_key, holders))
            admitted.update(map(_local_key, admitted_workloads))
        for local_queue in self._local_queues:
            self._set("local_queue_reserving_active_workloads", reserving[key_of(local_queue)], *_names(local_queue))
            self._set("local_queue_admitted_active_workloads", admitted[key_of(local_queue)], *_names(local_queue))

    def collect_readiness(self) -> None:
        active = {}
        for queue in self._caches.cluster_queues.cache:
            readiness = self._caches.readiness(queue)
            active[queue.metadata.name] = readiness.is_active
            is_going = readiness.reason == "Terminating"
            state = "active" if readiness.is_active else "terminating" if is_going else "pending"
            for each in _STATES:
                self._set("cluster_queue_status", float(each == state), queue.metadata.name, each)
        for local_queue in self._local_queues:
            local = queuestatus.local_readiness(local_queue, is_active=active.get(local_queue.spec.cluster_queue))
            for answer in _ANSWERS:
                self._set("local_queue_status", float(answer == str(local.is_active)), *_names(local_queue), answer)

    def collect_past_usage(self) -> None:
        ledger = self._admitter.ledger
        if ledger is None:
            return
        for local_queue in self._local_queues:
            used = ledger.usage((local_queue.metadata.namespace, local_queue.metadata.name))
            self._set(
                "local_queue_admission_fair_sharing_usage", used, *_names(local_queue), local_queue.spec.cluster_queue
            )

    def collect_tree(self) -> None:
        snapshot = self._admitter.snapshot
        for name, node in snapshot.tree.queues.items():
            parent = node.parent.name if node.parent is not None else ""
            self._set("cluster_queue_info", 1, name, parent, node.root.name if parent else "")
        for name, node in snapshot.tree.cohorts.items():
            self._set("cohort_info", 1, name, node.parent.name if node.parent is not None else "", node.root.name)
            for key, amount in node.subtree.items():
                self._set("cohort_subtree_quota", _float(key, amount), name, *key)
            reserved_amounts: collections.Counter[FlavorResource] = collections.Counter()
            admitted = 0
            for queue in node.walk_queues():
                state = snapshot.state(queue.name)
                for info in state.workloads.values() if state is not None else ():
                    reserved_amounts.update(info.usage)
                    admitted += workloadstate.is_admitted(info.workload)
            for key, amount in reserved_amounts.items():
                self._set("cohort_subtree_resource_reservations", _float(key, amount), name, *key)
            self._set("cohort_subtree_admitted_active_workloads", admitted, name)

    def collect_shares(self) -> None:
        tree = self._admitter.snapshot.tree
        for name, node in tree.queues.items():
            weighted = dominantshare.share(node).weighted
            cohort = node.parent.name if node.parent is not None else ""
            self._set("cluster_queue_weighted_share", math.nan if math.isinf(weighted) else weighted, name, cohort)
        for name, node in tree.cohorts.items():
            self._set("cohort_weighted_share", dominantshare.share(node).weighted, name)

    def collect_quotas(self) -> None:
        local: dict[str, collections.Counter[FlavorResource]] = collections.defaultdict(collections.Counter)
        used: dict[str, collections.Counter[FlavorResource]] = collections.defaultdict(collections.Counter)
        for state in self._admitter.snapshot.states:
            name = state.name
            cohort = state.node.parent.name if state.node.parent is not None else ""
            reserved: collections.Counter[FlavorResource] = collections.Counter()
            admitted: collections.Counter[FlavorResource] = collections.Counter()
            for info in state.workloads.values():
                is_admitted = workloadstate.is_admitted(info.workload)
                for counter in (reserved, local[_local_key(info.workload)]):
                    counter.update(info.usage)
                for counter in (admitted, used[_local_key(info.workload)]) if is_admitted else ():
                    counter.update(info.usage)
            for key, quota in state.node.quotas.items():
                labels = (cohort, name, *key)
                self._set("cluster_queue_nominal_quota", _float(key, quota.nominal), *labels)
                self._set("cluster_queue_borrowing_limit", _limit(key, quota.borrowing_limit), *labels)
                self._set("cluster_queue_lending_limit", _limit(key, quota.lending_limit), *labels)
                self._set("cluster_queue_resource_reservation", _float(key, reserved[key]), *labels)
                self._set("cluster_queue_resource_usage", _float(key, admitted[key]), *labels)
            for local_queue in self._local_queues:
                if local_queue.spec.cluster_queue == name:
                    for key in state.node.quotas:
                        labels = (*_names(local_queue), *key)
                        self._set(
                            "local_queue_resource_reservation", _float(key, local[key_of(local_queue)][key]), *labels
                        )
                        self._set("local_queue_resource_usage", _float(key, used[key_of(local_queue)][key]), *labels)
        for name, queue in self._admitter.queues.items():
            counts: collections.Counter[str] = collections.Counter()
            for info in queue.waiting():
                for pod_set in info.pod_sets:
                    counts.update(pod_set.requests)
            for resource, amount in counts.items():
                self._set(
                    "cluster_queue_resource_pending", _float(FlavorResource("", resource), amount), name, resource
                )


def _made() -> Iterable[tuple[str, core.GaugeMetricFamily]]:
    for name, (help_text, labels) in _FAMILIES.items():
        yield name, core.GaugeMetricFamily(f"kueue_{name}", help_text, labels=(*labels, ROLE))


def _names(local_queue: localqueue.LocalQueue) -> tuple[str, str]:
    return local_queue.metadata.name, local_queue.metadata.namespace


def _local_key(wl: workload.Workload) -> str:
    return f"{wl.metadata.namespace}/{wl.spec.queue_name}"


def _is_settled(wl: workload.Workload) -> bool:
    """Return True if a workload does not wait for admission."""
    is_deleted = wl.metadata.deletion_timestamp is not None
    return is_deleted or workloadstate.is_admitted(wl) or workloadstate.is_finished(wl)


def _unadmitted_reason(wl: workload.Workload) -> tuple[str, str]:
    """Return the reason why a workload is not admitted, and its cause."""
    admitted = conditions.find(wl.status.conditions, conditions.ADMITTED)
    reserved = conditions.find(wl.status.conditions, conditions.QUOTA_RESERVED)
    reason = admitted.reason if admitted is not None else "NoReservation"
    if reserved is None:
        return reason, "PendingEvaluation"
    return reason, "" if reserved.status == "True" else reserved.reason


def _float(key: FlavorResource, amount: int) -> float:
    return float(amounts.to_quantity(key.resource, amount).nanos) / 1e9


def _limit(key: FlavorResource, amount: int | None) -> float:
    return math.inf if amount is None else _float(key, amount)
