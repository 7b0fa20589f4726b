"""Runs of simulations over time: one for each seed and policy, several on all cores."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import pathlib
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from drachma import allocator, errors
from drachma.api import gates, meta, node, resourceslice
from drachma.offline import workloadfiles
from drachma.scheduler.settings import Settings
from drachma.simulate import ClusterState, Simulation
from drachma.simulate.timeline import checkpoint, durations, report
from drachma.simulate.timeline.diary import Diary
from drachma.simulate.timeline.events import EventStream
from drachma.simulate.timeline.measures import Measures
from drachma.simulate.timeline.scaling import ScalingRules

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
    scaling: ScalingRules | None = None
    """Node groups that grow and shrink; None for a fixed cluster."""
    checkpoint: str = ""
    """File to write checkpoints to, and to go on from if it exists; empty for none."""
    checkpoint_jobs: int = 100_000
    """Number of arrivals between two checkpoints."""


def run(plan: SimulationPlan) -> report.Report:
    """Run one simulation. An interrupt (Ctrl-C) ends it early, with the report so far.

    Raises InvalidValueError or DecodeError if a workload cannot be read.
    """
    files = workloadfiles.WorkloadFiles(plan.workloads)
    settings = Settings(gates=plan.gates, policy=plan.policy)
    base = checkpoint.Base(
        objects=(*plan.state.objects, *files.objects()),
        queueing=(*plan.queueing, *files.queueing_objects()),
        epoch=_EPOCH,
        make_cluster=lambda state, seed: Simulation(state, settings=settings, seed=seed),
        seed=plan.seed,
        scaling=plan.scaling,
    )
    nodes = sorted(str(each.metadata.name) for each in plan.state.all(node.Node))
    devices = [
        (str(each.spec.node_name), device.name)
        for each in plan.state.all(resourceslice.ResourceSlice)
        if each.spec.node_name
        for device in each.spec.devices
    ]
    path = pathlib.Path(plan.checkpoint) if plan.checkpoint else None
    inputs = _describe_inputs(plan) if path is not None else ""
    events = files.events(seed=plan.seed, nodes=nodes, devices=devices)
    number = 0
    if path is not None and path.exists():
        saved = checkpoint.decode(_read_file(path), title=str(path), inputs=inputs)
        stream, past = checkpoint.skip(events, saved)
        timeline = checkpoint.resume(saved, base, past)
        number = saved.number
    else:
        stream, timeline = EventStream(events), checkpoint.begin(base)
    progress = _Progress() if plan.shows_progress else None
    diary = Diary(plan.explained) if plan.explained else None

    def look(now: float, measures: Measures) -> None:
        if diary is not None:
            diary.look(timeline.jobs, now)
        if progress is not None:
            progress(now, measures)

    is_complete = True
    try:
        while timeline.run(
            stream,
            until=plan.until,
            progress=look if diary is not None else progress,
            pause_after=(number + 1) * plan.checkpoint_jobs if path is not None else None,
        ):
            assert path is not None, "a simulation without checkpoints has no pauses"
            number += 1
            saved = checkpoint.save(timeline, stream, number=number, inputs=inputs)
            _write_file(path, checkpoint.encode(saved))
            timeline = checkpoint.resume(saved, base, checkpoint.past_of(timeline))
    except KeyboardInterrupt:
        is_complete = False
    if progress is not None:
        progress.clear()
    if is_complete and path is not None:
        path.unlink(missing_ok=True)
    return report.make(timeline, title=plan.title, seed=plan.seed, is_complete=is_complete, diary=diary)


def _describe_inputs(plan: SimulationPlan) -> str:
    """Return a short text that is equal only for equal inputs, to the best of its knowledge."""
    sizes = ", ".join(
        f"{pathlib.Path(each).name} ({pathlib.Path(each).stat().st_size} bytes)" for each in plan.workloads
    )
    return (
        f"{sizes} with policy {plan.title}, seed {plan.seed}, {len(plan.state.objects)} objects and "
        f"{plan.checkpoint_jobs} jobs for each checkpoint"
    )


def _read_file(path: pathlib.Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise errors.InvalidValueError(f"{path}: {error.strerror}") from None


def _write_file(path: pathlib.Path, content: bytes) -> None:
    """Replace a file at once, so that an interrupt leaves the old or the new content."""
    temporary = path.with_name(f"{path.name}.new")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise errors.InvalidValueError(f"{path}: {error.strerror}") from None


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
