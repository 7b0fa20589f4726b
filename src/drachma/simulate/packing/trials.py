"""Trials: one policy on one trace with one seed, and many of them on all cores."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import pathlib
import random
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from drachma import errors
from drachma.scheduler.packing import fragmentation, policies
from drachma.scheduler.packing.machines import Machine, Task
from drachma.simulate.packing import experiment, openb


class Trace(NamedTuple):
    """Machines and tasks of a trace."""

    machines: Sequence[Machine]
    tasks: Sequence[Task]

    @property
    def total_milli(self) -> int:
        """Thousandths of all GPUs."""
        return sum(machine.free_milli for machine in self.machines)


class Trial(NamedTuple):
    """Result of one trial."""

    policy: str
    seed: int
    allocated_percent: float
    arrived: int
    failed: int
    fragmentation: float
    """Percentage of the free GPU that is fragments."""
    seconds: float


def read(nodes: pathlib.Path, tasks: pathlib.Path) -> Trace:
    """Read a trace. Raises InvalidValueError, also if there is no GPU or no request for one."""
    trace = Trace(openb.read_machines(nodes), openb.read_tasks(tasks))
    if not trace.total_milli:
        raise errors.InvalidValueError(f"{nodes}: no machine has a GPU")
    if not any(task.total_milli for task in trace.tasks):
        raise errors.InvalidValueError(f"{tasks}: no task requests a GPU")
    return trace


def run(trace: Trace, *, policy: str, demand: float, seed: int) -> Trial:
    """Run one trial."""
    began = time.perf_counter()
    mix = fragmentation.typical_tasks(trace.tasks)
    rng = random.Random(seed)
    total = trace.total_milli
    arrivals = experiment.arrivals(trace.tasks, total_milli=total, demand=demand, rng=rng)
    outcome = experiment.run(trace.machines, arrivals, policy=policies.POLICIES[policy](mix), rng=rng)
    seconds = time.perf_counter() - began
    fragments = fragmentation.Fragmentation(mix)
    free = total - outcome.allocated_milli
    amount = sum(fragments.amount(machine) for machine in outcome.machines)
    return Trial(
        policy=policy,
        seed=seed,
        allocated_percent=outcome.allocated_percent,
        arrived=outcome.arrived,
        failed=outcome.failed,
        fragmentation=100 * amount / free if free else 0.0,
        seconds=seconds,
    )


def run_all(trace: Trace, *, names: Sequence[str], demand: float, seeds: Sequence[int]) -> Iterator[Trial]:
    """Run every policy with every seed, on all cores if there are several trials, and yield them in this order."""
    pairs = [(policy, seed) for policy in names for seed in seeds]
    cores = min(len(pairs), len(os.sched_getaffinity(0)))
    if cores <= 1:
        yield from (run(trace, policy=policy, demand=demand, seed=seed) for policy, seed in pairs)
        return
    # Processes of "spawn" inherit no threads or locks of this one.
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(cores, mp_context=context) as pool:
        futures = [pool.submit(run, trace, policy=policy, demand=demand, seed=seed) for policy, seed in pairs]
        try:
            yield from (future.result() for future in futures)
        finally:
            pool.shutdown(cancel_futures=True)
