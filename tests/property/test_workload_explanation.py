"""Explanations of workloads against admission: what they propose helps, and nothing smaller does."""

import contextlib
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from drachma.queueing import explanation
from drachma.queueing.admission.admitter import Admitter
from drachma.queueing.explanation import remedies
from drachma.queueing.explanation.question import Question
from drachma.queueing.kinds import clusterqueue, decoding, localqueue, resourceflavor, workload
from drachma.queueing.workloads import admissibility
from drachma.queueing.workloads.settings import Settings

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
_FLAVORS = ("f", "g")
_RESOURCES = ("cpu", "memory")
_LIMIT = st.none() | st.integers(0, 6)
_POLICIES = ("Never", "LowerPriority", "Any")
# The same worlds each time, so that nobody's change fails by chance.
_unhurried = settings(deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def _groups(draw: st.DrawFn, *, has_parent: bool) -> list[dict[str, Any]]:
    def quota(resource: str) -> dict[str, Any]:
        limits = {"borrowingLimit": draw(_LIMIT), "lendingLimit": draw(_LIMIT)} if has_parent else {}
        written = {name: str(value) for name, value in limits.items() if value is not None}
        return {"name": resource, "nominalQuota": str(draw(st.integers(0, 8))), **written}

    flavors = [{"name": name, "resources": [quota(each) for each in _RESOURCES]} for name in _FLAVORS]
    return [{"coveredResources": list(_RESOURCES), "flavors": flavors[: draw(st.integers(1, 2))]}]


@st.composite
def _pod_sets(draw: st.DrawFn) -> list[dict[str, Any]]:
    """One or two pod sets, the first of which may do with fewer pods."""
    made = []
    for name in ("main", "more")[: draw(st.integers(1, 2))]:
        requests = {each: str(draw(st.integers(1, 4))) for each in _RESOURCES}
        container = {"name": "c", "resources": {"requests": requests}}
        count = draw(st.integers(1, 3))
        least = draw(st.none() | st.integers(1, count)) if name == "main" else None
        template = {"spec": {"containers": [container]}}
        pod_set: dict[str, Any] = {"name": name, "count": count, "template": template}
        made.append(pod_set if least is None else {**pod_set, "minCount": least})
    return made


@st.composite
def _worlds(draw: st.DrawFn) -> Admitter:
    """Queues below up to two cohorts, workloads that were admitted in turn, and one that waits in the first queue."""
    cohorts = []
    for number in range(draw(st.integers(0, 2))):
        parent = "cohort-0" if number else ""
        spec: dict[str, Any] = {"resourceGroups": draw(_groups(has_parent=bool(number))), "parentName": parent}
        cohorts.append({"metadata": {"name": f"cohort-{number}"}, "spec": spec})
    queues = []
    for number in range(draw(st.integers(1, 3))):
        cohort = draw(st.sampled_from(["", *(each["metadata"]["name"] for each in cohorts)]))
        spec = {
            "resourceGroups": draw(_groups(has_parent=bool(cohort))),
            "cohortName": cohort,
            "namespaceSelector": {},
            "preemption": {
                "reclaimWithinCohort": draw(st.sampled_from(_POLICIES)),
                "withinClusterQueue": draw(st.sampled_from(_POLICIES[:2])),
            },
            "flavorFungibility": {
                "whenCanBorrow": draw(st.sampled_from(["MayStopSearch", "TryNextFlavor"])),
                "whenCanPreempt": draw(st.sampled_from(["MayStopSearch", "TryNextFlavor"])),
            },
        }
        queues.append({"metadata": {"name": f"queue-{number}"}, "spec": spec})
    admitter = Admitter(settings=Settings(fair_sharing=draw(st.booleans())))
    admitter.set_places({"ns": admissibility.Place()})
    admitter.set_queues(
        [decoding.decode(each, clusterqueue.ClusterQueue) for each in queues],
        cohorts=[decoding.decode(each, clusterqueue.Cohort) for each in cohorts],
        local_queues=[
            decoding.decode(
                {
                    "metadata": {"name": f"local-{number}", "namespace": "ns"},
                    "spec": {"clusterQueue": f"queue-{number}"},
                },
                localqueue.LocalQueue,
            )
            for number in range(len(queues))
        ],
        flavors=[decoding.decode({"metadata": {"name": name}}, resourceflavor.ResourceFlavor) for name in _FLAVORS],
    )
    for number in range(draw(st.integers(0, 8))):
        made = _workload(
            f"w-{number}", draw(st.integers(0, len(queues) - 1)), draw(st.integers(0, 2)), draw(_pod_sets())
        )
        info = admitter.info(made, admitter.queue_of(made) or "")
        entry = admitter.consider(info, _NOW)
        if entry.admission is not None:
            status = structs.replace(made.status, admission=entry.admission)
            admitter.hold(structs.replace(made, status=status))
    admitter.enqueue(_workload("asked", 0, draw(st.integers(0, 2)), draw(_pod_sets())), _NOW)
    return admitter


def _workload(name: str, queue: int, priority: int, pod_sets: list[dict[str, Any]]) -> workload.Workload:
    document = {
        "metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {"queueName": f"local-{queue}", "priority": priority, "podSets": pod_sets},
    }
    return decoding.decode(document, workload.Workload)


def _state(admitter: Admitter) -> object:
    tree = admitter.snapshot.tree
    nodes = [*tree.queues.values(), *tree.cohorts.values()]
    numbers = [(each.name, dict(each.subtree), dict(each.local), _nonzero(each.usage)) for each in nodes]
    return numbers, {name: set(each.workloads) for name, each in admitter.snapshot.queues.items()}


def _nonzero(of: Any) -> dict[Any, int]:
    return {key: amount for key, amount in of.items() if amount}


def _question(admitter: Admitter) -> Question:
    info = admitter.queues["queue-0"].get("ns/asked")
    assert info is not None
    return Question(admitter, info, _NOW)


def _is_admitted_with(question: Question, increases: Iterable[remedies.Increase]) -> bool:
    with contextlib.ExitStack() as stack:
        for each in increases:
            stack.enter_context(remedies.with_increase(question, each))
        return question.is_admitted()


def _is_admitted_without(question: Question, endings: Iterable[str]) -> bool:
    holders = question.snapshot.holders
    with question.snapshot.without([holders[key] for key in endings]):
        return question.is_admitted()


@_unhurried
@given(admitter=_worlds())
def test_proposed_changes_help_and_nothing_smaller_does(admitter: Admitter) -> None:
    question = _question(admitter)
    before = _state(admitter)
    answer = explanation.explain(admitter, question.info.workload, _NOW)
    assert _state(admitter) == before
    assert (answer.outcome is explanation.Outcome.FITS) == question.is_admitted()
    for remedy in answer.remedies:
        if remedy.increases:
            assert _is_admitted_with(question, remedy.increases)
            for each in remedy.increases:
                less = structs.replace(each, amount=each.amount - 1, value=each.value - 1)
                rest = [other for other in remedy.increases if other is not each]
                assert not _is_admitted_with(question, [*rest, less]), (remedy, each)
        else:
            assert _is_admitted_without(question, remedy.endings)
            for key in remedy.endings:
                assert not _is_admitted_without(question, set(remedy.endings) - {key}), (remedy, key)


@_unhurried
@given(admitter=_worlds())
def test_a_shortage_is_named_and_some_quota_would_mend_it(admitter: Admitter) -> None:
    answer = explanation.explain(admitter, _question(admitter).info.workload, _NOW)
    if answer.outcome is not explanation.Outcome.DOES_NOT_FIT:
        return
    assert answer.shortages
    assert any(
        change.field == remedies.NOMINAL and change.name == "queue-0"
        for remedy in answer.remedies
        for change in remedy.increases
    )
    for shortage in answer.shortages:
        assert shortage.missing > 0
        assert shortage.levels[0].name == "queue-0"
        used = sum(each.amount for each in shortage.holdings if each.queue == "queue-0")
        assert used == shortage.levels[0].used
