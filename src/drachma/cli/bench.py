"""``drachma bench``: how fast this machine schedules, on upstream's own workloads."""

import multiprocessing
import pathlib
from multiprocessing import connection
from typing import Annotated

import typer

from drachma import errors
from drachma.cli.benchmark import meter, runner, table, workloads

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False, no_args_is_help=True)


@app.callback()
def _bench() -> None:
    """Measure drachma on this machine."""


@app.command()
def scheduler(
    workload: Annotated[
        str, typer.Argument(help="A workload, a folder of them, or all; another name lists those there are.")
    ] = "5000pods_500nodes",
    nodes: Annotated[int | None, typer.Option(help="Nodes instead of 500; what fills them grows with them.")] = None,
    pods: Annotated[int | None, typer.Option(help="Pods to measure, or to keep waiting in steady workloads.")] = None,
    mode: Annotated[runner.Mode, typer.Option(help="All in one process, or one process each over HTTPS.")] = "embedded",
    patience: Annotated[
        float, typer.Option(help="Seconds without any pod bound after which the rest is taken not to fit.")
    ] = meter.PATIENCE_SECONDS,
    profile: Annotated[
        pathlib.Path | None, typer.Option(help="Write a profile of the measurement (for pstats) into this file.")
    ] = None,
    record: Annotated[pathlib.Path | None, typer.Option(help="Have the scheduler record its decisions here.")] = None,
) -> None:
    """Schedule pods with claims, on the durable store, and print the rate beside kube-scheduler's.

    The rate is upstream's: pods bound per second, sampled every second, averaged. Latencies are from the creation of
    a pod until it is known to be bound; in bursts most of that is waiting for the pods before it.
    """
    chosen = [each.scaled(nodes=nodes, pods=pods) for each in workloads.find(workload)]
    how = runner.Options(mode=mode, patience=patience, profile=profile, record=record)
    results = []
    for each in chosen:
        try:
            results.append(_apart(each, how))
        except errors.DrachmaError as error:
            # What the others come to is worth knowing all the same.
            typer.echo(f"{each.name}: failed: {error}", err=True)
        else:
            typer.echo(f"{each.name}: {results[-1].figures.average:.0f} pods/s", err=True)
    for line in table.lines(results):
        typer.echo(line)
    if len(results) < len(chosen):
        raise typer.Exit(1)


def _apart(workload: workloads.Workload, how: runner.Options) -> runner.Result:
    """Runs a workload in a process of its own, so that none pays for the memory of another."""
    spawning = multiprocessing.get_context("spawn")
    here, there = spawning.Pipe(duplex=False)
    process = spawning.Process(target=_run, args=(workload, how, there))
    process.start()
    there.close()
    try:
        answer = here.recv()
    except EOFError:
        raise errors.UnreachableError(f"workload {workload.name}: its process ended without a result") from None
    finally:
        process.join()
    if isinstance(answer, errors.DrachmaError):
        raise answer
    assert isinstance(answer, runner.Result), "nothing else is sent"
    return answer


def _run(workload: workloads.Workload, how: runner.Options, into: connection.Connection) -> None:
    try:
        into.send(runner.run(workload, how))
    except errors.DrachmaError as error:
        into.send(error)
