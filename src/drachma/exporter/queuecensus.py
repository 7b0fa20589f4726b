"""Counts of cluster queues, as Kueue's manager or drachma's queueing writes them into their statuses. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from drachma.exporter import series
from drachma.exporter.series import Metric
from drachma.queueing.kinds.clusterqueue import ClusterQueue
from drachma.values.quantity import Quantity


def metrics(queues: Sequence[ClusterQueue], *, limit: int) -> list[Metric]:
    """Return the metrics of queues; at most so many queues and resources have their own series."""
    names = series.most_frequent((each.metadata.name for each in queues), limit)
    resources = series.most_frequent((resource for each in queues for _, resource, _ in _quotas(each)), limit)
    workloads: Counter[tuple[str, ...]] = Counter()
    amounts: dict[tuple[str, ...], float] = {}
    for each in queues:
        name = series.bounded(each.metadata.name, names)
        status = each.status
        workloads[name, "pending"] += status.pending_workloads
        workloads[name, "admitted"] += status.admitted_workloads
        for kind, resource, amount in _quotas(each):
            key = (name, series.bounded(resource, resources), kind)
            amounts[key] = amounts.get(key, 0.0) + amount.as_approximate_float()
    return [
        Metric(
            name="drachma_cluster_queue_workloads",
            help="Workloads of a cluster queue that wait, and that are admitted.",
            labels=("cluster_queue", "state"),
            samples=dict(workloads),
        ),
        Metric(
            name="drachma_cluster_queue_quota",
            help="Quota of a cluster queue over all flavors: nominal, used, and the part of used that is borrowed.",
            labels=("cluster_queue", "resource", "kind"),
            samples=amounts,
        ),
    ]


def _quotas(queue: ClusterQueue) -> Iterable[tuple[str, str, Quantity]]:
    """Yield kind, resource and amount of each quota."""
    for group in queue.spec.resource_groups:
        for flavor in group.flavors:
            for quota in flavor.resources:
                yield "nominal", quota.name, quota.nominal_quota
    for usage in queue.status.flavors_reservation:
        for resource in usage.resources:
            yield "used", resource.name, resource.total
            yield "borrowed", resource.name, resource.borrowed
