"""Runs of simulations over time: one for each seed and policy, several on all cores."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from drachma import allocator
from drachma.api import gates, meta
from drachma.offline import workloadfiles
from drachma.scheduler.settings import Settings
from drachma.simulate import ClusterState, Simulation
from drachma.simulate.timeline import durations, quota, report
from drachma.simulate.timeline.diary import Diary
from drachma.simulate.timeline.measures import Measures
from drachma.simulate.timeline.timeline import Timeline

_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""Time at which simulations start. Only differences matter."""
_PROGRESS_SECONDS: Final = 0.5


class SimulationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one run depends on."""

    state: ClusterState
    queueing: tuple[meta.Object, ...] = ()
    workloads: tuple[str, ...]
    """Paths of files with workloads."""
    until: float | None = None
    """Seconds after which the simulation ends."""
    seed: int = 0
    title: str = "simulation"
    policy: allocator.Preference = allocator.Policy.FIRST_FIT
    gates: gates.Gates = gates.ALL
    shows_progress: bool = False
    explained: str = ""
    """Namespace and name of the job whose hours the report has; empty for none."""


def run(plan: SimulationPlan) -> report.Report:
    """Run one simulation. An interrupt (Ctrl-C) ends it early, with the report so far.

    Raises InvalidValueError or DecodeError if a workload cannot be read.
    """
    files = workloadfiles.WorkloadFiles(plan.workloads)
    settings = Settings(gates=plan.gates, policy=plan.policy)
    cluster = Simulation(plan.state.plus(files.objects()), settings=settings, seed=plan.seed)
    queueing = [*plan.queueing, *files.queueing_objects()]
    queues = quota.Quota(queueing, epoch=_EPOCH) if quota.has_queues(queueing) else None
    timeline = Timeline(cluster, quota=queues)
    nodes = sorted(info.name for info in cluster.snapshot.nodes)
    progress = _Progress() if plan.shows_progress else None
    diary = Diary(plan.explained) if plan.explained else None

    def look(now: float, measures: Measures) -> None:
        if diary is not None:
            diary.look(timeline.jobs, now)
        if progress is not None:
            progress(now, measures)

    is_complete = True
    try:
        events = files.events(seed=plan.seed, nodes=nodes)
        timeline.run(events, until=plan.until, progress=look if diary is not None else progress)
    except KeyboardInterrupt:
        is_complete = False
    if progress is not None:
        progress.clear()
    return report.make(timeline, title=plan.title, seed=plan.seed, is_complete=is_complete, diary=diary)


def run_all(plans: Sequence[SimulationPlan]) -> list[report.Report]:
    """Run several simulations on all cores, and return their reports in the same order."""
    cores = min(len(plans), len(os.sched_getaffinity(0)))
    if cores <= 1:
        return [run(plan) for plan in plans]
    # Processes of "spawn" inherit no threads or locks of this one.
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(cores, mp_context=context) as pool:
        return list(pool.map(run, plans))


class _Progress:
    """Line on a terminal with the simulated time and the rate of events."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock: Final = clock
        self._began: Final = clock()
        self._next = self._began + _PROGRESS_SECONDS

    def __call__(self, now: float, measures: Measures) -> None:
        real = self._clock()
        if real < self._next:
            return
        self._next = real + _PROGRESS_SECONDS
        rate = measures.arrived / (real - self._began)
        sys.stderr.write(
            f"\r\x1b[Ksimulated {durations.show(now)}: {measures.arrived:,} jobs arrived ({rate:,.0f} a second), "
            f"{measures.running_pods:,} pods run, {measures.waiting_pods:,} wait"
        )
        sys.stderr.flush()

    def clear(self) -> None:
        """Remove the line."""
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
