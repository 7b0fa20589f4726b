"""``drachma bench``: scheduling throughput of this machine, on upstream's own workloads."""

from __future__ import annotations

import multiprocessing
import pathlib
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from drachma import errors

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from drachma.cli.benchmark.runner import Options, Result
    from drachma.cli.benchmark.workloads import Workload

app = typer.Typer(pretty_exceptions_enable=False, add_completion=False, no_args_is_help=True)


@app.callback()
def _bench() -> None:
    """Measure drachma on this machine."""


@app.command()
def scheduler(
    workload: Annotated[
        str, typer.Argument(help="Name of a workload, a folder of workloads, or all; an unknown name lists them.")
    ] = "5000pods_500nodes",
    nodes: Annotated[
        int | None, typer.Option(help="Number of nodes, 500 by default; initial pods grow in proportion.")
    ] = None,
    pods: Annotated[
        int | None, typer.Option(help="Number of pods to measure, or to keep pending in steady workloads.")
    ] = None,
    mode: Annotated[
        Literal["embedded", "processes", "https"],
        typer.Option(
            help="Run all components in one process, or each in its own: of one program, or of several over HTTPS."
        ),
    ] = "embedded",
    patience: Annotated[
        float, typer.Option(help="Seconds without a bound pod after which the remaining pods count as unschedulable.")
    ] = 90.0,
    profile: Annotated[
        pathlib.Path | None, typer.Option(help="File for a profile of the measurement, for pstats.")
    ] = None,
    record: Annotated[pathlib.Path | None, typer.Option(help="File for a recording of the decisions.")] = None,
) -> None:
    """Schedule pods with claims, on the durable store, and print the rate next to kube-scheduler's.

    The rate is upstream's: pods bound per second, sampled every second, averaged. The latency of a pod is the time from
    its creation until the client sees it bound; in bursts most of it is waiting for earlier pods.
    """
    from drachma.cli.benchmark import runner, workloads

    selected = [each.scaled(nodes=nodes, pods=pods) for each in workloads.find(workload)]
    settings = runner.Options(mode=mode, patience=patience, profile=profile, record=record)
    results = []
    for each in selected:
        try:
            results.append(_run_in_process(each, settings))
        except errors.DrachmaError as error:
            # The results of the other workloads are still worth printing.
            typer.echo(f"{each.name}: failed: {error}", err=True)
        else:
            typer.echo(f"{each.name}: {results[-1].figures.average:.0f} pods/s", err=True)
    for line in runner.table_lines(results):
        typer.echo(line)
    if len(results) < len(selected):
        raise typer.Exit(1)


def _run_in_process(workload: Workload, settings: Options) -> Result:
    """Return the result of a workload that runs in a process of its own, so that no run pays for another's memory."""
    from drachma.cli.benchmark import runner

    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(workload, settings, sender))
    process.start()
    sender.close()
    try:
        answer = receiver.recv()
    except EOFError:
        raise errors.UnreachableError(f"workload {workload.name}: its process ended without a result") from None
    finally:
        process.join()
    if isinstance(answer, errors.DrachmaError):
        raise answer
    assert isinstance(answer, runner.Result), "nothing else is sent"
    return answer


def _run(workload: Workload, settings: Options, sender: Connection) -> None:
    from drachma.cli.benchmark import runner

    try:
        sender.send(runner.run(workload, settings))
    except errors.DrachmaError as error:
        sender.send(error)
