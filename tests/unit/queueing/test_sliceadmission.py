"""Slices of elastic jobs: a larger one takes the place of one that has quota, for what it needs beyond that."""

from typing import Any

import pytest

from drachma.queueing.admitter import Admitter, CycleReport
from drachma.queueing.gates import DEFAULT
from drachma.queueing.kinds import workload
from drachma.queueing.settings import Settings
from drachma.queueing.workloadrules import REPLACES
from tests.unit.queueing.admissioncases import FLAVOR, NOW, a_queue, a_workload, an_admitter

REASON = "WorkloadSliceReplaced"


def a_slice(cpu: int, **spec: Any) -> workload.Workload:
    """One that takes the place of ``small``, which has four CPUs."""
    return a_workload("large", "queue", cpu, annotations={REPLACES: "ns/small"}, **spec)


def cycle(admitter: Admitter) -> CycleReport:
    report = admitter.run_cycle(NOW)
    assert report is not None
    return report


def test_a_larger_slice_needs_quota_for_the_rest_alone_and_finishes_the_smaller_one() -> None:
    admitter = an_admitter(a_queue("queue", 7))
    admitter.hold(a_workload("small", "queue", 4, holds=True))
    admitter.enqueue(a_slice(7), NOW)

    report = cycle(admitter)

    assert report.workloads["ns/large"].status.admission is not None
    (finished,) = (each for each in report.workloads["ns/small"].status.conditions if each.type == "Finished")
    assert (finished.status, finished.reason) == ("True", REASON)
    assert "UID: large" in finished.message
    assert [(each.key, each.message) for each in report.events if each.reason == REASON] == [
        ("ns/small", finished.message)
    ]
    # It is over when whoever runs admission has heard of it.
    assert sorted(admitter.snapshot.holders) == ["ns/large", "ns/small"]


def test_a_slice_without_quota_for_the_rest_waits_and_the_smaller_one_stays() -> None:
    admitter = an_admitter(a_queue("queue", 6))
    admitter.hold(a_workload("small", "queue", 4, holds=True))
    admitter.enqueue(a_slice(7), NOW)

    report = cycle(admitter)

    assert "ns/small" not in report.workloads
    assert f"insufficient unused quota for cpu in flavor {FLAVOR}, 1 more needed" in report.entries[0].message


def test_others_are_preempted_for_the_rest_and_the_smaller_one_is_not() -> None:
    admitter = an_admitter(a_queue("queue", 7, preemption={"withinClusterQueue": "LowerPriority"}))
    admitter.hold(a_workload("small", "queue", 4, holds=True, priority=10))
    admitter.hold(a_workload("other", "queue", 3, holds=True))
    admitter.enqueue(a_slice(7, priority=10), NOW)

    report = cycle(admitter)

    assert sorted(report.workloads) == ["ns/large", "ns/other"]
    assert report.entries[0].message.endswith("Pending the preemption of 1 workload(s)")


def test_a_slice_that_will_fit_once_victims_of_others_are_gone_waits_and_the_smaller_one_stays() -> None:
    reclaims = {"reclaimWithinCohort": "Any"}
    admitter = an_admitter(
        a_queue("queue", 7, preemption=reclaims), a_queue("urgent", 4, preemption=reclaims), a_queue("borrower", 0)
    )
    admitter.hold(a_workload("small", "queue", 4, holds=True))
    admitter.hold(a_workload("victim", "borrower", 7, holds=True))
    admitter.enqueue(a_slice(7), NOW)
    admitter.enqueue(a_workload("first", "urgent", 4, priority=10), NOW)

    report = cycle(admitter)

    (waiting,) = (each for each in report.entries if each.info.key == "ns/large")
    assert waiting.message.endswith("but will fit after these preemptions complete")
    assert sorted(report.workloads) == ["ns/first", "ns/large", "ns/victim"]


def test_a_slice_has_to_have_the_flavor_of_the_one_before() -> None:
    admitter = an_admitter(a_queue("queue", 7, flavor="other"), flavors=(FLAVOR, "other"))
    admitter.hold(a_workload("small", "queue", 4, holds=True))
    admitter.enqueue(a_slice(7), NOW)

    report = cycle(admitter)

    assert f"could not assign other flavor since the original workload is assigned: {FLAVOR}" in (
        report.entries[0].message
    )
    assert report.entries[0].quota_reason == "NoMatchingFlavor"


@pytest.mark.parametrize(
    ("settings", "holder"),
    [
        pytest.param(Settings(gates=DEFAULT.switched({"ElasticJobsViaWorkloadSlices": False})), "queue", id="gate-off"),
        pytest.param(Settings(), "elsewhere", id="in-another-queue"),
    ],
)
def test_all_is_needed_where_nothing_is_replaced(settings: Settings, holder: str) -> None:
    admitter = an_admitter(a_queue("queue", 7), a_queue("elsewhere", 4), settings=settings)
    admitter.hold(a_workload("small", holder, 4, holds=True))
    admitter.hold(a_workload("other", "queue" if holder == "elsewhere" else "elsewhere", 4, holds=True))
    admitter.enqueue(a_slice(7), NOW)

    report = cycle(admitter)

    assert "ns/small" not in report.workloads
    assert "4 more needed" in report.entries[0].message
