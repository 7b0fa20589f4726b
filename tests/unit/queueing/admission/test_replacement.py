"""A larger workload of an elastic job takes the place of the one that runs."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from drachma.queueing.admission.admitter import Admitter, CycleReport
from drachma.queueing.configuration.gates import DEFAULT, Gate
from drachma.queueing.kinds import clusterqueue, decoding, localqueue, resourceflavor, workload
from drachma.queueing.workloads import admissibility
from drachma.queueing.workloads.settings import Settings
from tests.unit.queueing.admission import admissioncases

_NOW = datetime(2026, 3, 4, tzinfo=UTC)
_ELASTIC = {workload.ELASTIC: "true"}


def _workload(
    name: str, pods: int, *, replaces: str = "", flavor: str = "", priority: int = 0, **metadata: Any
) -> workload.Workload:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    annotations = {**_ELASTIC, **({workload.REPLACES: replaces} if replaces else {})}
    document: dict[str, Any] = {
        "metadata": {
            "name": name,
            "namespace": "team",
            "uid": f"uid-{name}",
            "annotations": annotations,
            "labels": {workload.JOB_UID_LABEL: "job"},
            **metadata,
        },
        "spec": {
            "queueName": "jobs",
            "priority": priority,
            "podSets": [{"name": "main", "count": pods, "template": {"spec": {"containers": [container]}}}],
        },
    }
    if flavor:
        assignment = {
            "name": "main",
            "flavors": {"cpu": flavor},
            "resourceUsage": {"cpu": str(pods)},
            "count": pods,
        }
        reserved = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": ""}
        document["status"] = {
            "admission": {"clusterQueue": "all", "podSetAssignments": [assignment]},
            "conditions": [reserved],
        }
    return decoding.decode(document, workload.Workload)


def _admitter(
    *holders: workload.Workload, quota: Mapping[str, str] = {"one": "3", "two": "5"}, settings: Settings | None = None
) -> Admitter:
    flavors = [{"name": name, "resources": [{"name": "cpu", "nominalQuota": cpu}]} for name, cpu in quota.items()]
    spec = {
        "namespaceSelector": {},
        "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
        "preemption": {"withinClusterQueue": "LowerPriority"},
    }
    admitter = Admitter(settings=settings) if settings is not None else Admitter()
    admitter.set_places({"team": admissibility.Place(), "other": admissibility.Place()})
    local = [
        {"metadata": {"name": "jobs", "namespace": namespace}, "spec": {"clusterQueue": "all"}}
        for namespace in ("team", "other")
    ]
    admitter.set_queues(
        [decoding.decode({"metadata": {"name": "all"}, "spec": spec}, clusterqueue.ClusterQueue)],
        local_queues=[decoding.decode(each, localqueue.LocalQueue) for each in local],
        flavors=[decoding.decode({"metadata": {"name": name}}, resourceflavor.ResourceFlavor) for name in quota],
        holders=holders,
    )
    return admitter


def _cycle(admitter: Admitter, wl: workload.Workload) -> CycleReport:
    admitter.enqueue(wl, _NOW)
    report = admitter.run_cycle(_NOW)
    assert report is not None
    return report


def _message(report: CycleReport, key: str) -> str:
    (condition,) = [each for each in report.workloads[key].status.conditions if each.type == "QuotaReserved"]
    return condition.message


def test_it_needs_only_what_it_asks_for_beyond_the_one_that_runs_and_gets_the_same_flavor() -> None:
    report = _cycle(_admitter(_workload("small", 3, flavor="two")), _workload("large", 5, replaces="team/small"))

    admission = report.workloads["team/large"].status.admission
    assert admission is not None
    (assignment,) = admission.pod_set_assignments
    assert (assignment.flavors, assignment.count) == ({"cpu": "two"}, 5)
    assert str(assignment.resource_usage["cpu"]) == "5"


def test_the_one_that_runs_is_over_and_its_end_is_told() -> None:
    report = _cycle(_admitter(_workload("small", 3, flavor="two")), _workload("large", 5, replaces="team/small"))

    (finished,) = [each for each in report.workloads["team/small"].status.conditions if each.type == "Finished"]
    message = "Replaced to accommodate a workload (UID: uid-large, JobUID: job) due to workload slice aggregation"
    assert (finished.status, finished.reason, finished.message) == ("True", "WorkloadSliceReplaced", message)
    assert [(each.type, each.reason, each.message) for each in report.events if each.key == "team/small"] == [
        ("Normal", "WorkloadSliceReplaced", message)
    ]


def test_nothing_changes_for_the_one_that_runs_while_the_larger_one_waits() -> None:
    report = _cycle(_admitter(_workload("small", 3, flavor="two")), _workload("large", 6, replaces="team/small"))

    assert "team/small" not in report.workloads
    assert "insufficient unused quota for cpu in flavor two, 1 more needed" in _message(report, "team/large")


def test_another_flavor_will_not_do_even_where_there_is_room() -> None:
    admitter = _admitter(_workload("small", 3, flavor="one"), quota={"one": "3", "two": "9"})
    report = _cycle(admitter, _workload("large", 4, replaces="team/small"))

    assert _message(report, "team/large") == (
        "couldn't assign flavors to pod set main: could not assign two flavor since the original workload is assigned: "
        "one, insufficient unused quota for cpu in flavor one, 1 more needed"
    )


@pytest.mark.parametrize(
    ("settings", "replaces"),
    [
        pytest.param(Settings(gates=DEFAULT.switched({Gate.ELASTIC_JOBS: False})), "team/small", id="without-the-gate"),
        pytest.param(Settings(), "team/unknown", id="of-one-that-does-not-run"),
        pytest.param(Settings(), "other/small", id="of-another-namespace"),
    ],
)
def test_who_replaces_nobody_counts_in_full(settings: Settings, replaces: str) -> None:
    holders = [
        _workload("small", 3, flavor="two"),
        _workload("small", 1, flavor="two", namespace="other"),
    ]
    report = _cycle(_admitter(*holders, settings=settings), _workload("large", 4, replaces=replaces))

    assert report.workloads.keys() == {"team/large"}
    assert report.workloads["team/large"].status.admission is None


def test_others_are_preempted_for_what_is_still_missing() -> None:
    holders = [_workload("small", 3, flavor="two", priority=10), _workload("victim", 2, flavor="two")]
    report = _cycle(_admitter(*holders), _workload("large", 4, replaces="team/small", priority=10))

    assert report.workloads.keys() == {"team/large", "team/victim"}
    assert _message(report, "team/large").endswith("Pending the preemption of 1 workload(s)")


def test_one_that_will_fit_once_victims_of_others_are_gone_waits_and_the_one_that_runs_stays() -> None:
    reclaims = {"reclaimWithinCohort": "Any"}
    admitter = admissioncases.an_admitter(
        admissioncases.a_queue("queue", 7, preemption=reclaims),
        admissioncases.a_queue("urgent", 4, preemption=reclaims),
        admissioncases.a_queue("borrower", 0),
    )
    admitter.hold(admissioncases.a_workload("small", "queue", 4, holds=True))
    admitter.hold(admissioncases.a_workload("victim", "borrower", 7, holds=True))
    larger = admissioncases.a_workload("large", "queue", 7, annotations={workload.REPLACES: "ns/small"})
    admitter.enqueue(larger, admissioncases.NOW)
    admitter.enqueue(admissioncases.a_workload("first", "urgent", 4, priority=10), admissioncases.NOW)

    report = admitter.run_cycle(admissioncases.NOW)

    assert report is not None
    (entry,) = (each for each in report.entries if each.info.key == "ns/large")
    assert entry.message.endswith("but will fit after these preemptions complete")
    assert sorted(report.workloads) == ["ns/first", "ns/large", "ns/victim"]
