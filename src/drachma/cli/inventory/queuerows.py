"""Rows of queues and workloads: quota, usage and borrowing of queues, and the states of workloads."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from drachma.cli.inventory import table
from drachma.cli.inventory.cluster import Cluster
from drachma.client import target
from drachma.queueing import conditions
from drachma.queueing.component import resources
from drachma.queueing.kinds import clusterqueue, localqueue, workload
from drachma.queueing.workloads import workloadstate
from drachma.values import quantity

_FILTERS: Final = frozenset({"queue"})

Queue = clusterqueue.ClusterQueue | localqueue.LocalQueue


class _State(NamedTuple):
    """State of a queue or workload: one word, a reason, and a message."""

    word: str
    reason: str = ""
    message: str = ""


def _queues(cluster: Cluster, filter_: table.Filter, now: dt.datetime) -> Iterable[table.Row]:
    """Yield cluster queues, each followed by its local queues. Local queues without a cluster queue come last."""
    by_cluster_queue: dict[str, list[localqueue.LocalQueue]] = {}
    for local in sorted(cluster.local_queues, key=table.sort_key):
        by_cluster_queue.setdefault(local.spec.cluster_queue, []).append(local)
    for queue in sorted(cluster.cluster_queues, key=table.sort_key):
        local_queues = by_cluster_queue.pop(queue.metadata.name, [])
        if filter_.queue in ("", queue.metadata.name):
            yield _cluster_queue(queue, now)
        yield from (_local_queue(each, now) for each in local_queues if _matches(each, filter_))
    for local_queues in by_cluster_queue.values():
        yield from (_local_queue(each, now) for each in local_queues if _matches(each, filter_))


def _matches(queue: localqueue.LocalQueue, filter_: table.Filter) -> bool:
    return filter_.queue in ("", queue.metadata.name, queue.spec.cluster_queue)


def _cluster_queue(queue: clusterqueue.ClusterQueue, now: dt.datetime) -> table.Row:
    nominal = {
        (flavor.name, quota.name): str(quota.nominal_quota)
        for group in queue.spec.resource_groups
        for flavor in group.flavors
        for quota in flavor.resources
    }
    return _queue(queue, "ClusterQueue", now, parent=queue.spec.cohort_name, nominal=nominal)


def _local_queue(queue: localqueue.LocalQueue, now: dt.datetime) -> table.Row:
    sharing = queue.status.fair_sharing.admission_fair_sharing_status if queue.status.fair_sharing is not None else None
    consumed = sharing.consumed_resources if sharing is not None else {}
    return _queue(queue, "LocalQueue", now, parent=queue.spec.cluster_queue, nominal={}, consumed=consumed)


def _queue(
    queue: Queue,
    kind: str,
    now: dt.datetime,
    *,
    parent: str,
    nominal: Mapping[tuple[str, str], str],
    consumed: Mapping[str, quantity.Quantity] | None = None,
) -> table.Row:
    status = queue.status
    state = _queue_state(queue)
    used = {(flavor.name, each.name): each for flavor in status.flavors_reservation for each in flavor.resources}
    quotas = [
        {
            "flavor": flavor,
            "resource": resource,
            **({"nominal": nominal[flavor, resource]} if (flavor, resource) in nominal else {}),
            "used": str(used[flavor, resource].total) if (flavor, resource) in used else "0",
            **({"borrowed": str(used[flavor, resource].borrowed)} if _borrows(used.get((flavor, resource))) else {}),
        }
        for flavor, resource in dict.fromkeys((*nominal, *used))
    ]
    return table.Row(
        f"{kind}/{queue.metadata.namespace}/{queue.metadata.name}",
        {
            "KIND": kind,
            "NAMESPACE": queue.metadata.namespace or table.NONE,
            "NAME": queue.metadata.name,
            "PARENT": parent or table.NONE,
            "STATE": state.reason or state.word,
            "PENDING": str(int(status.pending_workloads)),
            "ADMITTED": str(int(status.admitted_workloads)),
            "USED": _group_by_flavor((each["flavor"], _fraction(each)) for each in quotas),
            "BORROWED": _group_by_flavor(
                (each["flavor"], f"{each['resource']}={each['borrowed']}") for each in quotas if "borrowed" in each
            ),
            "AGE": table.age(queue, now),
            "CONSUMED": table.join_names(f"{name}={amount}" for name, amount in sorted((consumed or {}).items())),
            "WHY": state.message or table.NONE,
        },
        {
            "kind": kind,
            **({"namespace": queue.metadata.namespace} if queue.metadata.namespace else {}),
            "name": queue.metadata.name,
            "parent": parent,
            "state": state.word,
            "reason": state.reason,
            "message": state.message,
            "pending": int(status.pending_workloads),
            "reserving": int(status.reserving_workloads),
            "admitted": int(status.admitted_workloads),
            "quotas": quotas,
            **({"consumed": {name: str(each) for name, each in sorted(consumed.items())}} if consumed else {}),
        },
    )


def _borrows(usage: clusterqueue.ResourceUsage | None) -> bool:
    return usage is not None and usage.borrowed.sign > 0


def _fraction(quota: Mapping[str, str]) -> str:
    share = f"{quota['used']}/{quota['nominal']}" if "nominal" in quota else quota["used"]
    return f"{quota['resource']}={share}"


def _group_by_flavor(texts_by_flavor: Iterable[tuple[str, str]]) -> str:
    """Return texts grouped by flavor: ``spot:cpu=1/2,memory=0/4;large:cpu=0/8``."""
    flavors: dict[str, list[str]] = {}
    for flavor, text in texts_by_flavor:
        flavors.setdefault(flavor, []).append(text)
    return ";".join(f"{flavor}:{','.join(texts)}" for flavor, texts in flavors.items()) or table.NONE


def _queue_state(queue: Queue) -> _State:
    active = conditions.find(queue.status.conditions, conditions.ACTIVE)
    if active is None:
        return _State("Unknown")
    return _State("Active") if active.status == "True" else _State("Inactive", active.reason, active.message)


def _workloads(cluster: Cluster, filter_: table.Filter, now: dt.datetime) -> Iterable[table.Row]:
    cluster_queues = {
        (each.metadata.namespace, each.metadata.name): each.spec.cluster_queue for each in cluster.local_queues
    }
    for each in sorted(cluster.workloads, key=table.sort_key):
        admission = each.status.admission
        queue = each.spec.queue_name
        cluster_queue = cluster_queues.get((each.metadata.namespace, queue), "")
        if admission is not None:
            cluster_queue = admission.cluster_queue
        if filter_.queue not in ("", queue, cluster_queue):
            continue
        state = _workload_state(each)
        flavors = _flavors(admission)
        owners = [f"{owner.kind}/{owner.name}" for owner in each.metadata.owner_references]
        requests = _requests(each)
        priority = workloadstate.priority(each)
        yield table.Row(
            workloadstate.key(each),
            {
                "NAMESPACE": each.metadata.namespace,
                "NAME": each.metadata.name,
                "QUEUE": queue or table.NONE,
                "PRIORITY": str(priority),
                "STATE": state.word,
                "REASON": state.reason or table.NONE,
                "FLAVORS": _group_by_flavor(
                    (flavor, resource) for resource, names in flavors.items() for flavor in names
                ),
                "AGE": table.age(each, now),
                "CLUSTERQUEUE": cluster_queue or table.NONE,
                "OWNER": table.join_names(owners),
                "REQUESTS": table.join_names(f"{resource}={amount}" for resource, amount in requests.items()),
                "WHY": state.message or table.NONE,
            },
            {
                "namespace": each.metadata.namespace,
                "name": each.metadata.name,
                "queue": queue,
                "clusterQueue": cluster_queue,
                "priority": priority,
                "state": state.word,
                "reason": state.reason,
                "message": state.message,
                "flavors": flavors,
                "requests": requests,
                "owners": owners,
            },
        )


def _workload_state(queued: workload.Workload) -> _State:
    """Return the state of a workload, with the reason why it has not got further."""
    current = queued.status.conditions

    def state(word: str, kind: str) -> _State:
        condition = conditions.find(current, kind)
        return _State(word) if condition is None else _State(word, condition.reason, condition.message)

    if workloadstate.is_finished(queued):
        return state("Finished", conditions.FINISHED)
    if workloadstate.is_evicted(queued) and workloadstate.has_reservation(queued):
        return state("Evicted", conditions.EVICTED)
    if workloadstate.is_admitted(queued):
        return _State("Admitted")
    if workloadstate.has_reservation(queued):
        unready = [each for each in queued.status.admission_checks if each.state != workloadstate.READY]
        message = "; ".join(f"{each.name}: {each.state}: {each.message}" for each in unready)
        return _State("QuotaReserved", workloadstate.ADMISSION_CHECK if unready else "", message)
    if not workloadstate.is_active(queued):
        return state("Inactive", conditions.EVICTED)
    return state("Pending", conditions.QUOTA_RESERVED)


def _flavors(admission: workload.Admission | None) -> dict[str, list[str]]:
    """Return the flavors of each resource; pod sets may have different ones."""
    names: dict[str, list[str]] = {}
    for pod_set in admission.pod_set_assignments if admission is not None else ():
        for resource, flavor in pod_set.flavors.items():
            if flavor not in names.setdefault(resource, []):
                names[resource].append(flavor)
    return dict(sorted(names.items()))


def _requests(queued: workload.Workload) -> dict[str, str]:
    """Return the admitted requests of a workload, or the requests of its last attempt."""
    lists: Iterable[Mapping[str, Any]] = (
        (each.resource_usage for each in queued.status.admission.pod_set_assignments)
        if queued.status.admission is not None
        else (each.resources for each in queued.status.resource_requests)
    )
    totals: dict[str, Any] = {}
    for amounts in lists:
        for resource, amount in amounts.items():
            totals[resource] = totals[resource] + amount if resource in totals else amount
    return {resource: str(amount) for resource, amount in sorted(totals.items())}


TABLES: Final[Mapping[str, table.Table]] = {
    "queues": table.Table(
        ("KIND", "NAMESPACE", "NAME", "PARENT", "STATE", "USED", "BORROWED", "PENDING", "ADMITTED", "AGE"),
        ("CONSUMED", "WHY"),
        about=(resources.CLUSTER_QUEUES, resources.LOCAL_QUEUES),
        needs_also=(),
        filters=_FILTERS,
        rows=_queues,
    ),
    "workloads": table.Table(
        ("NAMESPACE", "NAME", "QUEUE", "PRIORITY", "STATE", "REASON", "FLAVORS", "AGE"),
        ("CLUSTERQUEUE", "OWNER", "REQUESTS", "WHY"),
        about=(resources.WORKLOADS,),
        needs_also=(resources.LOCAL_QUEUES,),
        filters=_FILTERS,
        rows=_workloads,
    ),
}
"""Tables of queues and workloads."""

FIELDS: Final[Mapping[target.Of[Any], str]] = {
    resources.WORKLOADS: "workloads",
    resources.CLUSTER_QUEUES: "cluster_queues",
    resources.LOCAL_QUEUES: "local_queues",
}
"""Field of a Cluster that holds the objects of a kind."""
