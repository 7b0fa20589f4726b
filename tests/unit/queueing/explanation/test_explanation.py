"""Explanations of workloads: where the limit is, who has what is short, what protects them, and what would help."""

from datetime import UTC, datetime
from typing import Any

import pytest

from drachma.queueing import explanation
from drachma.queueing.admission.admitter import Admitter
from drachma.queueing.explanation import Outcome, WorkloadExplanation
from drachma.queueing.kinds import clusterqueue, decoding, localqueue, resourceflavor, workload
from drachma.queueing.workloads import admissibility
from drachma.queueing.workloads.settings import Settings

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_queue(name: str, *, cohort: str = "", strategy: str = "BestEffortFIFO", **spec: Any) -> dict[str, Any]:
    """A cluster queue; ``spec`` has the quota of cpu and the preemption policies."""
    quota = {
        field: str(spec.pop(field)) for field in ("nominalQuota", "borrowingLimit", "lendingLimit") if field in spec
    }
    flavors = [{"name": flavor, "resources": [{"name": "cpu", **quota}]} for flavor in spec.pop("flavors", ("spot",))]
    return {
        "metadata": {"name": name},
        "spec": {
            "cohortName": cohort,
            "queueingStrategy": strategy,
            "namespaceSelector": {},
            "resourceGroups": [{"coveredResources": ["cpu"], "flavors": flavors}],
            **({"preemption": spec} if spec else {}),
        },
    }


def a_workload(name: str, queue: str, cpu: int, *, priority: int = 0, **template: Any) -> workload.Workload:
    container = {"name": "c", "resources": {"requests": {"cpu": str(cpu)}}}
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"containers": [container], **template}}}
    document = {
        "metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {"queueName": queue, "priority": priority, "podSets": [pod_set]},
    }
    return decoding.decode(document, workload.Workload)


def held(name: str, queue: str, cpu: int, *, priority: int = 0, **status: Any) -> workload.Workload:
    assignment = {"name": "main", "flavors": {"cpu": "spot"}, "resourceUsage": {"cpu": str(cpu)}, "count": 1}
    document = {
        "metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {"queueName": queue, "priority": priority, "podSets": [{"name": "main", "count": 1}]},
        "status": {"admission": {"clusterQueue": queue, "podSetAssignments": [assignment]}, **status},
    }
    return decoding.decode(document, workload.Workload)


def admitter(*queues: dict[str, Any], cohorts: tuple[dict[str, Any], ...] = (), fair: bool = False) -> Admitter:
    """With a local queue of the same name for each queue, and the flavors spot and arm."""
    new_admitter = Admitter(settings=Settings(fair_sharing=fair))
    new_admitter.set_places({"ns": admissibility.Place()})
    names = [each["metadata"]["name"] for each in queues]
    arm = {"metadata": {"name": "arm"}, "spec": {"nodeLabels": {"arch": "arm"}}}
    new_admitter.set_queues(
        [decoding.decode(each, clusterqueue.ClusterQueue) for each in queues],
        cohorts=[decoding.decode(each, clusterqueue.Cohort) for each in cohorts],
        local_queues=[
            decoding.decode(
                {"metadata": {"name": name, "namespace": "ns"}, "spec": {"clusterQueue": name}}, localqueue.LocalQueue
            )
            for name in names
        ],
        flavors=[
            decoding.decode(each, resourceflavor.ResourceFlavor) for each in ({"metadata": {"name": "spot"}}, arm)
        ],
    )
    return new_admitter


def explained(subject: Admitter, wl: workload.Workload, *holders: workload.Workload) -> WorkloadExplanation:
    for each in holders:
        subject.hold(each)
    subject.enqueue(wl, NOW)
    return explanation.explain(subject, wl, NOW)


def test_a_queue_that_is_full() -> None:
    answer = explained(admitter(a_queue("team", nominalQuota=4)), a_workload("w", "team", 3), held("old", "team", 2))
    assert explanation.render(answer).splitlines() == [
        (
            "workload ns/w: does not fit: couldn't assign flavors to pod set main: "
            "insufficient unused quota for cpu in flavor spot, 1 more needed"
        ),
        "  number 1 of 1 in cluster queue team (/team), by local queue team",
        "  pod set main, flavor spot: cpu: needs 3, 2 can be had, 1 short",
        "    cluster queue team: uses 2 of 4",
        "    the limit is the quota of cluster queue team",
        "    2 in use by cluster queue team: ns/old 2",
        "  would not be preempted:",
        "    ns/old in team: withinClusterQueue of team is Never",
        "  would help, each by itself:",
        "    1 more cpu of flavor spot as nominal quota of cluster queue team (5 then)",
        "    the end of ns/old",
    ]


def test_a_borrowing_limit_and_what_others_do_not_lend() -> None:
    queues = (
        a_queue("team", cohort="all", nominalQuota=2, borrowingLimit=1),
        a_queue("other", cohort="all", nominalQuota=6, lendingLimit=2),
    )
    answer = explained(admitter(*queues), a_workload("w", "team", 4))
    assert explanation.render(answer).splitlines()[2:] == [
        "  pod set main, flavor spot: cpu: needs 4, 3 can be had, 1 short",
        "    there would be 3 if nothing else ran",
        "    cluster queue team: uses 0 of 2, may borrow 1",
        "    the limit is the borrowing limit of cluster queue team",
        "    cluster queue other has 4 left, and does not lend it: its lending limit is 2",
        "  would help, each by itself:",
        "    1 more cpu of flavor spot as nominal quota of cluster queue team (3 then)",
        "    1 more cpu of flavor spot as borrowing limit of cluster queue team (2 then)",
    ]


def test_the_quota_of_a_cohort_and_who_uses_it() -> None:
    cohort = {"metadata": {"name": "all"}, "spec": {}}
    queues = (
        a_queue("team", cohort="all", nominalQuota=1),
        a_queue("other", cohort="all", nominalQuota=3, lendingLimit=2),
    )
    answer = explained(
        admitter(*queues, cohorts=(cohort,)), a_workload("w", "team", 3), held("a", "other", 2), held("b", "team", 1)
    )
    (shortage,) = answer.shortages
    assert [(each.kind, each.name, each.used, each.quota) for each in shortage.levels] == [
        ("ClusterQueue", "team", 1000, 1000),
        ("Cohort", "all", 2000, 3000),
    ]
    assert shortage.limit == "quota"
    assert [(each.workload, each.amount) for each in shortage.holdings] == [("ns/a", 2000), ("ns/b", 1000)]
    assert [each.endings for each in answer.remedies if each.endings] == [("ns/a", "ns/b")]


PROTECTED = [
    pytest.param({"withinClusterQueue": "LowerPriority"}, "team", 5, "its priority 5 is the same", id="same-priority"),
    pytest.param({"withinClusterQueue": "LowerPriority"}, "team", 9, "is not below 5", id="more-urgent"),
    pytest.param({"reclaimWithinCohort": "Never"}, "other", 0, "reclaimWithinCohort of team is Never", id="no-reclaim"),
    pytest.param({"reclaimWithinCohort": "LowerPriority"}, "other", 9, "reclaimWithinCohort is", id="urgent-elsewhere"),
    pytest.param({"reclaimWithinCohort": "Any"}, "rich", 0, "rich uses no more than it has", id="within-its-quota"),
    pytest.param({"reclaimWithinCohort": "Any"}, "other", 0, "its borrowWithinCohort is Never", id="would-borrow"),
]


@pytest.mark.parametrize(("policies", "queue", "priority", "want"), PROTECTED)
def test_what_protects_a_holder(policies: dict[str, str], queue: str, priority: int, want: str) -> None:
    queues = (
        a_queue("team", cohort="all", nominalQuota=2, **policies),
        a_queue("other", cohort="all", nominalQuota=0),
        a_queue("rich", cohort="all", nominalQuota=4),
    )
    answer = explained(
        admitter(*queues),
        a_workload("w", "team", 5, priority=5),
        held("h", queue, 4 if queue == "rich" else 3, priority=priority),
    )
    assert answer.outcome is Outcome.DOES_NOT_FIT
    (verdict,) = answer.verdicts
    assert not verdict.is_target
    assert want in verdict.reason


def test_who_would_be_preempted() -> None:
    queue = a_queue("team", nominalQuota=4, withinClusterQueue="LowerPriority")
    answer = explained(
        admitter(queue),
        a_workload("w", "team", 2, priority=5),
        held("low", "team", 2),
        held("high", "team", 1, priority=9),
        held("small", "team", 1, priority=1),
    )
    assert answer.outcome is Outcome.PREEMPTS
    assert [(each.workload, each.is_target, each.reason) for each in answer.verdicts] == [
        ("ns/low", True, "InClusterQueue"),
        ("ns/high", False, "its priority 9 is not below 5, and withinClusterQueue is LowerPriority"),
        ("ns/small", False, "may be preempted, and need not be"),
    ]
    assert "  would be preempted: ns/low (InClusterQueue)" in explanation.render(answer).splitlines()
    assert answer.remedies == ()


def test_who_is_evicted_already_is_waited_for() -> None:
    evicted = [{"type": "Evicted", "status": "True", "reason": "Preempted"}]
    answer = explained(
        admitter(a_queue("team", nominalQuota=4)),
        a_workload("w", "team", 3),
        held("going", "team", 3, conditions=evicted),
    )
    (remedy, *_) = answer.remedies
    assert (remedy.is_waiting, remedy.endings) == (True, ("ns/going",))
    assert "evicted already" in explanation.render(answer)


@pytest.mark.parametrize(
    ("selector", "want"),
    [
        pytest.param(None, "cluster queue a has no namespaceSelector, which stands for no namespace at all", id="none"),
        pytest.param(
            {"matchLabels": {"team": "a"}}, "namespace ns has not the labels that cluster queue a selects", id="others"
        ),
    ],
)
def test_a_queue_for_other_namespaces(selector: dict[str, Any] | None, want: str) -> None:
    queue = a_queue("a", nominalQuota=4)
    queue["spec"]["namespaceSelector"] = selector
    answer = explained(admitter(queue), a_workload("w", "a", 1))
    assert answer.message == f"workload namespace doesn't match ClusterQueue selector: {want}"


def test_holders_that_fair_sharing_keeps() -> None:
    queues = [a_queue(name, cohort="all", nominalQuota=2, reclaimWithinCohort="Any") for name in ("a", "b", "c")]
    holders = [held(f"{queue}{number}", queue, 1) for queue in ("a", "b") for number in range(3)]
    answer = explained(admitter(*queues, fair=True), a_workload("w", "a", 1), *holders)
    want = "may be preempted, but as far as fair sharing goes that would not be enough"
    assert {each.workload: each.reason for each in answer.verdicts if each.queue == "b"} == {
        f"ns/b{number}": want for number in range(3)
    }


def test_flavors_that_pods_cannot_use() -> None:
    queue = a_queue("team", nominalQuota=4, flavors=("arm", "spot"))
    answer = explained(admitter(queue), a_workload("w", "team", 5, nodeSelector={"arch": "x86"}))
    assert [each.reason for each in answer.unsuitable] == ["flavor arm doesn't match node affinity"]
    assert {change.key.flavor for remedy in answer.remedies for change in remedy.increases} == {"spot"}


def test_a_resource_that_the_queue_does_not_have() -> None:
    team = admitter(a_queue("team", nominalQuota=4))
    container = {"name": "c", "resources": {"requests": {"gpus": "1"}}}
    answer = explained(team, a_workload("w", "team", 1, containers=[container]))
    assert [each.reason for each in answer.unsuitable] == ["cluster queue team has no quota for gpus"]
    assert answer.remedies == ()


def test_quota_for_all_pods_where_less_would_have_others_preempted() -> None:
    # With two more, all pods would fit in place of the other, and it would be preempted for what fewer pods could have.
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"containers": [container]}}
    pod_sets = [
        {"name": "main", "count": 2, "minCount": 1, "template": template},
        {"name": "more", "count": 1, "template": template},
    ]
    document = decoding.document(a_workload("w", "team", 1, priority=1))
    wl = decoding.decode({**document, "spec": {**document["spec"], "podSets": pod_sets}}, workload.Workload)
    queue = a_queue("team", nominalQuota=1, withinClusterQueue="LowerPriority")
    answer = explained(admitter(queue), wl, held("old", "team", 1))
    assert [[each.amount for each in remedy.increases] for remedy in answer.remedies] == [[3000]]


def test_the_place_in_the_queue() -> None:
    team = admitter(a_queue("team", nominalQuota=4, strategy="StrictFIFO"))
    team.enqueue(a_workload("big", "team", 9, priority=7), NOW)
    answer = explained(team, a_workload("w", "team", 3))
    assert answer.outcome is Outcome.FITS
    assert explanation.render(answer).splitlines() == [
        "workload ns/w: would be admitted if it were its turn",
        "  number 2 of 2 in cluster queue team (/team), by local queue team",
        "  before it: ns/big (priority 7)",
        "  order is strict: these must be admitted first",
        "  that is what quota says; whether its pods would find nodes is not looked at",
    ]


def test_a_workload_that_has_quota_and_no_nodes() -> None:
    condition = {"type": "QuotaReserved", "status": "False", "reason": "PlacementFailed", "message": "no node is left"}
    wl = decoding.decode(
        {**decoding.document(a_workload("w", "team", 1)), "status": {"conditions": [condition]}}, workload.Workload
    )
    answer = explained(admitter(a_queue("team", nominalQuota=4)), wl)
    assert (answer.outcome, answer.message) == (Outcome.DOES_NOT_FIT, "enough quota, but no node is left")
    assert answer.shortages == ()


@pytest.mark.parametrize(
    ("queue", "want"),
    [
        pytest.param("", "it names no local queue", id="no-queue"),
        pytest.param("nowhere", "local queue ns/nowhere, or the cluster queue behind it, does not exist", id="unknown"),
        pytest.param("closed", "cluster queue closed is inactive", id="inactive"),
    ],
)
def test_a_workload_in_no_queue(queue: str, want: str) -> None:
    closed = a_queue("closed", nominalQuota=4)
    closed["spec"]["stopPolicy"] = "Hold"
    answer = explained(admitter(closed), a_workload("w", queue, 1))
    assert (answer.outcome, answer.message) == (Outcome.NOT_QUEUED, want)


def test_the_end_of_who_runs_in_a_stopped_queue_of_the_cohort_helps() -> None:
    closed = a_queue("closed", cohort="all", nominalQuota=4)
    closed["spec"]["stopPolicy"] = "Hold"
    both = admitter(a_queue("open", cohort="all", nominalQuota=2), closed)

    answer = explained(both, a_workload("w", "open", 4), held("old", "closed", 3))

    assert [each.endings for each in answer.remedies if each.endings] == [("ns/old",)]


def test_a_workload_that_is_admitted() -> None:
    conditions = [{"type": kind, "status": "True", "reason": "r"} for kind in ("QuotaReserved", "Admitted")]
    team = admitter(a_queue("team", nominalQuota=4))
    holder = held("h", "team", 1, conditions=conditions)
    team.hold(holder)
    answer = explanation.explain(team, holder, NOW)
    assert (answer.outcome, answer.cluster_queue) == (Outcome.ADMITTED, "team")
    assert explanation.to_document(answer)["outcome"] == "Admitted"
    assert explanation.render(answer).splitlines()[-1].startswith("  whether its pods find nodes, drachma explain")
