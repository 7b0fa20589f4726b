"""``drachma simulate run``: a workload on a cluster over virtual time, decided by the real scheduler and queues."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Annotated

import typer

from drachma.cli import options

if TYPE_CHECKING:
    from drachma.api import gates, meta
    from drachma.simulate import ClusterState


def run(
    workload: Annotated[
        list[str],
        typer.Option(
            "--workload",
            "-w",
            help="File with jobs over time: a SimulatedWorkload, Jobs with the annotation drachma.dev/duration, a "
            "trace of openb or DLRM (.csv), a trace of SimKube (.sktrace), a generator configuration of Kueue, or a "
            "recording of --record, which brings its cluster along; may be repeated.",
        ),
    ],
    file: options.Filenames = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    profile: Annotated[
        str, typer.Option(help="Simulated machines of a profile, or copies of the machine in a file; with --nodes.")
    ] = "",
    nodes: Annotated[int, typer.Option(min=1, max=100_000, help="Number of machines of --profile.")] = 1,
    until: Annotated[
        str, typer.Option(help="Simulated time to end at, such as 7d; default: all jobs have ended.")
    ] = "",
    seed: Annotated[int, typer.Option(help="Seed of everything that is random.")] = 0,
    seeds: Annotated[int, typer.Option(min=1, max=1000, help="Number of runs, with seeds from --seed on.")] = 1,
    policy: options.Policy = "first-fit",
    compare: Annotated[str, typer.Option(help="Comma-separated policies to run on the same events.")] = "",
    report: Annotated[pathlib.Path | None, typer.Option(help="File for the report as one HTML page.")] = None,
    series: Annotated[pathlib.Path | None, typer.Option("--csv", help="File for the time series as CSV.")] = None,
    explain: Annotated[
        str, typer.Option(help="Show why this job ([NAMESPACE/]NAME) waited, hour by hour.", metavar="JOB")
    ] = "",
    node_groups: Annotated[
        list[str] | None,
        typer.Option(help="Manifests of NodeGroups that grow and shrink, as by drachma autoscaler; may be repeated."),
    ] = None,
    scale_up_delay: Annotated[str, typer.Option(help="Time until a new node of --node-groups can run pods.")] = "5m",
    unneeded: Annotated[
        str, typer.Option(help="Time without pods after which a node of --node-groups leaves.")
    ] = "10m",
    checkpoint: Annotated[
        pathlib.Path | None,
        typer.Option(help="File for checkpoints. If it exists, the simulation goes on from it. Removed at the end."),
    ] = None,
    checkpoint_every: Annotated[
        int, typer.Option(min=1, max=100_000_000, help="Number of arrivals between two checkpoints.")
    ] = 100_000,
    output: options.Output = None,
    feature_gates: options.FeatureGates = "",
    gangs: options.Gangs = False,
) -> None:
    """Simulate jobs that arrive, wait, run and end on a cluster, in virtual time.

    The cluster is read from manifests, a dump, or nodes of an openb trace (-f, .csv), from an API server, or made of
    --profile. Decisions are those of the real scheduler, and with ClusterQueues those of admission, preemption
    included. Ctrl-C ends the simulation with the report so far. A run with --checkpoint goes on where it was when it
    last wrote the file.

    Exit code 2: an input cannot be read.
    """
    import itertools
    import sys

    from drachma import errors
    from drachma.api import gates as features
    from drachma.cli import clusters
    from drachma.offline import simulationrun, workloadfiles
    from drachma.simulate.timeline import durations, page
    from drachma.simulate.timeline import report as reports
    from drachma.simulate.timeline.scaling import ScalingRules

    enabled = features.Gates.parse(options.with_gangs(feature_gates, gangs))
    names = compare.split(",") if compare else [policy]
    preferences = {name: options.policy(name) for name in names}
    end = durations.parse(until, title="--until") if until else None
    if sum(map(bool, (file, kubeconfig, profile))) > 1:
        raise errors.InvalidValueError("--profile: goes without -f and --kubeconfig: the cluster is one of them")
    if checkpoint is not None and (len(names) > 1 or seeds > 1):
        raise errors.InvalidValueError("--checkpoint: goes without --compare and --seeds: a file is of one run")
    if checkpoint is not None and explain:
        raise errors.InvalidValueError("--checkpoint: goes without --explain: hours before a checkpoint are not kept")
    scaling = None
    if node_groups:
        scaling = ScalingRules(
            clusters.groups(node_groups),
            delay=durations.parse(scale_up_delay, title="--scale-up-delay"),
            unneeded=durations.parse(unneeded, title="--unneeded"),
        )
    workloads = workloadfiles.WorkloadFiles(workload)
    state, queueing = _read_cluster(
        file,
        kubeconfig,
        context=context,
        profile=profile,
        nodes=nodes,
        more=workloads.documents,
        enabled=enabled,
        is_complete=workloads.has_nodes,
    )
    plans = [
        simulationrun.SimulationPlan(
            state=state,
            queueing=queueing,
            workloads=tuple(workload),
            until=end,
            seed=number,
            title=name,
            policy=preference,
            gates=enabled,
            explained=f"default/{explain}" if explain and "/" not in explain else explain,
            scaling=scaling,
            checkpoint=str(checkpoint) if checkpoint is not None else "",
            checkpoint_jobs=checkpoint_every,
            shows_progress=len(names) == seeds == 1 and sys.stderr.isatty(),
        )
        for name, preference in preferences.items()
        for number in range(seed, seed + seeds)
    ]
    results = simulationrun.run_all(plans)
    if report is not None:
        _write_file(report, page.render(results))
    if series is not None:
        _write_file(series, reports.to_csv(results))
    if len(results) == 1:
        lines = itertools.chain(reports.lines(results[0]), reports.explanation_lines(results[0]))
        clusters.write(reports.to_document(results[0]), lines, output)
    else:
        document = {
            "reports": [reports.to_document(each) for each in results],
            "policies": [reports.to_document(each) for each in reports.summarise(results)],
        }
        explained = (line for each in results for line in reports.explanation_lines(each))
        clusters.write(document, itertools.chain(reports.comparison_lines(results), explained), output)


def _write_file(path: pathlib.Path, text: str) -> None:
    """Write a file. Raises InvalidValueError if that fails."""
    from drachma import errors

    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise errors.InvalidValueError(f"{path}: {error.strerror}") from None


def _read_cluster(
    files: list[str] | None,
    kubeconfig: pathlib.Path | None,
    *,
    context: str,
    profile: str,
    nodes: int,
    more: list[str],
    enabled: gates.Gates,
    is_complete: bool,
) -> tuple[ClusterState, tuple[meta.Object, ...]]:
    """Return the objects that scheduling and those that queueing depends on.

    If the workloads are complete, because they bring nodes along, there is no need for another cluster.
    """
    from drachma.api import codec
    from drachma.cli import clusters
    from drachma.offline import clusterfiles, machineprofiles, openbtraces

    tables = [pathlib.Path(each) for each in files or () if each.endswith(".csv")]
    manifests = [each for each in files or () if not each.endswith(".csv")]
    cluster: list[meta.Object] = [each for table in tables for each in openbtraces.read_nodes(table)]
    if profile:
        hardware = machineprofiles.build(profile, nodes)
        machines = [each.node for each in hardware.machines]
        cluster += [codec.decode(each) for each in (*machines, *hardware.all_slices, *hardware.classes)]
    if files or profile or (is_complete and not kubeconfig):
        content = clusterfiles.read([*manifests, *more], enabled=enabled, with_queues=True)
        clusters.exit_on_problems(content.problems)
        return content.state.plus(cluster), content.queueing
    live = clusters.read(None, kubeconfig, context=context, more=more, enabled=enabled)
    return live.state, tuple(clusters.read_queueing_if_served(None, kubeconfig, context=context))
