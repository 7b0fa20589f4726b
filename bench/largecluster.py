"""Components on a real control plane with many nodes and devices: time until they are ready, CPU and memory.

``python -m bench.largecluster``; it is not part of ``python -m bench``. It starts etcd and kube-apiserver, creates
5,000 nodes with ten devices each (objects only), and starts one component after the other. A component is ready as soon
as its ``/readyz`` says so; the scheduler also binds a pod with a claim.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import pathlib
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Sequence

import uvloop
from tests import ports
from tests.cluster import controlplane
from tests.scenarios import processes

from bench import schedulerload, schedulers, timing
from drachma.api import pod
from drachma.client import http
from drachma.runtime import clock

_COMPONENTS = {
    "scheduler": ("--no-leader-elect",),
    "controllers": ("--no-leader-elect", "--controllers=*,-node-lifecycle-controller,-taint-eviction-controller"),
    "exporter": (),
}
_PATIENCE_SECONDS = 300.0


async def main() -> None:
    options = _options()
    with (
        tempfile.TemporaryDirectory() as folder,
        controlplane.control_plane(pathlib.Path(folder), gates=(), apis="api/ga=true", is_audited=False) as plane,
    ):
        rows = []
        async with http.HttpClient(http.find_access(plane.kubeconfig), clock=clock.SystemClock()) as client:
            cluster = schedulerload.Cluster(options.nodes, options.devices, is_network=False)
            await schedulerload.prepare(client, cluster)
            for component, arguments in _COMPONENTS.items():
                rows.append(await _measure(client, plane, component, arguments))
                print("  ".join(rows[-1]), flush=True)
        for command in (("doctor",), ("get", "nodes")):
            rows.append(_run_command(plane, command))
            print("  ".join(rows[-1]), flush=True)
        for name, program in plane.servers.items():
            memory = schedulers.peak_memory(program.process.pid)
            rows.append((name, "", "", f"{memory / 2**20:.0f}", ""))
    title = f"{options.nodes} nodes, {options.nodes * options.devices} devices"
    timing.table(title, ("component", "ready, s", "CPU s", "peak MiB", "first pod, s"), rows)


async def _measure(
    client: http.HttpClient, plane: controlplane.ControlPlane, component: str, arguments: Sequence[str]
) -> tuple[str, ...]:
    with ports.reserved() as port:
        began = time.perf_counter()
        with plane.drachma(component, *arguments, f"--metrics-port={port}") as program:
            await _until_ready(program, port)
            ready = time.perf_counter() - began
            spent = schedulers.processor_seconds(program.process.pid)
            bound = f"{await _bind_one(client):.1f}" if component == "scheduler" else ""
            if component == "exporter":
                await asyncio.sleep(15)
            memory = schedulers.peak_memory(program.process.pid)
    return component, f"{ready:.1f}", f"{spent:.1f}", f"{memory / 2**20:.0f}", bound


async def _until_ready(program: controlplane.Program, port: int) -> None:
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while True:
            program.check()
            if await asyncio.to_thread(_is_ready, port):
                return
            await asyncio.sleep(0.1)


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


async def _bind_one(client: http.HttpClient) -> float:
    """Return the seconds until a new pod with a claim is bound."""
    await schedulerload.create_claims(client, 1)
    began = time.perf_counter()
    await schedulerload.create_pods(client, 1, lambda name: None)
    async with asyncio.timeout(_PATIENCE_SECONDS):
        while not (await client.get(pod.Pod, "p0", namespace=schedulerload.PLACE)).spec.node_name:
            await asyncio.sleep(0.05)
    return time.perf_counter() - began


def _run_command(plane: controlplane.ControlPlane, command: Sequence[str]) -> tuple[str, ...]:
    """Run a command to its end, and return its row."""
    began = time.perf_counter()
    log = plane.folder / "command.log"
    with log.open("wb") as output:
        full = [*processes.DRACHMA, *command, "--kubeconfig", str(plane.kubeconfig)]
        process = subprocess.Popen(full, stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
    # An exit code of 1 means findings.
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise RuntimeError(log.read_text()[-1000:])
    seconds = usage.ru_utime + usage.ru_stime
    elapsed = time.perf_counter() - began
    return f"drachma {' '.join(command)}", f"{elapsed:.1f}", f"{seconds:.1f}", f"{usage.ru_maxrss / 1024:.0f}", ""


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.largecluster", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--devices", type=int, default=10, help="of each node")
    return parser.parse_args()


if __name__ == "__main__":
    uvloop.run(main())
