"""Rows of queues and of the workloads in them: what queues have, use and borrow, who waits, and why."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from drachma.cli.inventory import table
from drachma.cli.inventory.cluster import Cluster
from drachma.queueing import conditions
from drachma.queueing.admission import queuestatus
from drachma.queueing.component import resources
from drachma.queueing.kinds import clusterqueue, localqueue, workload
from drachma.queueing.workloads import workloadstate
from drachma.values import quantity

_FILTERS: Final = frozenset({"queue"})

Queue = clusterqueue.ClusterQueue | localqueue.LocalQueue


class _State(NamedTuple):
    """How something stands: in a word, in another why, and in a sentence."""

    word: str
    reason: str = ""
    message: str = ""


def _queues(of: Cluster, wanted: table.Filter, now: dt.datetime) -> Iterable[table.Row]:
    """Cluster queues, each followed by its local queues; local queues that lead nowhere come last."""
    behind: dict[str, list[localqueue.LocalQueue]] = {}
    for local in sorted(of.local_queues, key=table.place):
        behind.setdefault(local.spec.cluster_queue, []).append(local)
    for queue in sorted(of.cluster_queues, key=table.place):
        locals_of = behind.pop(queue.metadata.name, [])
        if wanted.queue in ("", queue.metadata.name):
            yield _cluster_queue(queue, now)
        yield from (_local_queue(each, now) for each in locals_of if _is_wanted(each, wanted))
    for locals_of in behind.values():
        yield from (_local_queue(each, now) for each in locals_of if _is_wanted(each, wanted))


def _is_wanted(of: localqueue.LocalQueue, wanted: table.Filter) -> bool:
    return wanted.queue in ("", of.metadata.name, of.spec.cluster_queue)


def _cluster_queue(of: clusterqueue.ClusterQueue, now: dt.datetime) -> table.Row:
    nominal = {
        (flavor.name, quota.name): str(quota.nominal_quota)
        for group in of.spec.resource_groups
        for flavor in group.flavors
        for quota in flavor.resources
    }
    return _queue(of, "ClusterQueue", now, parent=of.spec.cohort_name, nominal=nominal)


def _local_queue(of: localqueue.LocalQueue, now: dt.datetime) -> table.Row:
    sharing = of.status.fair_sharing.admission_fair_sharing_status if of.status.fair_sharing is not None else None
    consumed = sharing.consumed_resources if sharing is not None else {}
    return _queue(of, "LocalQueue", now, parent=of.spec.cluster_queue, nominal={}, consumed=consumed)


def _queue(
    of: Queue,
    kind: str,
    now: dt.datetime,
    *,
    parent: str,
    nominal: Mapping[tuple[str, str], str],
    consumed: Mapping[str, quantity.Quantity] | None = None,
) -> table.Row:
    status = of.status
    state = _queue_state(of)
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
        f"{kind}/{of.metadata.namespace}/{of.metadata.name}",
        {
            "KIND": kind,
            "NAMESPACE": of.metadata.namespace or table.NONE,
            "NAME": of.metadata.name,
            "PARENT": parent or table.NONE,
            "STATE": state.reason or state.word,
            "PENDING": str(int(status.pending_workloads)),
            "ADMITTED": str(int(status.admitted_workloads)),
            "USED": _by_flavor((each["flavor"], _fraction(each)) for each in quotas),
            "BORROWED": _by_flavor(
                (each["flavor"], f"{each['resource']}={each['borrowed']}") for each in quotas if "borrowed" in each
            ),
            "AGE": table.age(of, now),
            "CONSUMED": table.listed(f"{name}={amount}" for name, amount in sorted((consumed or {}).items())),
            "WHY": state.message or table.NONE,
        },
        {
            "kind": kind,
            **({"namespace": of.metadata.namespace} if of.metadata.namespace else {}),
            "name": of.metadata.name,
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


def _borrows(of: clusterqueue.ResourceUsage | None) -> bool:
    return of is not None and of.borrowed.sign > 0


def _fraction(of: Mapping[str, str]) -> str:
    share = f"{of['used']}/{of['nominal']}" if "nominal" in of else of["used"]
    return f"{of['resource']}={share}"


def _by_flavor(of: Iterable[tuple[str, str]]) -> str:
    """What is said of resources, each flavor named once: ``spot:cpu=1/2,memory=0/4;large:cpu=0/8``."""
    flavors: dict[str, list[str]] = {}
    for flavor, text in of:
        flavors.setdefault(flavor, []).append(text)
    return ";".join(f"{flavor}:{','.join(texts)}" for flavor, texts in flavors.items()) or table.NONE


def _queue_state(of: Queue) -> _State:
    active = conditions.find(of.status.conditions, queuestatus.ACTIVE)
    if active is None:
        return _State("Unknown")
    return _State("Active") if active.status == "True" else _State("Inactive", active.reason, active.message)


def _workloads(of: Cluster, wanted: table.Filter, now: dt.datetime) -> Iterable[table.Row]:
    behind = {(each.metadata.namespace, each.metadata.name): each.spec.cluster_queue for each in of.local_queues}
    for each in sorted(of.workloads, key=table.place):
        admission = each.status.admission
        queue = each.spec.queue_name
        cluster_queue = behind.get((each.metadata.namespace, queue), "")
        if admission is not None:
            cluster_queue = admission.cluster_queue
        if wanted.queue not in ("", queue, cluster_queue):
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
                "FLAVORS": _by_flavor((flavor, resource) for resource, names in flavors.items() for flavor in names),
                "AGE": table.age(each, now),
                "CLUSTERQUEUE": cluster_queue or table.NONE,
                "OWNER": table.listed(owners),
                "REQUESTS": table.listed(f"{resource}={amount}" for resource, amount in requests.items()),
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


def _workload_state(of: workload.Workload) -> _State:
    """The furthest that it got, and why not further."""
    of_status = of.status.conditions

    def told(word: str, kind: str) -> _State:
        condition = conditions.find(of_status, kind)
        return _State(word) if condition is None else _State(word, condition.reason, condition.message)

    if workloadstate.is_finished(of):
        return told("Finished", conditions.FINISHED)
    if workloadstate.is_evicted(of) and workloadstate.has_reservation(of):
        return told("Evicted", conditions.EVICTED)
    if workloadstate.is_admitted(of):
        return _State("Admitted")
    if workloadstate.has_reservation(of):
        waiting = [each for each in of.status.admission_checks if each.state != workloadstate.READY]
        message = "; ".join(f"{each.name}: {each.state}: {each.message}" for each in waiting)
        return _State("QuotaReserved", workloadstate.ADMISSION_CHECK if waiting else "", message)
    if not workloadstate.is_active(of):
        return told("Inactive", conditions.EVICTED)
    return told("Pending", conditions.QUOTA_RESERVED)


def _flavors(of: workload.Admission | None) -> dict[str, list[str]]:
    """The flavors of each resource; pod sets may have been given several."""
    names: dict[str, list[str]] = {}
    for pod_set in of.pod_set_assignments if of is not None else ():
        for resource, flavor in pod_set.flavors.items():
            if flavor not in names.setdefault(resource, []):
                names[resource].append(flavor)
    return dict(sorted(names.items()))


def _requests(of: workload.Workload) -> dict[str, str]:
    """What it was given, or was last considered with."""
    lists: Iterable[Mapping[str, Any]] = (
        (each.resource_usage for each in of.status.admission.pod_set_assignments)
        if of.status.admission is not None
        else (each.resources for each in of.status.resource_requests)
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
        beside=(),
        filters=_FILTERS,
        rows=_queues,
    ),
    "workloads": table.Table(
        ("NAMESPACE", "NAME", "QUEUE", "PRIORITY", "STATE", "REASON", "FLAVORS", "AGE"),
        ("CLUSTERQUEUE", "OWNER", "REQUESTS", "WHY"),
        about=(resources.WORKLOADS,),
        beside=(resources.LOCAL_QUEUES,),
        filters=_FILTERS,
        rows=_workloads,
    ),
}
"""Tables of queues and workloads."""
