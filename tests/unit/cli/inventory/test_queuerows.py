"""Rows of queues and workloads: what queues use of what they have, and how far workloads got."""

import datetime as dt
from typing import Any

import pytest

from drachma.cli.inventory import cluster as clusters
from drachma.cli.inventory import queuerows, table
from drachma.queueing.kinds import clusterqueue, decoding, localqueue, workload

NOW = dt.datetime(2026, 1, 1, 1, tzinfo=dt.UTC)
CREATED = "2026-01-01T00:00:00Z"


def condition(kind: str, status: str, reason: str = "", message: str = "") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def metadata(name: str, namespace: str = "") -> dict[str, Any]:
    return {"name": name, "creationTimestamp": CREATED, **({"namespace": namespace} if namespace else {})}


def a_queue(name: str, *, cohort: str = "", status: dict[str, Any]) -> clusterqueue.ClusterQueue:
    quotas = [{"name": "cpu", "nominalQuota": "4"}, {"name": "gpus", "nominalQuota": "2"}]
    groups = [{"coveredResources": ["cpu", "gpus"], "flavors": [{"name": "spot", "resources": quotas}]}]
    spec = {"cohortName": cohort, "resourceGroups": groups}
    return decoding.decode({"metadata": metadata(name), "spec": spec, "status": status}, clusterqueue.ClusterQueue)


def a_local_queue(name: str, queue: str, **status: Any) -> localqueue.LocalQueue:
    document = {"metadata": metadata(name, "ns"), "spec": {"clusterQueue": queue}, "status": status}
    return decoding.decode(document, localqueue.LocalQueue)


def a_workload(
    name: str, *conditions: dict[str, Any], is_active: bool = True, queue: str = "jobs", **status: Any
) -> workload.Workload:
    spec = {"queueName": queue, "priority": 7, "active": is_active}
    document = {"metadata": metadata(name, "ns"), "spec": spec, "status": {"conditions": list(conditions), **status}}
    return decoding.decode(document, workload.Workload)


USED = [{"name": "cpu", "total": "5", "borrowed": "1"}, {"name": "gpus", "total": "1", "borrowed": "0"}]
RESERVED = condition("QuotaReserved", "True", "QuotaReserved")
ADMISSION = {
    "clusterQueue": "team",
    "podSetAssignments": [
        {"name": "a", "flavors": {"cpu": "spot"}, "resourceUsage": {"cpu": "1"}},
        {"name": "b", "flavors": {"cpu": "large", "gpus": "large"}, "resourceUsage": {"cpu": "500m", "gpus": "2"}},
    ],
}

CLUSTER = clusters.Cluster(
    cluster_queues=(
        a_queue(
            "team",
            cohort="all",
            status={
                "conditions": [condition("Active", "True", "Ready")],
                "flavorsReservation": [{"name": "spot", "resources": USED}],
                "pendingWorkloads": 3,
                "admittedWorkloads": 2,
            },
        ),
        a_queue("idle", status={"conditions": [condition("Active", "False", "Stopped", "is stopped.")]}),
    ),
    local_queues=(
        a_local_queue("astray", "nowhere"),
        a_local_queue("jobs", "team", flavorsReservation=[{"name": "spot", "resources": USED[1:]}]),
    ),
)


def shown(what: str, *columns: str, of: clusters.Cluster = CLUSTER, **wanted: str) -> list[tuple[str, ...]]:
    rows = queuerows.TABLES[what].rows(of, table.Filter(**wanted), NOW)
    return [tuple(row.cells[name] for name in columns) for row in rows]


def test_local_queues_follow_their_cluster_queue() -> None:
    assert shown("queues", "KIND", "NAME", "PARENT", "STATE", "PENDING", "ADMITTED") == [
        ("ClusterQueue", "idle", "<none>", "Stopped", "0", "0"),
        ("ClusterQueue", "team", "all", "Active", "3", "2"),
        ("LocalQueue", "jobs", "team", "Unknown", "0", "0"),
        ("LocalQueue", "astray", "nowhere", "Unknown", "0", "0"),
    ]


def test_what_is_used_stands_beside_what_there_is() -> None:
    assert shown("queues", "USED", "BORROWED", "WHY") == [
        ("spot:cpu=0/4,gpus=0/2", "<none>", "is stopped."),
        ("spot:cpu=5/4,gpus=1/2", "spot:cpu=1", "<none>"),
        ("spot:gpus=1", "<none>", "<none>"),
        ("<none>", "<none>", "<none>"),
    ]


def test_past_usage_is_shown_of_local_queues_that_have_some() -> None:
    shares = {"consumedResources": {"memory": "1Gi", "cpu": "2500m"}, "lastUpdate": CREATED}
    sharing = {"weightedShare": 0, "admissionFairSharingStatus": shares}
    of = clusters.Cluster(
        local_queues=(a_local_queue("jobs", "team", fairSharing=sharing), a_local_queue("new", "team"))
    )
    assert shown("queues", "NAME", "CONSUMED", of=of) == [("jobs", "cpu=2500m,memory=1Gi"), ("new", "<none>")]
    rows = queuerows.TABLES["queues"].rows(of, table.Filter(), NOW)
    assert [row.document.get("consumed") for row in rows] == [{"cpu": "2500m", "memory": "1Gi"}, None]


def test_a_queue_can_be_asked_for_by_either_name() -> None:
    assert shown("queues", "NAME", queue="team") == [("team",), ("jobs",)]
    assert shown("queues", "NAME", queue="jobs") == [("jobs",)]


@pytest.mark.parametrize(
    ("of", "want"),
    [
        pytest.param(a_workload("w"), ("Pending", "<none>", "<none>"), id="new"),
        pytest.param(
            a_workload("w", condition("QuotaReserved", "False", "WaitingForQuota", "1 more needed")),
            ("Pending", "WaitingForQuota", "1 more needed"),
            id="waiting-for-quota",
        ),
        pytest.param(
            a_workload("w", RESERVED, admissionChecks=[{"name": "budget", "state": "Pending", "message": "asked"}]),
            ("QuotaReserved", "AdmissionCheck", "budget: Pending: asked"),
            id="waiting-for-a-check",
        ),
        pytest.param(
            a_workload("w", RESERVED, condition("Admitted", "True", "Admitted")),
            ("Admitted", "<none>", "<none>"),
            id="admitted",
        ),
        pytest.param(
            a_workload("w", RESERVED, condition("Evicted", "True", "Preempted", "for another")),
            ("Evicted", "Preempted", "for another"),
            id="evicted",
        ),
        pytest.param(
            a_workload("w", condition("Evicted", "True", "Deactivated", "by hand"), is_active=False),
            ("Inactive", "Deactivated", "by hand"),
            id="inactive",
        ),
        pytest.param(
            a_workload("w", RESERVED, condition("Finished", "True", "Succeeded", "done")),
            ("Finished", "Succeeded", "done"),
            id="finished",
        ),
    ],
)
def test_how_far_a_workload_got(of: workload.Workload, want: tuple[str, ...]) -> None:
    cluster = clusters.Cluster(workloads=(of,))
    assert shown("workloads", "STATE", "REASON", "WHY", of=cluster) == [want]


def test_what_a_workload_has_and_where() -> None:
    cluster = clusters.Cluster(
        workloads=(a_workload("w", RESERVED, admission=ADMISSION), a_workload("other", queue="astray")),
        local_queues=CLUSTER.local_queues,
    )
    columns = ("NAME", "CLUSTERQUEUE", "PRIORITY", "FLAVORS", "REQUESTS")
    assert shown("workloads", *columns, of=cluster) == [
        ("other", "nowhere", "7", "<none>", "<none>"),
        ("w", "team", "7", "spot:cpu;large:cpu,gpus", "cpu=1500m,gpus=2"),
    ]
    assert shown("workloads", "NAME", of=cluster, queue="team") == [("w",)]


@pytest.mark.parametrize("what", queuerows.TABLES)
def test_every_column_is_filled(what: str) -> None:
    tried = queuerows.TABLES[what]
    for row in tried.rows(CLUSTER, table.Filter(), NOW):
        assert set(row.cells) == {*tried.columns, *tried.wide}
