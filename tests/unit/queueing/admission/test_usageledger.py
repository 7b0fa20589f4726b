"""The usage ledger: penalties that are charged, become past usage or are dropped, and the status of local queues."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from drachma.queueing.admission.usageledger import LocalQueueKey, UsageLedger
from drachma.queueing.kinds import decoding, localqueue, workload
from drachma.queueing.workloads import requests
from drachma.queueing.workloads.pastusage import Consumed, UsageRates
from drachma.queueing.workloads.workloadinfo import WorkloadInfo

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MINUTES = timedelta(minutes=1)
RATES = UsageRates(half_life=300, interval=300)
LIGHT = ("ns", "light")
HEAVY = ("ns", "heavy")
ADMITTED = {"status": "True", "type": "Admitted", "reason": "Admitted"}
RESERVED = {"status": "True", "type": "QuotaReserved", "reason": "QuotaReserved"}
FINISHED = {"status": "True", "type": "Finished", "reason": "Succeeded"}
EVICTED = {"status": "True", "type": "Evicted", "reason": "Preempted"}


def a_local_queue(
    name: str, *, consumed: dict[str, str] | None = None, weight: str = "1", uid: str = ""
) -> localqueue.LocalQueue:
    sharing = {"consumedResources": consumed, "lastUpdate": "2025-12-31T00:00:00Z"}
    document = {
        "metadata": {"name": name, "namespace": "ns", "uid": uid or name},
        "spec": {"clusterQueue": "team", "fairSharing": {"weight": weight}},
        **(
            {"status": {"fairSharing": {"weightedShare": 0, "admissionFairSharingStatus": sharing}}} if consumed else {}
        ),
    }
    return decoding.decode(document, localqueue.LocalQueue)


def a_workload(name: str, *conditions: dict[str, str], queue: str = "light", active: bool = True) -> WorkloadInfo:
    """A workload of four cores."""
    container = {"name": "c", "resources": {"requests": {"cpu": "4"}}}
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
    document = {
        "metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {"queueName": queue, "active": active, "podSets": [pod_set]},
        "status": {"conditions": list(conditions)},
    }
    wl = decoding.decode(document, workload.Workload)
    return WorkloadInfo(wl, requests.total(wl), "team")


def a_ledger(*queues: localqueue.LocalQueue, rates: UsageRates = RATES) -> UsageLedger:
    new_ledger = UsageLedger(rates)
    new_ledger.set_local_queues(queues or (a_local_queue("light"), a_local_queue("heavy", consumed={"cpu": "8"})))
    return new_ledger


def cores(number: int) -> Consumed:
    return {"cpu": number * 10**9}


def nothing(_: LocalQueueKey) -> Consumed:
    return {}


def consumed(ledger: UsageLedger, key: LocalQueueKey) -> Any:
    status = ledger.status(key)
    assert status is not None
    return status["admissionFairSharingStatus"]["consumedResources"]


def test_a_ledger_begins_with_what_the_status_says_however_old_it_is() -> None:
    ledger = a_ledger()
    assert (ledger.usage(HEAVY), ledger.usage(LIGHT)) == (8, 0)
    assert ledger.status(HEAVY) is None
    assert ledger.rest(HEAVY, NOW) == 0

    ledger.sample(HEAVY, cores(4), NOW)
    assert ledger.status(HEAVY) == {
        "weightedShare": 0,
        "admissionFairSharingStatus": {"consumedResources": {"cpu": "8"}, "lastUpdate": "2026-01-01T00:00:00Z"},
    }
    ledger.sample(LIGHT, cores(4), NOW)
    assert consumed(ledger, LIGHT) == {"cpu": "0"}


def test_every_interval_is_one_sample() -> None:
    ledger = a_ledger()
    ledger.sample(HEAVY, {}, NOW)
    assert ledger.rest(HEAVY, NOW + 4 * MINUTES) == 60
    assert ledger.rest(HEAVY, NOW + 5 * MINUTES) == 0
    ledger.sample(HEAVY, cores(4), NOW + 5 * MINUTES)
    assert consumed(ledger, HEAVY) == {"cpu": "6"}
    assert ledger.usage(HEAVY) == 6


def test_time_that_goes_backwards_changes_nothing() -> None:
    ledger = a_ledger()
    ledger.sample(HEAVY, {}, NOW)
    ledger.sample(HEAVY, {}, NOW - 5 * MINUTES)
    assert consumed(ledger, HEAVY) == {"cpu": "8"}
    assert ledger.rest(HEAVY, NOW) == 300


def test_without_a_half_life_nothing_is_remembered() -> None:
    ledger = a_ledger(rates=UsageRates(0, 300))
    ledger.charge(a_workload("first"))
    ledger.sample(HEAVY, cores(4), NOW)
    assert consumed(ledger, HEAVY) == {}
    assert (ledger.usage(HEAVY), ledger.usage(LIGHT)) == (0, 0)
    assert ledger.rest(HEAVY, NOW) == 300


def test_an_admission_counts_at_once_and_becomes_past_usage() -> None:
    ledger = a_ledger()
    ledger.sample(LIGHT, {}, NOW)
    first = a_workload("first")
    ledger.charge(first)
    assert ledger.usage(LIGHT) == 2
    assert ledger.rest(LIGHT, NOW) == 0, "as long as something is charged, every look is a sample"
    ledger.charge(first)
    assert ledger.usage(LIGHT) == 2, "who is charged again is charged anew"

    admitted = a_workload("first", RESERVED, ADMITTED).workload
    ledger.follow(admitted, NOW + 5 * MINUTES, in_use=lambda _: cores(4))
    assert consumed(ledger, LIGHT) == {"cpu": "4"}, "half of what is used in five minutes, and the penalty"
    ledger.follow(admitted, NOW + 5 * MINUTES, in_use=lambda _: cores(4))
    assert consumed(ledger, LIGHT) == {"cpu": "4"}, "once"
    assert ledger.rest(LIGHT, NOW + 5 * MINUTES) == 300


def test_only_resources_that_the_queue_has_count_where_others_are_not_charged() -> None:
    ledger = a_ledger()
    ledger.charge(a_workload("first"), resources={"memory"})
    assert ledger.usage(LIGHT) == 0


@pytest.mark.parametrize(
    ("after", "want"),
    [
        pytest.param(a_workload("w", RESERVED), 2, id="quota-reserved-is-not-admitted"),
        pytest.param(a_workload("w"), 2, id="pending"),
        pytest.param(a_workload("w", RESERVED, EVICTED), 2, id="evicted"),
        pytest.param(a_workload("w", RESERVED, active=False), 2, id="inactive-with-quota"),
        pytest.param(a_workload("w", RESERVED, ADMITTED, active=False), 2, id="inactive-when-it-was-admitted"),
        pytest.param(a_workload("w", active=False), 0, id="inactive-without-quota"),
        pytest.param(a_workload("w", FINISHED), 0, id="finished"),
        pytest.param(a_workload("w", queue="heavy"), 0, id="in-another-queue"),
    ],
)
def test_a_penalty_is_kept_while_its_workload_may_still_be_admitted(after: WorkloadInfo, want: float) -> None:
    ledger = a_ledger(a_local_queue("light"), a_local_queue("heavy"))
    ledger.charge(a_workload("w"))
    ledger.follow(after.workload, NOW, in_use=nothing)
    assert ledger.usage(LIGHT) == want
    assert ledger.usage(HEAVY) == 0
    ledger.drop("ns/w")
    assert ledger.usage(LIGHT) == 0


def test_penalties_are_those_of_workloads() -> None:
    ledger = a_ledger()
    for name in ("one", "two"):
        ledger.charge(a_workload(name))
    assert ledger.usage(LIGHT) == 4
    ledger.drop("ns/one")
    ledger.drop("ns/one")
    ledger.drop("ns/never")
    assert ledger.usage(LIGHT) == 2


def test_weights_are_those_of_local_queues_as_they_are() -> None:
    ledger = a_ledger(a_local_queue("light", consumed={"cpu": "8"}, weight="2"), a_local_queue("heavy", weight="0"))
    assert (ledger.usage(LIGHT), ledger.usage(HEAVY)) == (4, float("inf"))
    ledger.set_local_queues([a_local_queue("light", weight="4")])
    assert ledger.usage(LIGHT) == 2
    assert ledger.usage(HEAVY) == 0, "of a queue that is not there nothing is known"


def test_a_local_queue_that_is_made_anew_has_used_nothing() -> None:
    ledger = a_ledger()
    ledger.charge(a_workload("first", queue="heavy"))
    ledger.set_local_queues([a_local_queue("heavy", uid="another")])
    assert ledger.usage(HEAVY) == 0
    ledger.follow(a_workload("first", RESERVED, ADMITTED, queue="heavy").workload, NOW, in_use=nothing)
    assert ledger.usage(HEAVY) == 0
