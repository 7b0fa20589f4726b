"""Queues ordered by past usage: the order of workloads, charges, and preemption."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from drachma.api import meta
from drachma.queueing import explanation
from drachma.queueing.admission.admitter import Admitter
from drachma.queueing.configuration import configurationform
from drachma.queueing.kinds import clusterqueue, decoding, localqueue, resourceflavor, workload
from drachma.queueing.workloads import admissibility
from drachma.queueing.workloads.settings import Settings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BY_USAGE = "UsageBasedAdmissionFairSharing"


def a_cluster_queue(name: str = "team", *, cpu: int = 8, mode: str = BY_USAGE, **spec: Any) -> dict[str, Any]:
    quota = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": str(cpu)}]}
    return {
        "metadata": {"name": name},
        "spec": {
            "namespaceSelector": {},
            "queueingStrategy": "BestEffortFIFO",
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [quota]}],
            **({"admissionScope": {"admissionMode": mode}} if mode else {}),
            **spec,
        },
    }


def a_local_queue(
    name: str, cpu: str, *, weight: str = "1", queue: str = "team", namespace: str = "ns"
) -> localqueue.LocalQueue:
    """A local queue that has used so much."""
    sharing = {"consumedResources": {"cpu": cpu}, "lastUpdate": "2026-01-01T00:00:00Z"}
    document = {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"clusterQueue": queue, "fairSharing": {"weight": weight}},
        "status": {"fairSharing": {"weightedShare": 0, "admissionFairSharingStatus": sharing}},
    }
    return decoding.decode(document, localqueue.LocalQueue)


def a_workload(
    name: str, queue: str, *, cpu: int = 8, priority: int = 0, second: int = 0, namespace: str = "ns", **status: Any
) -> workload.Workload:
    container = {"name": "c", "resources": {"requests": {"cpu": str(cpu), "example.com/nic": "6"}}}
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"containers": [container]}}}
    created = meta.time_text(NOW + timedelta(seconds=second))
    document = {
        "metadata": {"name": name, "namespace": namespace, "uid": name, "creationTimestamp": created},
        "spec": {"queueName": queue, "priority": priority, "podSets": [pod_set]},
        **({"status": status} if status else {}),
    }
    return decoding.decode(document, workload.Workload)


def held(
    name: str, queue: str, *, priority: int = 0, cluster_queue: str = "team", namespace: str = "ns"
) -> workload.Workload:
    """A workload of four cores that is admitted."""
    assignment = {"name": "main", "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "4"}, "count": 1}
    at = meta.time_text(NOW)
    conditions = [
        {"type": kind, "status": "True", "reason": kind, "lastTransitionTime": at}
        for kind in ("QuotaReserved", "Admitted")
    ]
    return a_workload(
        name,
        queue,
        cpu=4,
        priority=priority,
        namespace=namespace,
        admission={"clusterQueue": cluster_queue, "podSetAssignments": [assignment]},
        conditions=conditions,
    )


def settings(*, gate: bool = True, fair: bool = False, **weights: float) -> Settings:
    """Half a half-life of ten seconds between samples."""
    document = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "admissionFairSharing": {
            "usageHalfLifeTime": "10s",
            "usageSamplingInterval": "5s",
            "resourceWeights": weights,
        },
        "resources": {"quotaCheckStrategy": "IgnoreUndeclared"},
        "featureGates": {"AdmissionFairSharing": gate},
        **({"fairSharing": {"preemptionStrategies": ["LessThanOrEqualToFinalShare"]}} if fair else {}),
    }
    return Settings.of(configurationform.read(document))


def an_admitter(
    local_queues: Iterable[localqueue.LocalQueue],
    *queues: dict[str, Any],
    holders: Iterable[workload.Workload] = (),
    use: Settings | None = None,
) -> Admitter:
    new_admitter = Admitter(settings=use or settings())
    new_admitter.set_places({"ns": admissibility.Place(), "other": admissibility.Place()})
    tell(new_admitter, local_queues, *queues, holders=holders)
    return new_admitter


def tell(
    admitter: Admitter,
    local_queues: Iterable[localqueue.LocalQueue],
    *queues: dict[str, Any],
    holders: Iterable[workload.Workload] = (),
) -> None:
    admitter.set_queues(
        [decoding.decode(each, clusterqueue.ClusterQueue) for each in queues or (a_cluster_queue(),)],
        local_queues=local_queues,
        flavors=[decoding.decode({"metadata": {"name": "default"}}, resourceflavor.ResourceFlavor)],
        holders=holders,
    )


def waiting(admitter: Admitter, queue: str = "team") -> list[str]:
    return [each.workload.metadata.name for each in admitter.queues[queue].waiting()]


def admitted(admitter: Admitter) -> list[str]:
    """Return the admitted workloads, cycle after cycle, until no head is left to try."""
    names: list[str] = []
    while (report := admitter.run_cycle(NOW)) is not None:
        names += [
            each.workload.metadata.name for each in (entry.info for entry in report.entries if entry.admission)
        ] or ["nobody"]
        if names[-1] == "nobody":
            return names[:-1]
    return names


USED = [a_local_queue("heavy", "8"), a_local_queue("light", "2")]


@pytest.mark.parametrize(
    ("local_queues", "queue", "use", "want"),
    [
        pytest.param(USED, a_cluster_queue(), settings(), ["light", "urgent", "heavy"], id="before-priority"),
        pytest.param(
            [a_local_queue("heavy", "8", weight="8"), a_local_queue("light", "2")],
            a_cluster_queue(),
            settings(),
            ["urgent", "heavy", "light"],
            id="by-the-weights-of-local-queues",
        ),
        pytest.param(
            [a_local_queue("heavy", "0"), a_local_queue("light", "0", weight="0")],
            a_cluster_queue(),
            settings(),
            ["urgent", "heavy", "light"],
            id="without-weight-last",
        ),
        pytest.param(USED, a_cluster_queue(), settings(cpu=0), ["urgent", "heavy", "light"], id="by-resource-weights"),
        pytest.param(
            USED,
            a_cluster_queue(mode="NoAdmissionFairSharing"),
            settings(),
            ["urgent", "heavy", "light"],
            id="not-where-the-queue-says-no",
        ),
        pytest.param(
            USED, a_cluster_queue(mode=""), settings(), ["urgent", "heavy", "light"], id="nor-where-it-says-nothing"
        ),
        pytest.param(
            USED, a_cluster_queue(), settings(gate=False), ["urgent", "heavy", "light"], id="nor-without-the-gate"
        ),
        pytest.param(
            USED,
            a_cluster_queue(queueingStrategy="StrictFIFO"),
            settings(),
            ["light", "urgent", "heavy"],
            id="in-strict-queues-too",
        ),
    ],
)
def test_who_used_least_comes_first(
    local_queues: list[localqueue.LocalQueue], queue: dict[str, Any], use: Settings, want: list[str]
) -> None:
    admitter = an_admitter(local_queues, queue, use=use)
    admitter.enqueue(a_workload("light", "light", second=2), NOW)
    admitter.enqueue(a_workload("heavy", "heavy", second=1), NOW)
    admitter.enqueue(a_workload("urgent", "heavy", priority=5), NOW)

    assert waiting(admitter) == want
    pending_queue = admitter.queues["team"]
    assert pending_queue.active == tuple(f"ns/{name}" for name in want)
    popped = [pending_queue.pop(), pending_queue.pop(), pending_queue.pop(), pending_queue.pop()]
    assert [each and each.workload.metadata.name for each in popped] == [*want, None]


def test_one_of_each_local_queue_is_admitted_as_every_admission_counts_at_once() -> None:
    admitter = an_admitter([a_local_queue("a", "0"), a_local_queue("b", "0")])
    for second, (name, queue) in enumerate((("a1", "a"), ("a2", "a"), ("b1", "b"), ("b2", "b"))):
        admitter.enqueue(a_workload(name, queue, cpu=4, second=second), NOW)
    assert admitted(admitter) == ["a1", "b1"]


def test_a_penalty_is_of_what_is_requested_and_the_queue_has_quota_for() -> None:
    admitter = an_admitter([a_local_queue("a", "0")])
    admitter.enqueue(a_workload("a1", "a", cpu=8), NOW)
    assert admitted(admitter) == ["a1"]
    assert admitter.ledger is not None
    assert admitter.ledger.usage(("ns", "a")) == pytest.approx(8 * (1 - 0.5**0.5))


def test_nobody_is_charged_in_a_queue_that_does_not_look_at_usage() -> None:
    admitter = an_admitter([a_local_queue("a", "0")], a_cluster_queue(mode=""))
    admitter.enqueue(a_workload("a1", "a"), NOW)
    assert admitted(admitter) == ["a1"]
    assert admitter.ledger is not None
    assert admitter.ledger.usage(("ns", "a")) == 0


def test_a_weight_that_changes_changes_the_order_of_who_waits() -> None:
    admitter = an_admitter(USED)
    for each in ("heavy", "light"):
        admitter.enqueue(a_workload(each, each), NOW)
    assert waiting(admitter) == ["light", "heavy"]
    tell(admitter, [a_local_queue("heavy", "8", weight="100"), USED[1]])
    assert waiting(admitter) == ["heavy", "light"]
    assert admitted(admitter) == ["heavy"]


def test_a_queue_that_begins_to_look_at_usage_orders_anew_who_waits() -> None:
    admitter = an_admitter(USED, a_cluster_queue(mode=""))
    admitter.enqueue(a_workload("heavy", "heavy"), NOW)
    admitter.enqueue(a_workload("light", "light", second=1), NOW)
    assert waiting(admitter) == ["heavy", "light"]
    tell(admitter, USED, a_cluster_queue())
    assert waiting(admitter) == ["light", "heavy"]
    tell(admitter, USED, a_cluster_queue(mode="NoAdmissionFairSharing"))
    assert waiting(admitter) == ["heavy", "light"]


PREEMPTION = {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}


@pytest.mark.parametrize("fair", [pytest.param(False, id="classical"), pytest.param(True, id="fair")])
@pytest.mark.parametrize(
    ("local_queues", "holders", "want"),
    [
        pytest.param(
            USED,
            [held("of-heavy", "heavy", priority=2), held("of-light", "light", priority=1)],
            "of-heavy",
            id="who-used-most-goes-first-even-if-more-urgent",
        ),
        pytest.param(
            [a_local_queue("heavy", "8"), a_local_queue("light", "8")],
            [held("of-heavy", "heavy", priority=2), held("of-light", "light", priority=1)],
            "of-light",
            id="by-priority-where-usage-is-equal",
        ),
        pytest.param(
            [a_local_queue("same", "8"), a_local_queue("same", "2", namespace="other")],
            [held("of-heavy", "same", priority=2), held("of-light", "same", priority=1, namespace="other")],
            "of-light",
            id="by-priority-between-local-queues-of-one-name",
        ),
    ],
)
def test_who_has_to_go(
    local_queues: list[localqueue.LocalQueue], holders: list[workload.Workload], want: str, fair: bool
) -> None:
    admitter = an_admitter(
        [*local_queues, a_local_queue("new", "0")],
        a_cluster_queue(preemption=PREEMPTION),
        holders=holders,
        use=settings(fair=fair),
    )
    admitter.enqueue(a_workload("urgent", "new", cpu=4, priority=100), NOW)
    report = admitter.run_cycle(NOW)
    assert report is not None
    assert [target.info.workload.metadata.name for target in report.entries[0].targets] == [want]


def test_an_explanation_says_whose_turn_it_is_and_why() -> None:
    admitter = an_admitter([*USED, a_local_queue("none", "0", weight="0")], holders=[held("runs", "heavy")])
    for name, queue in (("h", "heavy"), ("l", "light"), ("n", "none")):
        admitter.enqueue(a_workload(name, queue), NOW)
    first, last = (explanation.explain(admitter, a_workload(*each), NOW) for each in (("l", "light"), ("n", "none")))

    assert (first.position, last.position) == (1, 3)
    assert "take turns" not in explanation.render(first)
    assert "  local queues take turns by past usage: ns/light 2, ns/heavy 8, ns/none inf" in explanation.render(last)
    assert explanation.to_document(last)["pastUsage"] == [
        {"localQueue": "ns/light", "usage": 2.0},
        {"localQueue": "ns/heavy", "usage": 8.0},
        {"localQueue": "ns/none", "usage": None},
    ]


@pytest.mark.parametrize("spec", [pytest.param({}, id="active"), pytest.param({"stopPolicy": "Hold"}, id="stopped")])
def test_what_is_in_use_is_what_admitted_workloads_of_a_local_queue_hold(spec: dict[str, Any]) -> None:
    reserved = decoding.decode(
        {
            "metadata": {"name": "reserved", "namespace": "ns", "uid": "reserved"},
            "spec": {"queueName": "heavy"},
            "status": {
                "admission": {
                    "clusterQueue": "team",
                    "podSetAssignments": [
                        {"name": "main", "flavors": {"cpu": "default"}, "resourceUsage": {"cpu": "1"}}
                    ],
                }
            },
        },
        workload.Workload,
    )
    holders = [held("a", "heavy"), held("b", "heavy"), held("c", "light"), reserved]
    admitter = an_admitter(USED, a_cluster_queue(cpu=100, **spec), holders=holders)
    assert admitter.local_queue_usage(("ns", "heavy")) == {"cpu": 8 * 10**9}
    assert admitter.local_queue_usage(("ns", "none")) == {}
