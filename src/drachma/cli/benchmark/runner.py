"""Runs of workloads on a control plane of their own, with the durable store, and their measurement.

In embedded mode everything is in this process. With processes, controllers and scheduler have one each, as
with ``drachma up --processes 3``. Over HTTPS, API server, controllers and scheduler are processes as users run them,
and this process creates the load.
"""

from __future__ import annotations

import asyncio
import contextlib
import cProfile
import functools
import itertools
import os
import pathlib
import random
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Final, Literal

import msgspec

from drachma import errors
from drachma.api import pod
from drachma.cli.benchmark import loopholds, meter, objects, preparation, workloads
from drachma.client import Client, http
from drachma.process import components, embedded, eventloop, supervisor, worker
from drachma.runtime import Informers, Surroundings, clock
from drachma.server import inprocess
from drachma.store import sqlite

Mode = Literal["embedded", "processes", "https"]

_SEED: Final = 20_240_101
_START_SECONDS: Final = 60.0
_QUIET_SECONDS: Final = 0.5
_SETTLE_SECONDS: Final = 60.0

_UPSTREAM_OPTIONS: Final = ("--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition")
"""Upstream's benchmark disables these plugins as well."""

_HEADER: Final = (
    "workload", "nodes", "pods", "pods/s", "aim", "kube-scheduler", "times", "p50", "p99", "CPU/pod", "peak memory",
    "hold p99.9",
)  # fmt: skip


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one workload."""

    workload: str
    nodes: int
    figures: meter.Figures
    peak_bytes: int
    """Peak memory of all processes of the control plane."""
    processor_seconds: float
    """Processor seconds of the control plane during the measurement; except over HTTPS the load counts as well."""
    upstream: float | None
    aim: float
    holds: tuple[float, ...] = ()
    """Seconds for which the event loop kept other tasks waiting; none if the components have processes of their own."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a run."""

    mode: Mode = "embedded"
    patience: float = meter.PATIENCE_SECONDS
    """Seconds without a bound pod after which the remaining pods count as unschedulable."""
    profile: pathlib.Path | None = None
    """File for a profile of the measurement."""
    record: pathlib.Path | None = None
    """File for a recording of the scheduler's decisions."""


def run(workload: workloads.Workload, options: Options) -> Result:
    """Return the result of a workload. Run it in a new process, because the peak memory is that of the process."""
    with (
        tempfile.TemporaryDirectory(prefix="drachma-bench-") as folder,
        eventloop.runner() as runner,
    ):
        return runner.run(_run(workload, pathlib.Path(folder), options))


async def _run(workload: workloads.Workload, folder: pathlib.Path, options: Options) -> Result:
    async with _PLANES[options.mode](folder, workload, options.record) as plane:
        async with Informers(plane.client) as informers:
            pods = informers.of(pod.Pod)
            await informers.wait_synced()
            if workload.early_pods:
                early = meter.Meter(objects.INIT, pods, patience=options.patience)
                await _burst(plane.client, early, map(workload.new_early_pod, range(workload.early_pods)))
            await _wait_until_settled(plane.client)
            measurement = meter.Meter(objects.MEASURED, pods, patience=options.patience)
            before = plane.processor_seconds()
            with _profiled(options.profile):
                holds = await _measure(plane.client, measurement, workload)
            processor_seconds = plane.processor_seconds() - before
        peak = plane.peak_bytes()
    return Result(
        workload=workload.name,
        nodes=workload.nodes,
        figures=measurement.figures(),
        peak_bytes=peak,
        processor_seconds=processor_seconds,
        upstream=workload.upstream,
        aim=workload.aim,
        holds=() if plane.processes else holds,
    )


async def _wait_until_settled(client: Client) -> None:
    """Wait until controllers have settled, so that their work for the new cluster is not measured."""
    last, deadline = "", time.monotonic() + _SETTLE_SECONDS
    while time.monotonic() < deadline:
        newest = (await client.list(pod.Pod, limit=1)).resource_version
        if newest == last:
            return
        last = newest
        await asyncio.sleep(_QUIET_SECONDS)


# The load


async def _measure(client: Client, measurement: meter.Meter, workload: workloads.Workload) -> tuple[float, ...]:
    """Run the load, and return the holds of this event loop meanwhile."""
    probe = loopholds.LoopProbe()
    helpers = [asyncio.create_task(measurement.sample()), asyncio.create_task(probe.run())]
    try:
        if workload.is_steady:
            await _steady(client, measurement, workload)
        else:
            await _burst(client, measurement, map(workload.new_pod, range(workload.pods)))
    finally:
        for task in helpers:
            task.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)
    return tuple(probe.holds)


async def _burst(client: Client, measurement: meter.Meter, documents: Iterable[objects.Document]) -> None:
    """Create all pods at once, and wait until the last one is bound."""
    measurement.begin()
    creations = [functools.partial(_create_pod, client, measurement, document) for document in documents]
    await preparation.run_concurrently(creations)
    await measurement.until(len(creations))


async def _steady(client: Client, measurement: meter.Meter, workload: workloads.Workload) -> None:
    """Keep a few pods pending for the time of the workload: delete each bound pod and create another one."""
    bound: asyncio.Queue[pod.Pod] = asyncio.Queue()
    numbers = itertools.count()
    measurement.begin(bound.put_nowait)

    async def replace() -> None:
        await _create_pod(client, measurement, workload.new_pod(next(numbers)))
        while True:
            finished = await bound.get()
            await client.delete(
                pod.Pod,
                finished.metadata.name,
                namespace=finished.metadata.namespace,
                grace_period_seconds=0,
                propagation="Background",
            )
            await _create_pod(client, measurement, workload.new_pod(next(numbers)))

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(workload.seconds), asyncio.TaskGroup() as group:
            for _ in range(workload.pods):
                group.create_task(replace())
    if not measurement.figures().bound:
        raise errors.InvalidValueError(f"workload {workload.name}: no pod was bound in {workload.seconds} seconds")


async def _create_pod(client: Client, measurement: meter.Meter, document: objects.Document) -> None:
    began = time.perf_counter()
    created = await preparation.create(client, document)
    measurement.created(created["metadata"]["name"], began)


# The control plane


class Plane(msgspec.Struct, frozen=True, kw_only=True):
    """A control plane under load, with the IDs of its processes unless it is embedded."""

    client: Client
    processes: tuple[int, ...] = ()

    def peak_bytes(self) -> int:
        if not self.processes:
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return sum(map(_peak_bytes, self.processes))

    def processor_seconds(self) -> float:
        if not self.processes:
            return time.process_time()
        return sum(map(_processor_seconds, self.processes))


def _peak_bytes(process: int) -> int:
    for line in pathlib.Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def _processor_seconds(process: int) -> float:
    # The command's name may contain blanks; the fields come after its closing parenthesis.
    fields = pathlib.Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.asynccontextmanager
async def _run_embedded(
    folder: pathlib.Path, workload: workloads.Workload, record: pathlib.Path | None
) -> AsyncIterator[Plane]:
    rng = random.Random(_SEED)
    store = await sqlite.SqliteStore.open(folder)
    async with embedded.server(store, rng=rng, gates=workload.gates) as server:
        await preparation.prepare(server.client, workload, rng=rng)
        recording_to = None if record is None else components.RecordingTo(record)
        scheduler = functools.partial(components.scheduler, recording_to=recording_to)
        surroundings = Surroundings(server.client, rng=rng, gates=workload.gates)
        async with embedded.running(surroundings, components.controllers, scheduler):
            yield Plane(client=server.client)


@contextlib.asynccontextmanager
async def _run_processes(
    folder: pathlib.Path, workload: workloads.Workload, record: pathlib.Path | None
) -> AsyncIterator[Plane]:
    rng = random.Random(_SEED)
    store = await sqlite.SqliteStore.open(folder)
    async with embedded.server(store, rng=rng, gates=workload.gates) as server:
        await preparation.prepare(server.client, workload, rng=rng)
        recording_to = None if record is None else components.RecordingTo(record)
        plane = embedded.ControlPlane(gates=workload.gates, recording_to=recording_to)
        facts = embedded.ServerFacts(url="", authority=b"", folder=folder)
        dispatcher = server.application.dispatcher
        workers = [
            supervisor.Supervised(
                worker.Plan(role=role, plane=plane, server=facts), lambda _: inprocess.InProcess(dispatcher)
            )
            for role in supervisor.roles(3, has_nodes=False)
        ]
        async with asyncio.TaskGroup() as group:
            tasks_running = [group.create_task(each.run(), name=each.name) for each in workers]
            for each in workers:
                await each.wait_ready()
            yield Plane(client=server.client, processes=(os.getpid(), *(each.process_id for each in workers)))
            for task in tasks_running:
                task.cancel()


@contextlib.asynccontextmanager
async def _run_over_https(
    folder: pathlib.Path, workload: workloads.Workload, record: pathlib.Path | None
) -> AsyncIterator[Plane]:
    kubeconfig = folder / "kubeconfig"
    async with contextlib.AsyncExitStack() as stack:
        gates = ("--feature-gates", ",".join(f"{gate}=true" for gate in workload.gates.enabled))
        data = ("--data", str(folder / "data"), "--listen", "127.0.0.1:0", "--kubeconfig-out", str(kubeconfig))
        server = await stack.enter_async_context(
            _process("apiserver", *data, *gates, *_UPSTREAM_OPTIONS, until=kubeconfig)
        )
        client = await stack.enter_async_context(
            http.HttpClient(http.find_access(kubeconfig), clock=clock.SystemClock())
        )
        await preparation.prepare(client, workload, rng=random.Random(_SEED))
        access = ("--kubeconfig", str(kubeconfig))
        recording = () if record is None else ("--record", str(record))
        commands = (("controllers", *access, *gates), ("scheduler", *access, *gates, *recording))
        process_ids = [await stack.enter_async_context(_process(*each)) for each in commands]
        yield Plane(client=client, processes=(server, *process_ids))


@contextlib.asynccontextmanager
async def _process(*arguments: str, until: pathlib.Path | None = None) -> AsyncIterator[int]:
    """Run a command of drachma in a process, and yield its ID. Raises errors.UnreachableError if it does not start."""
    command = (sys.executable, "-c", "from drachma import cli; cli.main()", *arguments)
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL, env=dict(os.environ)
    )
    try:
        deadline = time.monotonic() + _START_SECONDS
        while until is not None and not until.exists():
            if process.returncode is not None or time.monotonic() > deadline:
                raise errors.UnreachableError(f"drachma {arguments[0]} did not start")
            await asyncio.sleep(0.05)
        yield process.pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


_PLANES: Final = {"embedded": _run_embedded, "processes": _run_processes, "https": _run_over_https}


@contextlib.contextmanager
def _profiled(path: pathlib.Path | None) -> Iterator[None]:
    if path is None:
        yield
        return
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        yield
    finally:
        profiler.disable()
        profiler.dump_stats(path)


# The table


def table_lines(results: Sequence[Result]) -> list[str]:
    """Return the lines of the table, the header first."""
    rows = [_HEADER, *map(_row, results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _row(result: Result) -> tuple[str, ...]:
    figures = result.figures
    return (
        result.workload,
        f"{result.nodes}",
        f"{figures.bound}",
        f"{figures.average:.0f}",
        f"{result.aim:.0f}",
        "-" if result.upstream is None else f"{result.upstream:.0f}",
        "-" if result.upstream is None else f"{figures.average / result.upstream:.0f}x",
        _duration_text(figures.latency(50)),
        _duration_text(figures.latency(99)),
        f"{result.processor_seconds / max(figures.bound, 1) * 1000:.1f} ms",
        f"{result.peak_bytes / 2**20:.0f} MiB",
        _duration_text(meter.percentile(result.holds, 99.9)) if result.holds else "-",
    )


def _duration_text(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
