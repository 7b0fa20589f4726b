"""Schedulers as processes of their own on one API server over HTTPS, measured from outside.

``python -m bench.schedulers --help``; it is not part of ``python -m bench``. Without ``--kubeconfig`` the server is
``drachma apiserver`` in a process of its own; with it, any Kubernetes API server that serves ``resource.k8s.io/v1`` and
on which no other scheduler works. What is measured are command lines with ``{kubeconfig}`` in them, each under a label,
such as ``upstream=/path/to/kube-scheduler --kubeconfig {kubeconfig} --leader-elect=false --kube-api-qps 5000
--kube-api-burst 5000``; several take turns. No controllers are needed: the load makes a claim for every pod, and clears
away behind itself. A run ends when all pods are bound, or fails when none was bound for so many seconds.

For each run: pods bound a second, from the first create to the last binding; when the first, half and all of them were
bound; processor time of the schedulers; conflicts that the server answered, and GETs of claims; devices given twice.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import os
import pathlib
import random
import re
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any, NamedTuple

import uvloop
from tests.scenarios import processes

from bench import timing
from drachma import errors
from drachma.api import node, pod, resourceclaim
from drachma.cli.benchmark import objects, preparation
from drachma.client import backoff, http, patches, protocol, target, transport
from drachma.runtime import clock

PLACE = "bench-schedulers"
CREATORS = 16
DRACHMA = (
    f'{sys.executable} -c "from drachma import cli; cli.main()" scheduler --kubeconfig {{kubeconfig}} --no-leader-elect'
)

_SERVICE_ACCOUNT = target.metadata_of("", "v1", plural="serviceaccounts", kind="ServiceAccount", namespaced=True)


class Plan(NamedTuple):
    """What is done to the command lines."""

    nodes: int
    devices: int
    pods: int
    at_once: int
    kill_after: int
    patience: float
    start_seconds: float


class Run(NamedTuple):
    """What became of one run."""

    bound: list[float]
    processor_seconds: float
    answers: Counter[tuple[str, str, int]]
    doubles: int


# The cluster


async def prepare(client: http.HttpClient, plan: Plan) -> None:
    """Nodes with devices; a service account, which upstream's server wants before it takes pods."""
    await _if_absent(preparation.create(client, objects.namespace(PLACE)))
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": PLACE}}
    await _if_absent(client.create_document(_SERVICE_ACCOUNT, account))
    await _if_absent(preparation.create(client, objects.device_class()))
    await preparation.side_by_side(functools.partial(_add_node, client, number, plan) for number in range(plan.nodes))


async def _add_node(client: http.HttpClient, number: int, plan: Plan) -> None:
    document = objects.node(number)
    name = document["metadata"]["name"]
    await _if_absent(preparation.create(client, document))
    # Upstream's server taints new nodes, for a controller to take that back.
    await client.patch(node.Node, name, patch=patches.merge({"spec": {"taints": None}}))
    await client.patch(node.Node, name, patch=patches.merge({"status": document["status"]}), subresource="status")
    (published,) = objects.plain_slices(number)
    gpus = published["spec"]["devices"]
    published["spec"]["devices"] = [{**gpus[0], "name": f"device-{index}"} for index in range(plan.devices)]
    await _if_absent(preparation.create(client, published))


async def _if_absent(made: Any) -> None:
    with contextlib.suppress(errors.ObjectExistsError):
        await made


async def clear(client: http.HttpClient) -> None:
    """Takes away all pods and claims of the load; what their controller would do first is done here."""
    place = protocol.Selection(PLACE)
    pods = (await client.list(pod.Pod, place)).items
    await preparation.side_by_side(functools.partial(_delete_pod, client, each) for each in pods)
    claims = (await client.list(resourceclaim.ResourceClaim, place)).items
    await preparation.side_by_side(functools.partial(_delete_claim, client, each) for each in claims)


async def _delete_pod(client: http.HttpClient, gone: pod.Pod) -> None:
    await client.delete(pod.Pod, gone.metadata.name, namespace=PLACE, grace_period_seconds=0)


async def _delete_claim(client: http.HttpClient, gone: resourceclaim.ResourceClaim) -> None:
    kind, name = resourceclaim.ResourceClaim, gone.metadata.name
    freed = patches.merge({"status": {"allocation": None, "reservedFor": None}})
    await client.patch(kind, name, namespace=PLACE, subresource="status", patch=freed)
    await client.patch(kind, name, namespace=PLACE, patch=patches.merge({"metadata": {"finalizers": None}}))
    await client.delete(kind, name, namespace=PLACE)


# The schedulers


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


async def measure(client: http.HttpClient, command: Sequence[str], plan: Plan, *, log: pathlib.Path) -> Run:
    schedulers = Schedulers(command, log)
    try:
        for _ in range(plan.at_once):
            await schedulers.start()
        await _until_ready(client, schedulers, plan)
        await clear(client)
        claims = [_claim(number) for number in range(plan.pods)]
        await preparation.side_by_side(functools.partial(preparation.create, client, each) for each in claims)
        before, spent = await _answers(client), schedulers.processor_seconds()
        bound = await _bind_all(client, schedulers, plan)
        spent = schedulers.processor_seconds() - spent
        # Events and conditions are still on their way.
        await asyncio.sleep(1)
        answers = await _answers(client) - before
        return Run(bound, spent, answers, await _doubles(client))
    finally:
        await schedulers.stop()
        await clear(client)


async def _until_ready(client: http.HttpClient, schedulers: Schedulers, plan: Plan) -> None:
    """Returns once pods are bound; a few more times, so that all of several schedulers are up."""
    for number in range(3 * plan.at_once):
        await preparation.create(client, _pod(f"warm-{number}", claim=""))
    deadline = time.monotonic() + plan.start_seconds
    while not all(each.spec.node_name for each in (await client.list(pod.Pod, protocol.Selection(PLACE))).items):
        schedulers.check()
        if time.monotonic() > deadline:
            raise TimeoutError("no pod was bound: does another scheduler hold the lease?")
        await asyncio.sleep(0.1)
    await asyncio.sleep(1 if plan.at_once == 1 else 5)


async def _bind_all(client: http.HttpClient, schedulers: Schedulers, plan: Plan) -> list[float]:
    """Creates the pods, and returns when each was bound, in seconds from the first create."""
    place = protocol.Selection(PLACE)
    start = (await client.list(pod.Pod, place)).resource_version
    began = time.perf_counter()
    bound: dict[str, float] = {}
    heard = asyncio.Event()

    async def watch() -> None:
        async with client.watch(pod.Pod, place, resource_version=start) as events:
            while batch := await events.batch():
                for event in batch:
                    if event.object.spec.node_name:
                        bound.setdefault(event.object.metadata.name, time.perf_counter() - began)
                heard.set()

    async def create() -> None:
        pods = [_pod(f"p{number}", claim=f"c{number}") for number in range(plan.pods)]
        acts = (functools.partial(preparation.create, client, each) for each in pods)
        await preparation.side_by_side(acts, at_once=CREATORS)

    watching = asyncio.create_task(watch())
    creating = asyncio.create_task(create())
    try:
        is_killed = not plan.kill_after
        while len(bound) < plan.pods:
            heard.clear()
            async with asyncio.timeout(plan.patience):
                await heard.wait()
            schedulers.check()
            for task in (watching, creating):
                if task.done():
                    task.result()
            if not is_killed and len(bound) >= plan.kill_after:
                is_killed = True
                await schedulers.kill()
                await schedulers.start()
        await creating
    finally:
        watching.cancel()
        creating.cancel()
    return sorted(bound.values())


def _claim(number: int) -> objects.Document:
    made = objects.claim(number, objects.claim_spec())
    return {**made, "metadata": {"name": f"c{number}", "namespace": PLACE}}


def _pod(name: str, *, claim: str) -> objects.Document:
    made = objects.pod(PLACE)
    made["metadata"] = {"name": name, "namespace": PLACE}
    if claim:
        made["spec"]["resourceClaims"] = [{"name": "resource", "resourceClaimName": claim}]
    else:
        del made["spec"]["resourceClaims"], made["spec"]["containers"][0]["resources"]
    return made


async def _answers(client: http.HttpClient) -> Counter[tuple[str, str, int]]:
    """What the server answered so far: by verb, resource with subresource, and code."""
    asked = transport.Transport(
        client.access, time=clock.SystemClock(), retries=backoff.Retries(), chance=random.Random(), timeout_seconds=60
    )
    request = transport.Request(method="GET", path="/metrics", accept="text/plain", is_idempotent=True)
    try:
        text = (await asked.send(request)).decode()
    finally:
        await asked.close()
    counts: Counter[tuple[str, str, int]] = Counter()
    for line in text.splitlines():
        if line.startswith("apiserver_request_total{"):
            labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
            what = "/".join(filter(None, (labels["resource"], labels["subresource"])))
            counts[labels["verb"], what, int(labels["code"])] += int(float(line.rpartition(" ")[2]))
    return counts


async def _doubles(client: http.HttpClient) -> int:
    """How many devices are in more than one claim."""
    claims = (await client.list(resourceclaim.ResourceClaim, protocol.Selection(PLACE))).items
    held = Counter(
        (result.driver, result.pool, result.device)
        for each in claims
        if each.status.allocation is not None
        for result in each.status.allocation.devices.results
    )
    return sum(count > 1 for count in held.values())


# The table


def row(label: str, run: Run) -> tuple[str, ...]:
    bound = run.bound
    conflicts = sum(count for (_, _, code), count in run.answers.items() if code == 409)
    gets = run.answers["GET", "resourceclaims", 200]
    return (
        label,
        f"{len(bound) / bound[-1]:.0f}",
        f"{bound[0]:.2f}",
        f"{bound[len(bound) // 2]:.1f}",
        f"{bound[-1]:.1f}",
        f"{run.processor_seconds:.1f}",
        str(conflicts),
        str(gets),
        str(run.doubles),
    )


async def main() -> None:
    options = _options()
    plan = Plan(
        nodes=options.nodes,
        devices=options.devices,
        pods=options.pods,
        at_once=options.at_once,
        kill_after=options.kill_after,
        patience=options.patience,
        start_seconds=60.0,
    )
    commands = dict(_labelled(text) for text in options.scheduler or (f"drachma={DRACHMA}",))
    for command in commands.values():
        if shutil.which(shlex.split(command)[0]) is None:
            sys.exit(f"there is no program {shlex.split(command)[0]!r}: --scheduler takes LABEL=COMMAND with its path")
    rows = []
    async with (
        _server(options.kubeconfig) as kubeconfig,
        http.HttpClient(http.find_access(kubeconfig), time=clock.SystemClock()) as client,
    ):
        await prepare(client, plan)
        for number in range(options.rounds):
            for label, command in commands.items():
                log = pathlib.Path(options.logs) / f"{label}-{number}.log"
                run = await measure(client, shlex.split(command.format(kubeconfig=kubeconfig)), plan, log=log)
                rows.append(row(label, run))
                print("  ".join(rows[-1]), file=sys.stderr, flush=True)
                if options.answers:
                    for (verb, what, code), count in sorted(run.answers.items()):
                        print(f"    {verb} {what} {code}: {count}")
    timing.table(
        f"{plan.pods} pods, {plan.nodes} nodes with {plan.devices} devices, {plan.at_once} at once"
        + (f", one killed after {plan.kill_after}" if plan.kill_after else ""),
        ("scheduler", "pods/s", "first, s", "half, s", "all, s", "CPU s", "conflicts", "claim GETs", "doubles"),
        rows,
    )


def _labelled(text: str) -> tuple[str, str]:
    label, _, command = text.partition("=")
    return label, command


@contextlib.asynccontextmanager
async def _server(kubeconfig: pathlib.Path | None) -> AsyncIterator[pathlib.Path]:
    if kubeconfig is not None:
        yield kubeconfig
        return
    with tempfile.TemporaryDirectory() as folder, processes.running(pathlib.Path(folder) / "data") as server:
        # What it says is read by nobody, and a full pipe would stop it.
        assert server.process.stdout is not None
        drained = asyncio.get_running_loop().run_in_executor(None, server.process.stdout.read)
        try:
            yield server.kubeconfig
        finally:
            server.process.kill()
            await drained


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.schedulers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--kubeconfig", type=pathlib.Path, help="an API server that runs; otherwise drachma's is started"
    )
    parser.add_argument(
        "--scheduler", action="append", metavar="LABEL=COMMAND", help="what to measure; may be repeated"
    )
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--devices", type=int, default=20, help="of each node")
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=1, help="processes of a command that work at the same time")
    parser.add_argument("--kill-after", type=int, default=0, help="kill -9 one after so many pods, and start another")
    parser.add_argument("--rounds", type=int, default=1, help="each command is measured so often, in turns")
    parser.add_argument("--patience", type=float, default=90.0, help="seconds without any pod bound until it fails")
    parser.add_argument("--answers", action="store_true", help="print all that the server answered, by kind")
    parser.add_argument("--logs", default=tempfile.gettempdir(), help="the folder for what schedulers say")
    return parser.parse_args()


if __name__ == "__main__":
    uvloop.run(main())
