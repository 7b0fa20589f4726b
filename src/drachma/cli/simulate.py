"""``drachma simulate``: what becomes of a cluster and a workload over time, without running either."""

from __future__ import annotations

import pathlib
import statistics
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drachma.cli import options, simulaterun

if TYPE_CHECKING:
    from drachma.simulate.packing.trials import Trace, Trial

app = typer.Typer(
    no_args_is_help=True,
    help="Simulate workloads on clusters, and compare scheduling policies.",
    pretty_exceptions_enable=False,
    add_completion=False,
)


@app.callback()
def _group() -> None:
    """Simulate workloads on clusters, and compare scheduling policies."""


app.command()(simulaterun.run)


@app.command()
def schema(output: options.Output = None) -> None:
    """Print the JSON schema of SimulatedWorkload, the kind of workloads for drachma simulate run."""
    import json

    from drachma.cli import clusters
    from drachma.simulate.timeline import workloadspec

    document = workloadspec.schema()
    clusters.write(document, json.dumps(document, indent=2).splitlines(), output)


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
    seed: Annotated[int, typer.Option(help="Seed of the order of tasks and machines.")] = 42,
    seeds: Annotated[
        int, typer.Option(min=1, max=10_000, help="Number of seeds, from --seed on; the result is their mean.")
    ] = 1,
    compare: Annotated[
        str, typer.Option(help="Comma-separated policies to run on the same tasks, instead of --policy.")
    ] = "",
    output: options.Output = None,
) -> None:
    """Fill the machines of an openb trace with its tasks, one by one, and report the allocated share of the GPUs.

    This is the experiment of "Beware of Fragmentation" (USENIX ATC 2023): tasks arrive in random order, then random
    copies of them, until they request --demand times the GPU of the cluster. Nothing leaves, and a task that fits
    nowhere is dropped. Several trials (--seeds, --compare) run on all cores.

    Exit code 2: an input cannot be read.
    """
    from drachma import errors
    from drachma.cli import clusters
    from drachma.scheduler.packing import policies
    from drachma.simulate.packing import trials

    names = compare.split(",") if compare else [policy]
    for name in names:
        if name not in policies.POLICIES:
            option = "--compare" if compare else "--policy"
            raise errors.InvalidValueError(f"{option} {name!r}: must be one of {', '.join(policies.POLICIES)}")
    if not 0 < demand <= 1000:
        raise errors.InvalidValueError(f"--demand {demand}: must be above 0 and at most 1000")
    trace = trials.read(nodes, tasks)
    results = list(trials.run_all(trace, names=names, demand=demand, seeds=range(seed, seed + seeds)))
    if len(results) == 1:
        clusters.write(_trial_document(results[0]), _trial_lines(results[0], trace), output)
    else:
        clusters.write(_trials_document(results), _trials_lines(results), output)


def _trial_document(trial: Trial) -> dict[str, Any]:
    return {
        "policy": trial.policy,
        "seed": trial.seed,
        "allocatedPercent": round(trial.allocated_percent, 2),
        "arrived": trial.arrived,
        "failed": trial.failed,
        "fragmentation": round(trial.fragmentation, 2),
        "seconds": round(trial.seconds, 2),
    }


def _trial_lines(trial: Trial, trace: Trace) -> Iterator[str]:
    yield f"policy {trial.policy}, seed {trial.seed}: {trial.arrived:,} tasks arrived, {trial.failed:,} fitted nowhere"
    yield f"allocated {trial.allocated_percent:.2f} % of {trace.total_milli / 1000:,.0f} GPUs"
    yield f"{trial.fragmentation:.2f} % of the free GPU are fragments"
    yield f"simulated in {trial.seconds:.1f} s"


def _trials_document(trials: Sequence[Trial]) -> dict[str, Any]:
    return {
        "trials": [_trial_document(trial) for trial in trials],
        "policies": {
            policy: {
                "allocatedPercent": round(statistics.fmean(percents), 2),
                "least": round(min(percents), 2),
                "most": round(max(percents), 2),
                "seeds": len(percents),
            }
            for policy, percents in _percents(trials).items()
        },
    }


def _trials_lines(trials: Sequence[Trial]) -> Iterator[str]:
    yield f"{'policy':<16}{'allocated %':>12}{'least':>8}{'most':>8}{'seeds':>7}"
    for policy, percents in _percents(trials).items():
        mean = statistics.fmean(percents)
        yield f"{policy:<16}{mean:>12.2f}{min(percents):>8.2f}{max(percents):>8.2f}{len(percents):>7}"


def _percents(trials: Sequence[Trial]) -> dict[str, list[float]]:
    """Return the allocated percentages of each policy."""
    percents: dict[str, list[float]] = {}
    for trial in trials:
        percents.setdefault(trial.policy, []).append(trial.allocated_percent)
    return percents
