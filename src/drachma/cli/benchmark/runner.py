"""Runs a workload on a control plane of its own, with everything on disk, and measures it.

Embedded, all is in this process. Over HTTPS, API server, controllers and scheduler are processes as users run them,
and this one only makes the load.
"""

from __future__ import annotations

import asyncio
import contextlib
import cProfile
import functools
import os
import pathlib
import random
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from typing import Final, Literal

import msgspec

from drachma import errors
from drachma.api import pod
from drachma.cli.benchmark import meter, objects, preparation, workloads
from drachma.client import Client, http
from drachma.process import components, embedded, eventloop
from drachma.runtime import Informers, Surroundings, clock
from drachma.store import sqlite

Mode = Literal["embedded", "https"]

_SEED: Final = 20_240_101
_START_SECONDS: Final = 60.0
_QUIET_SECONDS: Final = 0.5
_REST_SECONDS: Final = 60.0

_LIKE_UPSTREAM: Final = ("--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition")
"""Upstream's benchmark runs its API server without them, too."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One workload and what became of it."""

    workload: str
    nodes: int
    figures: meter.Figures
    peak_bytes: int
    """The most memory that the processes of the control plane had together."""
    computed: float
    """Seconds of processor time that the control plane (and the load, where they are one) took for the measurement."""
    upstream: float | None
    aim: float


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How to run a workload."""

    mode: Mode = "embedded"
    patience: float = meter.PATIENCE_SECONDS
    """Seconds without any pod bound after which the rest is taken not to fit."""
    profile: pathlib.Path | None = None
    """Where to write a profile of the measurement."""
    record: pathlib.Path | None = None
    """Where the scheduler records its decisions, if it does."""


def run(workload: workloads.Workload, how: Options) -> Result:
    """Runs a workload; best in a process that has done nothing else, or its memory counts too."""
    with (
        tempfile.TemporaryDirectory(prefix="drachma-bench-") as folder,
        eventloop.runner() as runner,
    ):
        return runner.run(_run(workload, pathlib.Path(folder), how))


async def _run(workload: workloads.Workload, folder: pathlib.Path, how: Options) -> Result:
    make = _embedded if how.mode == "embedded" else _over_https
    async with make(folder, workload, how.record) as plane:
        async with Informers(plane.client) as informers:
            pods = informers.of(pod.Pod)
            await informers.wait_synced()
            if workload.early_pods:
                early = meter.Meter(objects.INIT, pods, patience=how.patience)
                await _burst(plane.client, early, workload.early_pods, place=objects.INIT)
            await _rest(plane.client)
            measured = meter.Meter(objects.MEASURED, pods, patience=how.patience)
            before = plane.processor_seconds()
            with _profiled(how.profile):
                await _measure(plane.client, measured, workload)
            computed = plane.processor_seconds() - before
        peak = plane.peak_bytes()
    return Result(
        workload=workload.name,
        nodes=workload.nodes,
        figures=measured.figures(),
        peak_bytes=peak,
        computed=computed,
        upstream=workload.upstream,
        aim=workload.aim,
    )


async def _rest(client: Client) -> None:
    """Returns once nothing was written for a while: what a new cluster makes controllers do is not measured."""
    known, deadline = "", time.monotonic() + _REST_SECONDS
    while time.monotonic() < deadline:
        newest = (await client.list(pod.Pod, limit=1)).resource_version
        if newest == known:
            return
        known = newest
        await asyncio.sleep(_QUIET_SECONDS)


# The load


async def _measure(client: Client, measured: meter.Meter, workload: workloads.Workload) -> None:
    sampling = asyncio.create_task(measured.sample())
    try:
        if workload.is_steady:
            await _steady(client, measured, workload)
        else:
            await _burst(client, measured, workload.pods, place=objects.MEASURED)
    finally:
        sampling.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await sampling


async def _burst(client: Client, measured: meter.Meter, count: int, *, place: str) -> None:
    """All pods at once, until the last is bound."""
    measured.begin()
    await preparation.side_by_side((lambda: _create_pod(client, measured, place)) for _ in range(count))
    await measured.until(count)


async def _steady(client: Client, measured: meter.Meter, workload: workloads.Workload) -> None:
    """A few pods; for each that is bound, it is deleted and another one created, for as long as the workload says."""
    bound: asyncio.Queue[pod.Pod] = asyncio.Queue()
    measured.begin(bound.put_nowait)

    async def replace() -> None:
        await _create_pod(client, measured, objects.MEASURED)
        while True:
            done = await bound.get()
            await client.delete(
                pod.Pod,
                done.metadata.name,
                namespace=done.metadata.namespace,
                grace_period_seconds=0,
                propagation="Background",
            )
            await _create_pod(client, measured, objects.MEASURED)

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(workload.seconds), asyncio.TaskGroup() as group:
            for _ in range(workload.pods):
                group.create_task(replace())
    if not measured.figures().bound:
        raise errors.InvalidValueError(f"workload {workload.name}: no pod was bound in {workload.seconds} seconds")


async def _create_pod(client: Client, measured: meter.Meter, place: str) -> None:
    began = time.perf_counter()
    made = await preparation.create(client, objects.pod(place))
    measured.created(made["metadata"]["name"], began)


# The control plane


class Plane(msgspec.Struct, frozen=True, kw_only=True):
    """A control plane under load; ``processes`` are its own ones, where it is not in this one."""

    client: Client
    processes: tuple[int, ...] = ()

    def peak_bytes(self) -> int:
        if not self.processes:
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return sum(map(_peak_of, self.processes))

    def processor_seconds(self) -> float:
        if not self.processes:
            return time.process_time()
        return sum(map(_processor_of, self.processes))


def _peak_of(process: int) -> int:
    for line in pathlib.Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def _processor_of(process: int) -> float:
    # The command's name may have blanks in it; what counts comes after it.
    fields = pathlib.Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.asynccontextmanager
async def _embedded(
    folder: pathlib.Path, workload: workloads.Workload, record: pathlib.Path | None
) -> AsyncIterator[Plane]:
    chance = random.Random(_SEED)
    store = await sqlite.SqliteStore.open(folder)
    async with embedded.server(store, chance=chance) as server:
        await preparation.prepare(server.client, workload, chance=chance)
        recording_to = None if record is None else components.RecordingTo(record)
        scheduler = functools.partial(components.scheduler, recording_to=recording_to)
        async with embedded.running(Surroundings(server.client, chance=chance), components.controllers, scheduler):
            yield Plane(client=server.client)


@contextlib.asynccontextmanager
async def _over_https(
    folder: pathlib.Path, workload: workloads.Workload, record: pathlib.Path | None
) -> AsyncIterator[Plane]:
    kubeconfig = folder / "kubeconfig"
    async with contextlib.AsyncExitStack() as stack:
        data = ("--data", str(folder / "data"), "--listen", "127.0.0.1:0", "--kubeconfig-out", str(kubeconfig))
        server = await stack.enter_async_context(_process("apiserver", *data, *_LIKE_UPSTREAM, until=kubeconfig))
        client = await stack.enter_async_context(
            http.HttpClient(http.find_access(kubeconfig), time=clock.SystemClock())
        )
        await preparation.prepare(client, workload, chance=random.Random(_SEED))
        access = ("--kubeconfig", str(kubeconfig))
        recording = () if record is None else ("--record", str(record))
        commands = (("controllers", *access), ("scheduler", *access, *recording))
        others = [await stack.enter_async_context(_process(*each)) for each in commands]
        yield Plane(client=client, processes=(server, *others))


@contextlib.asynccontextmanager
async def _process(*arguments: str, until: pathlib.Path | None = None) -> AsyncIterator[int]:
    """A command of drachma in a process of its own; what it says goes to standard error if it fails to start."""
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
