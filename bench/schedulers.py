"""Schedulers as processes of their own on one API server over HTTPS, in turns, measured from outside.

``python -m bench.schedulers --help``; it is not part of ``python -m bench``. It starts etcd and kube-apiserver
(``python -m tests.cluster.programs`` builds them, or ``$KUBE_BINARIES`` has them), and runs drachma's scheduler and
kube-scheduler in turns. ``--cores 1 2`` does so on one core and then on two, for all processes together.
``--scheduler`` measures other command lines with ``{kubeconfig}`` in them, each under a label; ``--own-server`` uses
``drachma apiserver``, and ``--kubeconfig`` an API server that runs and on which no other scheduler works. The row
``writes only`` is the limit of the machine: a process that writes without deciding (:mod:`bench.schedulerlimit`).
``--plain`` measures pods without claims, as upstream's SchedulingBasic has them. No controllers are needed. A run ends
when all pods are bound, or fails when none was bound for so many seconds.

For each run: pods bound a second, from the first create to the last binding; p50 and p99 of the time from a pod's
creation to its binding; CPU time a pod of each process; greatest memory of the scheduler; writes a pod that the server
answered, without creates of pods; conflicts; devices allocated twice.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import pathlib
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import NamedTuple

import uvloop
from tests.cluster import controlplane, programs
from tests.scenarios import processes

from bench import schedulerload, timing
from drachma.api import pod
from drachma.client import http
from drachma.runtime import clock

_DRACHMA = (
    f'{sys.executable} -c "from drachma import cli; cli.main()" scheduler --kubeconfig {{kubeconfig}} --no-leader-elect'
)
_UPSTREAM = (
    "{program} --kubeconfig {{kubeconfig}} --leader-elect=false --secure-port=0"
    " --kube-api-qps=5000 --kube-api-burst=5000"
)
_PEERS = f"{_DRACHMA} --peers".replace("--no-leader-elect ", "")
_LIMIT = f"{sys.executable} -m bench.schedulerlimit {{kubeconfig}}"
_START_SECONDS = 60.0
_REST_SECONDS = 1.0


class Contender(NamedTuple):
    """A command line, and how many processes of it work at the same time."""

    label: str
    processes: int
    command: str


class Plan(NamedTuple):
    """Load of each contender."""

    pods: int
    kill_after: int
    patience: float
    is_plain: bool
    """True if the pods have no claims."""


class Server(NamedTuple):
    """An API server, and the processes behind it that are known, by name."""

    kubeconfig: pathlib.Path
    processes: Mapping[str, int]


class Run(NamedTuple):
    """Result of one run; times in seconds."""

    bound: list[float]
    waits: list[float]
    """Time from the creation of each pod to its binding, shortest first."""
    seconds: Mapping[str, float]
    """CPU time by process."""
    memory: int
    """Greatest resident memory of the schedulers, in bytes."""
    answers: schedulerload.Answers
    doubles: int


class Schedulers:
    """Processes of one command."""

    def __init__(self, command: Sequence[str], log: pathlib.Path) -> None:
        self._command = command
        self._log = log
        self._running: list[asyncio.subprocess.Process] = []
        self._spent = 0.0

    async def start(self) -> None:
        with self._log.open("ab") as log:
            self._running.append(await asyncio.create_subprocess_exec(*self._command, stdout=log, stderr=log))

    async def kill(self) -> None:
        """End one as a power cut would."""
        gone = self._running.pop(0)
        self._spent += processor_seconds(gone.pid)
        gone.send_signal(signal.SIGKILL)
        await gone.wait()

    async def stop(self) -> None:
        for each in self._running:
            with contextlib.suppress(ProcessLookupError):
                each.terminate()
            await each.wait()

    def processor_seconds(self) -> float:
        return self._spent + sum(processor_seconds(each.pid) for each in self._running)

    def peak_memory(self) -> int:
        return sum(peak_memory(each.pid) for each in self._running)

    def check(self) -> None:
        for each in self._running:
            if each.returncode is not None:
                raise RuntimeError(f"{self._command[0]} ended with {each.returncode}, see {self._log}")


def processor_seconds(process: int) -> float:
    """Return the CPU time of a process so far."""
    fields = pathlib.Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_memory(process: int) -> int:
    """Return the greatest resident memory of a process so far, in bytes."""
    for line in pathlib.Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {process} has ended")


# One run


async def measure(
    client: http.HttpClient, contender: Contender, plan: Plan, *, server: Server, log: pathlib.Path
) -> Run:
    """Run a contender on an API server until all pods are bound, and remove the pods."""
    schedulers = Schedulers(shlex.split(contender.command.format(kubeconfig=server.kubeconfig)), log)
    try:
        for _ in range(contender.processes):
            await schedulers.start()
        await _until_ready(client, schedulers, contender.processes)
        await schedulerload.clear(client)
        await schedulerload.create_claims(client, 0 if plan.is_plain else plan.pods)
        answers = await schedulerload.answers(client)
        before = _seconds(schedulers, server)
        bound, waits = await _bind_all(client, schedulers, plan)
        # Events and conditions are still on their way.
        await asyncio.sleep(_REST_SECONDS)
        after = _seconds(schedulers, server)
        return Run(
            bound,
            waits,
            {name: after[name] - before[name] for name in after},
            schedulers.peak_memory(),
            await schedulerload.answers(client) - answers,
            await schedulerload.doubles(client),
        )
    finally:
        await schedulers.stop()
        await schedulerload.clear(client)


def _seconds(schedulers: Schedulers, server: Server) -> dict[str, float]:
    others = {name: processor_seconds(process) for name, process in server.processes.items()}
    return {"scheduler": schedulers.processor_seconds(), **others, "load": time.process_time()}


async def _until_ready(client: http.HttpClient, schedulers: Schedulers, count: int) -> None:
    """Return once pods are bound, and all of several schedulers had the time to find each other."""
    await schedulerload.create_plain_pods(client, 3 * count)
    deadline = time.monotonic() + _START_SECONDS
    while not all(each.spec.node_name for each in (await client.list(pod.Pod, schedulerload.SELECTION)).items):
        schedulers.check()
        if time.monotonic() > deadline:
            raise TimeoutError("no pod was bound: does another scheduler hold the lease?")
        await asyncio.sleep(0.1)
    await asyncio.sleep(_REST_SECONDS if count == 1 else 5 * _REST_SECONDS)


async def _bind_all(client: http.HttpClient, schedulers: Schedulers, plan: Plan) -> tuple[list[float], list[float]]:
    """Create the pods, and return when each was bound, in seconds from the first create and from its own, sorted."""
    start = (await client.list(pod.Pod, schedulerload.SELECTION)).resource_version
    began = time.perf_counter()
    created: dict[str, float] = {}
    bound: dict[str, float] = {}
    heard = asyncio.Event()

    async def watch() -> None:
        version = start
        while True:
            # A server that is busy ends watches; the next one goes on where the last one was.
            async with client.watch(pod.Pod, schedulerload.SELECTION, resource_version=version) as events:
                while batch := await events.batch():
                    for event in batch:
                        version = event.object.metadata.resource_version
                        if event.object.spec.node_name:
                            bound.setdefault(event.object.metadata.name, time.perf_counter() - began)
                    heard.set()

    creation = schedulerload.create_pods(
        client,
        plan.pods,
        lambda name: created.setdefault(name, time.perf_counter() - began),
        is_plain=plan.is_plain,
    )
    tasks = [asyncio.create_task(watch()), asyncio.create_task(creation)]
    try:
        is_killed = not plan.kill_after
        while len(bound) < plan.pods:
            heard.clear()
            async with asyncio.timeout(plan.patience):
                await heard.wait()
            schedulers.check()
            for task in tasks:
                if task.done():
                    task.result()
            if not is_killed and len(bound) >= plan.kill_after:
                is_killed = True
                await schedulers.kill()
                await schedulers.start()
    finally:
        for task in tasks:
            task.cancel()
    return sorted(bound.values()), sorted(moment - created[name] for name, moment in bound.items())


# The table

_WRITES = ("POST", "PUT", "PATCH", "APPLY", "DELETE")


def header(server: Server) -> tuple[str, ...]:
    """Return the titles of the columns."""
    spent = (f"{name}, ms a pod" for name in ("scheduler", *server.processes, "load"))
    return ("cores", "scheduler", "pods/s", "p50, s", "p99, s", *spent, "MiB", "writes a pod", "409", "doubles")


def row(cores: int, contender: Contender, run: Run) -> tuple[str, ...]:
    """Return the columns of one run."""
    pods = len(run.bound)
    writes = sum(
        count
        for (verb, what, code), count in run.answers.items()
        if verb in _WRITES and code < 400 and what != "leases"
    )
    return (
        str(cores),
        contender.label if contender.processes == 1 else f"{contender.processes} {contender.label}",
        f"{pods / run.bound[-1]:.0f}",
        f"{run.waits[pods // 2]:.2f}",
        f"{run.waits[min(pods - 1, pods * 99 // 100)]:.2f}",
        *(f"{seconds / pods * 1000:.2f}" for seconds in run.seconds.values()),
        f"{run.memory / 2**20:.0f}",
        f"{writes / pods - 1:.2f}",
        str(sum(count for (_, _, code), count in run.answers.items() if code == 409)),
        str(run.doubles),
    )


async def main() -> None:
    options = _options()
    contenders = [_contender(text) for text in options.scheduler or _default_contenders(options)]
    for each in contenders:
        program = shlex.split(each.command)[0]
        if shutil.which(program) is None:
            sys.exit(f"{each.label}: there is no program {program!r}; --scheduler takes LABEL=COMMAND")
    plan = Plan(options.pods, options.kill_after, options.patience, is_plain=options.plain)
    devices = 0 if options.plain else options.devices
    cluster = schedulerload.Cluster(options.nodes, devices, is_network=options.network)
    rows: list[tuple[str, ...]] = []
    titles: tuple[str, ...] = ()
    machine = sorted(os.sched_getaffinity(0))
    for cores in options.cores:
        # Every process that is started from here inherits the cores.
        os.sched_setaffinity(0, machine[:cores])
        async with (
            _server(options) as server,
            http.HttpClient(http.find_access(server.kubeconfig), clock=clock.SystemClock()) as client,
        ):
            titles = header(server)
            await schedulerload.prepare(client, cluster)
            for number in range(options.rounds):
                for each in contenders:
                    log = pathlib.Path(options.logs) / f"{each.label}-{cores}-{number}.log"
                    run = await measure(client, each, plan, server=server, log=log)
                    rows.append(row(cores, each, run))
                    print("  ".join(rows[-1]), file=sys.stderr, flush=True)
                    for (verb, what, code), count in sorted(run.answers.items()) if options.answers else ():
                        print(f"    {verb} {what} {code}: {count}")
    where = "in the network" if cluster.is_network else "each"
    killed = f", one killed after {plan.kill_after}" if plan.kill_after else ""
    timing.table(f"{plan.pods} pods, {cluster.nodes} nodes, {cluster.devices} devices {where}{killed}", titles, rows)


def _default_contenders(options: argparse.Namespace) -> list[str]:
    own = f"drachma={_DRACHMA}"
    if options.own_server:
        return [own]
    try:
        upstream = _UPSTREAM.format(program=programs.built("kube-scheduler"))
        if options.plain:
            return [own, f"kube-scheduler={upstream}"]
        return [own, f"kube-scheduler={upstream}", f"drachma --peers*2={_PEERS}", f"writes only={_LIMIT}"]
    except programs.MissingError as missing:
        sys.exit(f"bench.schedulers: {missing}")


def _contender(text: str) -> Contender:
    label, _, command = text.partition("=")
    label, _, count = label.partition("*")
    return Contender(label, int(count or 1), command or _DRACHMA)


@contextlib.asynccontextmanager
async def _server(options: argparse.Namespace) -> AsyncIterator[Server]:
    if options.kubeconfig is not None:
        known = dict(each.split("=") for each in options.server_process or ())
        yield Server(options.kubeconfig, {name: int(process) for name, process in known.items()})
        return
    with tempfile.TemporaryDirectory() as folder:
        if options.own_server:
            with processes.running(pathlib.Path(folder) / "data") as server:
                yield Server(server.kubeconfig, {"drachma-apiserver": server.process.pid})
            return
        with controlplane.control_plane(pathlib.Path(folder), gates=(), apis="api/ga=true", is_audited=False) as plane:
            pids = {name: program.process.pid for name, program in plane.servers.items()}
            yield Server(plane.kubeconfig, pids)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.schedulers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--own-server", action="store_true", help="measure on drachma's API server")
    add("--kubeconfig", type=pathlib.Path, help="an API server that runs")
    add("--server-process", action="append", metavar="NAME=PID", help="a process of that server, for its CPU time")
    add("--scheduler", action="append", metavar="LABEL=COMMAND", help="what to measure; LABEL*2=COMMAND runs it twice")
    add("--cores", type=int, nargs="+", default=[os.cpu_count() or 1], help="numbers of cores to measure on")
    add("--nodes", type=int, default=100)
    add("--devices", type=int, default=20, help="of each node")
    add("--network", action="store_true", help="so many devices in one pool that all nodes can reach")
    add("--plain", action="store_true", help="pods without claims, and nodes without devices")
    add("--pods", type=int, default=1000)
    add("--kill-after", type=int, default=0, help="kill -9 one after so many pods, and start another")
    add("--rounds", type=int, default=1, help="each command is measured so often, in turns")
    add("--patience", type=float, default=90.0, help="seconds without any pod bound until it fails")
    add("--answers", action="store_true", help="print all that the server answered, by kind")
    add("--logs", default=tempfile.gettempdir(), help="the folder for what schedulers say")
    return parser.parse_args()


if __name__ == "__main__":
    uvloop.run(main())
