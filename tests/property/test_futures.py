"""Futures that touch only what events concern, against futures in which all running pods are jobs from the start."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from drachma import testing
from drachma.api import meta, pod
from drachma.simulate import ClusterState
from drachma.simulate.timeline import future
from drachma.simulate.timeline.events import NodeOutage
from drachma.simulate.timeline.future import Assumption, ClusterNow
from drachma.simulate.timeline.jobrun import JobRun
from tests.unit.simulate import objects as clusters

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
NODES = ("a", "b")


@st.composite
def cluster_pods(draw: st.DrawFn) -> list[pod.Pod]:
    """Return pods that run and pods that wait, of several sizes and priorities."""
    pods = []
    for number in range(draw(st.integers(2, 9))):
        made = (
            testing.pod(f"p{number}").uid(f"p{number}").container("c", requests={"cpu": draw(st.sampled_from("124"))})
        )
        node = draw(st.sampled_from((*NODES, "")))
        built = (made.on_node(node) if node else made).build()
        created = NOW - timedelta(seconds=draw(st.integers(1, 9000)))
        stated = draw(st.sampled_from(("", "2h", "3h")))
        metadata = structs.replace(
            built.metadata, creation_timestamp=created, annotations={future.DURATION: stated} if stated else {}
        )
        spec = structs.replace(built.spec, priority=draw(st.sampled_from((0, 0, 7))))
        status = structs.replace(built.status, start_time=created if node else None)
        pods.append(structs.replace(built, metadata=metadata, spec=spec, status=status))
    return pods


def history(pods: Sequence[pod.Pod], assumption: Assumption, *, meets_all: bool) -> tuple[list[str], set[str]]:
    """Return everything that happens in one future with a failing node, and the jobs at its end."""
    lines: list[str] = []

    def note(happening: str, time: float, job: JobRun, where: str) -> None:
        lines.append(f"{time} {happening} {job.key} on {where}")

    nodes: list[meta.Object] = [testing.node(name, allocatable=clusters.CPU).build() for name in NODES]
    now = ClusterNow(ClusterState.of([*nodes, *pods]), (), NOW)
    made = future.Prospect(now).future(assumption, random.Random(5), observer=note)
    if meets_all:
        assert len(made.timeline.jobs) == sum(bool(each.spec.node_name) for each in pods)
    made.timeline.run([*made.waiting, NodeOutage(50.0, ("a",), 400.0)], until=20_000.0)
    return lines, {f"{key} {sorted(job.waiting)}" for key, job in made.timeline.jobs.items()}


@settings(max_examples=60)
@given(
    cluster_pods(), st.sampled_from((Assumption(), Assumption(mean=500.0), Assumption(history=(100.0, 900.0, 7000.0))))
)
def test_pods_become_jobs_late_or_at_once(pods: list[pod.Pod], assumption: Assumption) -> None:
    assert history(pods, assumption, meets_all=False) == history(pods, assumption, meets_all=True)
