"""Nodes: how soon pods run on one, beside a real kubelet; how many fit into a process; how soon a cluster is there.

``python -m bench nodes`` runs it alone. Agents, drivers and control planes are processes of their own. The kubelet, its
runtime that records and the driver are those of tests/peers, built the first time; without Go, or not as root, the
kubelet is left out.
"""

import asyncio
import os
import pathlib
import statistics
import time
from collections.abc import Callable, Sequence

import yaml
from tests import patience
from tests.peers import agents, programs
from tests.scenarios import nodecluster, processes
from tests.scenarios.nodecluster import NodeCluster, devices, workload

from bench import timing
from drachma.api import pod
from drachma.client import Selection

PODS = 100
DRIVER = "bench.example.com"
TEMPLATE = f"resourceClaimTemplateName: {DRIVER}"

MANY_NODES = 1_000
MANY_PODS = 10_000
WRITERS = 16

STARTS = 5


def main() -> None:
    timing.table(
        "drachma up, until it serves", ("nodes", "median of starts"), [(str(nodes), _start(nodes)) for nodes in (0, 3)]
    )
    rows = [("drachma node", *created_to_running(lambda cluster: agents.DrachmaAgent(cluster, "worker")))]
    if os.geteuid() == 0:
        rows.append(("kubelet 1.37", *created_to_running(lambda cluster: agents.Kubelet(cluster, "worker"))))
    timing.table(
        f"{PODS} pods with a claim each on one node, from creation to running",
        ("agent", "all at once: p50", "p99", "one after the other: p50", "p99"),
        rows,
    )
    timing.table(
        f"{MANY_NODES:,} simulated nodes in one process",
        ("pods", "running after", "memory", "CPU a pod"),
        [many(MANY_NODES, MANY_PODS)],
    )


def _start(nodes: int) -> str:
    """How long it takes from the command to the line that says that it serves."""
    seconds = []
    for _ in range(STARTS):
        begun = time.perf_counter()
        with nodecluster.control_plane("--nodes", str(nodes)):
            seconds.append(time.perf_counter() - begun)
    return f"{statistics.median(seconds):.2f} s"


def created_to_running(join: Callable[[NodeCluster], agents.Agent]) -> tuple[str, ...]:
    """p50 and p99 of pods that are created together, then of pods that wait for the one before."""
    bootstrap = ("--bootstrap-kubeconfig-out", f"{{folder}}/{agents.BOOTSTRAP}")
    with nodecluster.control_plane(*bootstrap, nodes=["worker"]) as server:
        together, alone = asyncio.run(_created_to_running(server, join))
    return (*_percentiles(together), *_percentiles(alone))


async def _created_to_running(
    server: processes.Process, join: Callable[[NodeCluster], agents.Agent]
) -> tuple[list[float], list[float]]:
    async with nodecluster.connected(server) as cluster:
        await join(cluster).start()
        program = (str(programs.build("driver")),)
        await cluster.driver(DRIVER, "worker", program=program, options=("-devices", str(PODS)))
        await cluster.apply(devices(DRIVER))
        stopwatch = _Stopwatch(cluster)
        watching = asyncio.create_task(stopwatch.run())
        names = [f"together-{number}" for number in range(PODS)]
        await asyncio.gather(*(stopwatch.create(name) for name in names))
        together = [await stopwatch.seconds(name) for name in names]
        await asyncio.gather(*(cluster.pod_goes(name, grace=0) for name in names))
        alone = []
        for number in range(PODS // 4):
            await stopwatch.create(f"alone-{number}")
            alone.append(await stopwatch.seconds(f"alone-{number}"))
        watching.cancel()
        return together, alone


class _Stopwatch:
    """Sees when pods run."""

    def __init__(self, cluster: NodeCluster) -> None:
        self._cluster = cluster
        self._created: dict[str, float] = {}
        self._running: dict[str, asyncio.Future[float]] = {}

    async def run(self) -> None:
        client, place = self._cluster.client, Selection("default")
        version = (await client.list(pod.Pod, place)).resource_version
        while True:
            async with client.watch(pod.Pod, place, resource_version=version) as watch:
                while batch := await watch.batch():
                    for event in batch:
                        self._see(event.object)
                    version = batch[-1].resource_version

    def _see(self, of: pod.Pod) -> None:
        running = self._running.get(of.metadata.name)
        if running is not None and not running.done() and of.status.phase == "Running":
            running.set_result(time.perf_counter())

    def expect(self, name: str) -> None:
        """A pod is about to be created."""
        self._running[name] = asyncio.get_running_loop().create_future()
        self._created[name] = time.perf_counter()

    async def create(self, name: str) -> None:
        self.expect(name)
        await self._cluster.client.create_document(pod.Pod, yaml.safe_load(workload(name, TEMPLATE)))

    async def all_run(self) -> None:
        await asyncio.gather(*self._running.values())

    async def seconds(self, name: str) -> float:
        async with asyncio.timeout(patience.SECONDS):
            return await self._running[name] - self._created[name]


def many(nodes: int, pods: int) -> tuple[str, ...]:
    """So many simulated nodes and pods, half of these with a device, in the process of a control plane."""
    with nodecluster.control_plane("--nodes", str(nodes)) as server:
        seconds = asyncio.run(_many(server, pods))
        status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
        (peak,) = [int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")]
        ticks = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
        cpu = (int(ticks[11]) + int(ticks[12])) / os.sysconf("SC_CLK_TCK")
    return (f"{pods:,}", f"{seconds:.0f} s", f"{peak / 1024:,.0f} MiB", f"{1000 * cpu / pods:.1f} ms")


async def _many(server: processes.Process, pods: int) -> float:
    async with nodecluster.connected(server) as cluster:
        await cluster.apply(
            """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.simulation.drachma.dev}}]}}}
"""
        )
        with_device = yaml.safe_load(workload("any", "resourceClaimTemplateName: gpu"))
        without = {**with_device, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
        stopwatch = _Stopwatch(cluster)
        watching = asyncio.create_task(stopwatch.run())
        begun = time.perf_counter()
        numbers = iter(range(pods))

        async def write() -> None:
            for number in numbers:
                document = with_device if number % 2 else without
                stopwatch.expect(f"p{number}")
                await cluster.client.create_document(
                    pod.Pod, {**document, "metadata": {"name": f"p{number}", "namespace": "default"}}
                )

        await asyncio.gather(*(write() for _ in range(WRITERS)))
        await stopwatch.all_run()
        watching.cancel()
        return time.perf_counter() - begun


def _percentiles(seconds: Sequence[float]) -> list[str]:
    ordered = sorted(seconds)
    return [f"{1000 * ordered[int(share * (len(ordered) - 1))]:,.0f} ms" for share in (0.5, 0.99)]
