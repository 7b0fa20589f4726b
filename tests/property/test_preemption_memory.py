"""Preemption with kept dry runs: the same decisions as without them, whatever happened to the cluster in between.

The memory is shared by all forks of a snapshot. So each question is asked twice, of the snapshot and of a fork with an
empty memory, with the same random numbers.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from drachma.api import gates, meta, pod, poddisruptionbudget
from drachma.api import node as nodes
from drachma.runtime import clock
from drachma.scheduler import profiles
from drachma.scheduler.framework import cyclestate, diagnosis, eviction, verdict
from drachma.scheduler.settings import Settings
from drachma.scheduler.snapshot import Snapshot, podinfo, trialmemory
from drachma.testing import node
from drachma.testing import pod as a_pod

NAMES = tuple(f"n{number}" for number in range(5))
TAINT = nodes.Taint(key="dedicated", effect="NoSchedule")
RNG = random.Random(1)
PROFILE = profiles.default(Settings(), clock=clock.SystemClock(), rng=RNG)


def a_node(name: str, cpu: str, tainted: bool) -> Any:
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "4"}
    return node(name, labels={"zone": "x"}, taints=(TAINT,) if tainted else (), allocatable=allocatable).build()


def with_affinity(made: pod.Pod) -> pod.Pod:
    """Return a pod that shares its zone with no pod of the application."""
    term = pod.PodAffinityTerm(label_selector=meta.LabelSelector(match_labels={"app": "a"}), topology_key="zone")
    apart = pod.PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    return structs.replace(made, spec=structs.replace(made.spec, affinity=pod.Affinity(pod_anti_affinity=apart)))


def a_running_pod(number: int, where: str, cpu: str, priority: int, started: int, is_apart: bool) -> pod.Pod:
    made = a_pod(f"b{number}").uid(f"b{number}").label("app", "ab"[number % 2]).container("c", requests={"cpu": cpu})
    running = made.spec(priority=priority).on_node(where).build()
    status = structs.replace(running.status, start_time=datetime(2026, 11, 1, started, tzinfo=UTC))
    running = structs.replace(running, status=status)
    return with_affinity(running) if is_apart else running


def a_waiting_pod(number: int, cpu: str, priority: int, is_apart: bool = False) -> podinfo.PodInfo:
    made = a_pod(f"w{number}").uid(f"w{number}").label("app", "a").container("c", requests={"cpu": cpu})
    waiting = made.spec(priority=priority).build()
    return podinfo.PodInfo(with_affinity(waiting) if is_apart else waiting)


def a_budget(app: str, allowed: int) -> poddisruptionbudget.PodDisruptionBudget:
    return poddisruptionbudget.PodDisruptionBudget(
        metadata=meta.ObjectMeta(name=app, namespace="default"),
        spec=poddisruptionbudget.PodDisruptionBudgetSpec(selector=meta.LabelSelector(match_labels={"app": app})),
        status=poddisruptionbudget.PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )


NAME = st.sampled_from(NAMES)
NUMBER = st.integers(0, 9)
RARELY = st.sampled_from([False] * 9 + [True])
CPU = st.sampled_from(["500m", "1", "1500m"])
CHANGES = st.one_of(
    st.tuples(st.just("node"), st.builds(a_node, NAME, st.sampled_from("23"), RARELY)),
    st.tuples(st.just("no node"), NAME),
    st.tuples(
        st.just("pod"),
        st.builds(a_running_pod, NUMBER, NAME, CPU, st.sampled_from([0, 5, 20]), st.integers(0, 2), RARELY),
    ),
    st.tuples(st.just("no pod"), NUMBER),
    st.tuples(
        st.just("nominate"),
        st.tuples(st.builds(a_waiting_pod, NUMBER, CPU, st.sampled_from([5, 10, 20]), RARELY), NAME),
    ),
    st.tuples(st.just("no nomination"), NUMBER),
    st.tuples(st.just("budget"), st.builds(a_budget, st.sampled_from("ab"), st.integers(0, 1))),
    st.tuples(st.just("no budget"), st.builds(a_budget, st.sampled_from("ab"), st.just(0))),
)
PREEMPTORS = st.builds(a_waiting_pod, st.integers(0, 3), st.sampled_from(["1", "2"]), st.sampled_from([10, 20]), RARELY)
STEPS = st.lists(st.tuples(st.lists(CHANGES, max_size=3), PREEMPTORS), min_size=1, max_size=12)


def apply(snapshot: Snapshot, change: tuple[str, Any]) -> None:
    match change:
        case "node", made:
            snapshot.add_node(made)
        case "no node", name:
            snapshot.remove_node(name)
        case "pod", made:
            snapshot.add_pod(made)
        case "no pod", number:
            snapshot.remove_pod(f"b{number}")
        case "nominate", (info, name):
            snapshot.nominations.put(info, name)
        case "no nomination", number:
            snapshot.nominations.remove(f"w{number}")
        case "budget", made:
            snapshot.budgets.put(made)
        case "no budget", made:
            snapshot.budgets.remove(made)


def decision(snapshot: Snapshot, info: podinfo.PodInfo, *, seed: int) -> Any:
    """Return the passing nodes, or the message and the eviction for a pod that fits nowhere."""
    RNG.seed(seed)
    cycle = cyclestate.CycleState(info, snapshot)
    try:
        selected = PROFILE.pre_filter(cycle)
        assert not isinstance(selected, verdict.Rejection)
        passing, rejections = PROFILE.filter_with_nominated_pods(cycle, snapshot.nodes.all_nodes)
    except verdict.AbortError as error:
        return str(error)
    if passing:
        return passing
    unfit = diagnosis.Diagnosis(len(snapshot.nodes), None, tuple(rejections))
    result = PROFILE.post_filter(cycle, unfit)
    evictions = [each for each in result.remedies if isinstance(each, eviction.Eviction)]
    victims = [(each.preemptor, each.node, each.victims, each.violations) for each in evictions]
    return unfit.message(), result.message, result.node, victims


@settings(max_examples=120, deadline=None)
@given(STEPS)
def test_kept_dry_runs_change_no_decision(steps: Any) -> None:
    snapshot = Snapshot(gates.ALL)
    for number, name in enumerate(NAMES):
        snapshot.add_node(a_node(name, "2", False))
        snapshot.add_pod(a_running_pod(number, name, "1500m", 0, number % 3, False))
    for seed, (changes, preemptor) in enumerate(steps):
        for change in changes:
            apply(snapshot, change)
        forgetful = snapshot.fork()
        forgetful.trials = trialmemory.TrialMemory()
        assert decision(snapshot, preemptor, seed=seed) == decision(forgetful, preemptor, seed=seed)
