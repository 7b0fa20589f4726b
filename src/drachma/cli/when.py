"""``drachma when``: whether a job would start now, where, or else when."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from drachma.cli import options

if TYPE_CHECKING:
    from drachma.api import gates, meta
    from drachma.simulate.timeline.events import Arrival
    from drachma.simulate.timeline.future import ClusterNow, Forecast


Cluster: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(help="Manifests or the folder of a drachma dump, instead of an API server; may be repeated."),
]


def when(
    kind: Annotated[str, typer.Argument(help="job, pod or workload; leave it out with -f.")] = "",
    name: Annotated[str, typer.Argument(help="Name of a job, pod or workload that waits in the cluster.")] = "",
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Namespace of the name.")] = "default",
    file: Annotated[
        str, typer.Option("-f", "--filename", help="File with a Job that does not exist yet, instead of a name.")
    ] = "",
    cluster: Cluster = None,
    kubeconfig: options.Kubeconfig = None,
    context: options.Context = "",
    assume: Annotated[
        str, typer.Option(help="Mean running time of pods without the annotation drachma.dev/duration, such as 2h.")
    ] = "",
    history: Annotated[
        pathlib.Path | None,
        typer.Option(help="File with running times of earlier jobs, one a line, such as 1h30m; instead of --assume."),
    ] = None,
    only_now: Annotated[bool, typer.Option("--now", help="Only answer whether it would start now.")] = False,
    samples: Annotated[int, typer.Option(min=1, max=1000, help="Number of simulated futures.")] = 20,
    within: Annotated[str, typer.Option(help="How far to look ahead.")] = "30d",
    seed: Annotated[int, typer.Option(help="Seed of the simulated futures.")] = 0,
    output: options.Output = None,
    feature_gates: options.FeatureGates = "",
) -> None:
    """Estimate when a job starts, from simulated futures of the cluster.

    The cluster is read from manifests or a dump (--cluster), or from an API server. Running pods end after the time in
    their annotation drachma.dev/duration, or after a time drawn from --history or with the mean --assume. The range has
    80 % of the futures.

    Exit code 1: it does not start in most futures, or with --now it does not start now. 2: an input cannot be read.
    """
    from drachma import errors
    from drachma.api import gates as features
    from drachma.cli import clusters
    from drachma.simulate.timeline import durations, future

    if bool(file) == bool(name):
        raise errors.InvalidValueError("when: expected either a kind and a name, or -f FILE")
    if kind and kind not in ("job", "pod", "workload"):
        raise errors.InvalidValueError(f"{kind!r}: expected job, pod or workload")
    if assume and history:
        raise errors.InvalidValueError("--history: goes without --assume")
    assumption = future.Assumption(
        durations.parse(assume, title="--assume") if assume else None, read_history(history) if history else ()
    )
    horizon = durations.parse(within, title="--within")
    enabled = features.Gates.parse(feature_gates)
    current = read_cluster(cluster, kubeconfig, context=context, enabled=enabled)
    arrival = _new_job(file) if file else None
    key = f"{arrival.shape.namespace}/{arrival.name}" if arrival is not None else _find(current, namespace, name)
    forecast = future.forecast(
        current,
        arrival,
        key,
        assumption=assumption,
        samples=0 if only_now else samples,
        horizon=horizon,
        seed=seed,
    )
    clusters.write(_document(key, forecast), _lines(key, forecast, within), output)
    if not forecast.node and forecast.percentile(50) is None:
        raise typer.Exit(1)


def read_cluster(
    files: list[str] | None, kubeconfig: pathlib.Path | None, *, context: str, enabled: gates.Gates
) -> ClusterNow:
    """Return the cluster of files or of an API server, with its queues."""
    from datetime import UTC, datetime

    from drachma.cli import clusters
    from drachma.scheduler.settings import Settings
    from drachma.simulate.timeline import future

    content = clusters.read(files, kubeconfig, context=context, enabled=enabled, with_queues=bool(files))
    queueing = content.queueing if files else clusters.read_queueing_if_served(None, kubeconfig, context=context)
    return future.ClusterNow(content.state, tuple(queueing), datetime.now(UTC), Settings(gates=enabled))


def read_history(path: pathlib.Path) -> tuple[float, ...]:
    """Return the running times of a file, in their order. Raises InvalidValueError."""
    from drachma import errors
    from drachma.simulate.timeline import durations

    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise errors.InvalidValueError(f"--history {path}: {error}") from None
    times = [
        durations.parse(line.strip(), title=f"{path}, line {number}")
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]
    if not times:
        raise errors.InvalidValueError(f"--history {path}: has no running time")
    return tuple(times)


def _new_job(path: str) -> Arrival:
    """Return the Job of a file, as if it came now. Raises InvalidValueError unless there is exactly one."""
    from drachma import errors
    from drachma.offline import workloadfiles

    jobs = workloadfiles.read_jobs(path)
    if len(jobs) != 1:
        raise errors.InvalidValueError(f"{path}: expected one Job, not {len(jobs)}")
    return jobs[0]._replace(time=0.0)


def _find(cluster: ClusterNow, namespace: str, name: str) -> str:
    """Return namespace and name of what waits under a name, or for an owner of this name."""
    from drachma import errors
    from drachma.api import pod
    from drachma.queueing.kinds import workload

    waiting_objects: list[meta.Object] = [each for each in cluster.state.all(pod.Pod) if not each.spec.node_name]
    waiting_objects += [each for each in cluster.queueing if isinstance(each, workload.Workload)]
    for each in waiting_objects:
        owners = [owner.name for owner in each.metadata.owner_references]
        if each.metadata.namespace == namespace and name in (each.metadata.name, *owners):
            return f"{namespace}/{each.metadata.name}"
    raise errors.InvalidValueError(f"{namespace}/{name}: nothing of this name waits")


def _document(key: str, forecast: Forecast) -> dict[str, Any]:
    return {
        "job": key,
        "startsNow": bool(forecast.node),
        "node": forecast.node,
        "devices": list(forecast.devices),
        "startSeconds": forecast.percentile(50),
        "range": list(forecast.likely_range()),
        "samples": forecast.samples,
        "started": len(forecast.starts),
        "reason": forecast.reason,
    }


def _lines(key: str, forecast: Forecast, within: str) -> Iterator[str]:
    from drachma.simulate.timeline import durations

    if forecast.node:
        yield f"{key} would start now on node {forecast.node}"
        if forecast.devices:
            yield f"with {', '.join(forecast.devices)}"
        return
    yield f"{key} would not start now: {forecast.reason or 'it waits for quota'}"
    if not forecast.samples:
        return
    median = forecast.percentile(50)
    if median is None:
        yield f"it starts in {len(forecast.starts)} of {forecast.samples} simulated futures within {within}"
        if not forecast.starts:
            yield "running pods need the annotation drachma.dev/duration, --assume or --history"
        return
    low, high = forecast.likely_range()
    upper = durations.show(high) if high is not None else f"more than {within}"
    yield f"it would start in {durations.show(median)} (80 %: {durations.show(low or 0.0)} to {upper})"
