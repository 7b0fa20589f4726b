"""``drachma simulate``: what becomes of a cluster and a workload over time, without running either."""

from __future__ import annotations

import pathlib
from typing import Annotated

import typer

from drachma.cli import options

app = typer.Typer(no_args_is_help=True, help="Simulate workloads on clusters, and compare scheduling policies.")


@app.callback()
def _group() -> None:
    """Simulate workloads on clusters, and compare scheduling policies."""


@app.command()
def openb(
    nodes: Annotated[pathlib.Path, typer.Option(help="CSV file with the machines of the trace.")],
    tasks: Annotated[pathlib.Path, typer.Option(help="CSV file with the tasks of the trace.")],
    policy: Annotated[
        str,
        typer.Option(
            help="Policy: random, dot-product, gpu-clustering, gpu-packing, best-fit, fgd or drachma (our own)."
        ),
    ] = "fgd",
    demand: Annotated[
        float, typer.Option(help="GPU that all tasks request, relative to the GPU of the cluster.")
    ] = 1.3,
    seed: Annotated[int, typer.Option(help="Seed of the order of tasks.")] = 42,
    output: options.Output = None,
) -> None:
    """Fill the machines of an openb trace with its tasks, one by one, and report the allocated share of the GPUs.

    This is the experiment of "Beware of Fragmentation" (USENIX ATC 2023): tasks arrive in random order, then random
    copies of them, until they request --demand times the GPU of the cluster. Nothing leaves, and a task that fits
    nowhere is dropped.

    Exit code 2: an input cannot be read.
    """
    import random
    import time

    from drachma import errors
    from drachma.cli import clusters
    from drachma.simulate.packing import experiment, fragmentation, policies
    from drachma.simulate.packing import openb as traces

    if policy not in policies.POLICIES:
        raise errors.InvalidValueError(f"--policy {policy!r}: must be one of {', '.join(policies.POLICIES)}")
    if not 0 < demand <= 1000:
        raise errors.InvalidValueError(f"--demand {demand}: must be above 0 and at most 1000")
    machines, workload = traces.read_machines(nodes), traces.read_tasks(tasks)
    total = sum(machine.free_milli for machine in machines)
    if not total:
        raise errors.InvalidValueError(f"{nodes}: no machine has a GPU")
    if not any(task.total_milli for task in workload):
        raise errors.InvalidValueError(f"{tasks}: no task requests a GPU")
    mix = fragmentation.typical_tasks(workload)
    rng = random.Random(seed)
    began = time.perf_counter()
    outcome = experiment.run(
        machines,
        experiment.arrivals(workload, total_milli=total, demand=demand, rng=rng),
        policy=policies.POLICIES[policy](mix),
        rng=rng,
    )
    seconds = time.perf_counter() - began
    fragments = fragmentation.Fragmentation(mix)
    free = total - outcome.allocated_milli
    amount = sum(fragments.amount(machine) for machine in outcome.machines)
    document = {
        "policy": policy,
        "seed": seed,
        "allocatedPercent": round(outcome.allocated_percent, 2),
        "arrived": outcome.arrived,
        "failed": outcome.failed,
        "fragmentation": round(100 * amount / free, 2) if free else 0.0,
        "seconds": round(seconds, 2),
    }
    lines = (
        f"policy {policy}, seed {seed}: {outcome.arrived:,} tasks arrived, {outcome.failed:,} fitted nowhere",
        f"allocated {outcome.allocated_percent:.2f} % of {total / 1000:,.0f} GPUs",
        f"{document['fragmentation']} % of the free GPU are fragments",
        f"simulated in {seconds:.1f} s",
    )
    clusters.write(document, lines, output)
