"""Schedulers as processes of their own on one API server over HTTPS, measured from outside.

``python -m bench.schedulers --help``; it is not part of ``python -m bench``. Without ``--kubeconfig`` the server is
``drachma apiserver`` in a process of its own; with it, any Kubernetes API server that serves ``resource.k8s.io/v1`` and
on which no other scheduler works. What is measured are command lines with ``{kubeconfig}`` in them, each under a label,
such as ``upstream=/path/to/kube-scheduler --kubeconfig {kubeconfig} --leader-elect=false --kube-api-qps 5000
--kube-api-burst 5000``; several take turns. No controllers are needed. A run ends when all pods are bound, or fails
when none was bound for so many seconds.

For each run: pods bound a second, from the first create to the last binding; when the first, half and all of them were
bound; processor time of the schedulers and of the server; conflicts that the server answered, and GETs of claims;
devices given twice.
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
from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple

import uvloop
from tests.scenarios import processes

from bench import schedulerload, timing
from drachma.api import pod
from drachma.client import http
from drachma.runtime import clock

DRACHMA = (
    f'{sys.executable} -c "from drachma import cli; cli.main()" scheduler --kubeconfig {{kubeconfig}} --no-leader-elect'
)
START_SECONDS = 60.0
REST_SECONDS = 1.0


class Contender(NamedTuple):
    """A command line, and how many processes of it work at the same time."""

    label: str
    processes: int
    command: str


class Plan(NamedTuple):
    """What is done to each contender."""

    pods: int
    kill_after: int
    patience: float


class Server(NamedTuple):
    """An API server, and those of its processes that are known."""

    kubeconfig: pathlib.Path
    processes: tuple[int, ...]


class Run(NamedTuple):
    """What became of one run; times in seconds."""

    bound: list[float]
    schedulers: float
    server: float
    answers: schedulerload.Answers
    doubles: int


class Schedulers:
    """So many processes of one command."""

    def __init__(self, command: Sequence[str], log: pathlib.Path) -> None:
        self._command = command
        self._log = log
        self._running: list[asyncio.subprocess.Process] = []
        self._spent = 0.0

    async def start(self) -> None:
        with self._log.open("ab") as log:
            self._running.append(await asyncio.create_subprocess_exec(*self._command, stdout=log, stderr=log))

    async def kill(self) -> None:
        """Ends one as a power cut would."""
        gone = self._running.pop(0)
        self._spent += _processor_of(gone.pid)
        gone.send_signal(signal.SIGKILL)
        await gone.wait()

    async def stop(self) -> None:
        for each in self._running:
            with contextlib.suppress(ProcessLookupError):
                each.terminate()
            await each.wait()

    def processor_seconds(self) -> float:
        return self._spent + sum(_processor_of(each.pid) for each in self._running)

    def check(self) -> None:
        for each in self._running:
            if each.returncode is not None:
                raise RuntimeError(f"{self._command[0]} ended with {each.returncode}, see {self._log}")


def _processor_of(process: int) -> float:
    fields = pathlib.Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# One run


async def measure(
    client: http.HttpClient, contender: Contender, plan: Plan, *, server: Server, log: pathlib.Path
) -> Run:
    schedulers = Schedulers(shlex.split(contender.command.format(kubeconfig=server.kubeconfig)), log)
    try:
        for _ in range(contender.processes):
            await schedulers.start()
        await _until_ready(client, schedulers, contender.processes)
        await schedulerload.clear(client)
        await schedulerload.create_claims(client, plan.pods)
        answers, spent = await schedulerload.answers(client), schedulers.processor_seconds()
        served = sum(map(_processor_of, server.processes))
        bound = await _bind_all(client, schedulers, plan)
        # Events and conditions are still on their way.
        await asyncio.sleep(REST_SECONDS)
        return Run(
            bound,
            schedulers.processor_seconds() - spent,
            sum(map(_processor_of, server.processes)) - served,
            await schedulerload.answers(client) - answers,
            await schedulerload.doubles(client),
        )
    finally:
        await schedulers.stop()
        await schedulerload.clear(client)


async def _until_ready(client: http.HttpClient, schedulers: Schedulers, count: int) -> None:
    """Returns once pods are bound, and all of several schedulers had the time to find each other."""
    await schedulerload.create_plain_pods(client, 3 * count)
    deadline = time.monotonic() + START_SECONDS
    while not all(each.spec.node_name for each in (await client.list(pod.Pod, schedulerload.SELECTION)).items):
        schedulers.check()
        if time.monotonic() > deadline:
            raise TimeoutError("no pod was bound: does another scheduler hold the lease?")
        await asyncio.sleep(0.1)
    await asyncio.sleep(REST_SECONDS if count == 1 else 5 * REST_SECONDS)


async def _bind_all(client: http.HttpClient, schedulers: Schedulers, plan: Plan) -> list[float]:
    """Creates the pods, and returns when each was bound, in seconds from the first create."""
    start = (await client.list(pod.Pod, schedulerload.SELECTION)).resource_version
    began = time.perf_counter()
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

    tasks = [asyncio.create_task(watch()), asyncio.create_task(schedulerload.create_pods(client, plan.pods))]
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
    return sorted(bound.values())


# The table


HEADER = (
    "scheduler",
    "pods/s",
    "first, s",
    "half, s",
    "all, s",
    "CPU s",
    "server CPU s",
    "409",
    "claim GETs",
    "doubles",
)


def row(contender: Contender, run: Run) -> tuple[str, ...]:
    bound = run.bound
    return (
        contender.label if contender.processes == 1 else f"{contender.processes} {contender.label}",
        f"{len(bound) / bound[-1]:.0f}",
        f"{bound[0]:.2f}",
        f"{bound[len(bound) // 2]:.1f}",
        f"{bound[-1]:.1f}",
        f"{run.schedulers:.1f}",
        f"{run.server:.1f}",
        str(sum(count for (_, _, code), count in run.answers.items() if code == 409)),
        str(run.answers["GET", "resourceclaims", 200]),
        str(run.doubles),
    )


async def main() -> None:
    options = _options()
    contenders = [_contender(text) for text in options.scheduler or (f"drachma={DRACHMA}",)]
    for each in contenders:
        program = shlex.split(each.command)[0]
        if shutil.which(program) is None:
            sys.exit(f"{each.label}: there is no program {program!r}; --scheduler takes LABEL=COMMAND")
    plan = Plan(options.pods, options.kill_after, options.patience)
    cluster = schedulerload.Cluster(options.nodes, options.devices, is_network=options.network)
    rows = []
    async with (
        _server(options) as server,
        http.HttpClient(http.find_access(server.kubeconfig), clock=clock.SystemClock()) as client,
    ):
        await schedulerload.prepare(client, cluster)
        for number in range(options.rounds):
            for each in contenders:
                log = pathlib.Path(options.logs) / f"{each.label}-{number}.log"
                run = await measure(client, each, plan, server=server, log=log)
                rows.append(row(each, run))
                print("  ".join(rows[-1]), file=sys.stderr, flush=True)
                for (verb, what, code), count in sorted(run.answers.items()) if options.answers else ():
                    print(f"    {verb} {what} {code}: {count}")
    where = "in the network" if cluster.is_network else "each"
    killed = f", one killed after {plan.kill_after}" if plan.kill_after else ""
    timing.table(f"{plan.pods} pods, {cluster.nodes} nodes, {cluster.devices} devices {where}{killed}", HEADER, rows)


def _contender(text: str) -> Contender:
    label, _, command = text.partition("=")
    label, _, count = label.partition("*")
    return Contender(label, int(count or 1), command)


@contextlib.asynccontextmanager
async def _server(options: argparse.Namespace) -> AsyncIterator[Server]:
    if options.kubeconfig is not None:
        yield Server(options.kubeconfig, tuple(options.server_process or ()))
        return
    with tempfile.TemporaryDirectory() as folder, processes.running(pathlib.Path(folder) / "data") as server:
        # What it says is read by nobody, and a full pipe would stop it.
        assert server.process.stdout is not None, "it is piped"
        drained = asyncio.get_running_loop().run_in_executor(None, server.process.stdout.read)
        try:
            yield Server(server.kubeconfig, (server.process.pid,))
        finally:
            server.process.kill()
            await drained


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.schedulers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--kubeconfig", type=pathlib.Path, help="an API server that runs; otherwise drachma's is started")
    add("--server-process", type=int, action="append", help="a process of that server, for its processor time")
    add("--scheduler", action="append", metavar="LABEL=COMMAND", help="what to measure; LABEL*2=COMMAND runs it twice")
    add("--nodes", type=int, default=100)
    add("--devices", type=int, default=20, help="of each node")
    add("--network", action="store_true", help="so many devices in one pool that all nodes can reach")
    add("--pods", type=int, default=1000)
    add("--kill-after", type=int, default=0, help="kill -9 one after so many pods, and start another")
    add("--rounds", type=int, default=1, help="each command is measured so often, in turns")
    add("--patience", type=float, default=90.0, help="seconds without any pod bound until it fails")
    add("--answers", action="store_true", help="print all that the server answered, by kind")
    add("--logs", default=tempfile.gettempdir(), help="the folder for what schedulers say")
    return parser.parse_args()


if __name__ == "__main__":
    uvloop.run(main())
