"""Layouts of a cluster: each component a process of its own, or the control plane in one process.

Both have two nodes with an SDK driver each. Every component reaches the API server through a partition of its own.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import pathlib
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import yaml

from bench.soak import components, faults, manifests
from bench.soak.components import Component
from bench.soak.wire import Wire

LAYOUTS: Final = ("separate", "up")
SERVERS: Final = ("apiserver", "up")

_ROOT: Final = pathlib.Path(__file__).parents[2]
_DRIVER: Final = _ROOT / "examples" / "drivers" / "gpu-sim" / "gpu_sim.py"
_NODES: Final = ("worker-0", "worker-1")
"""Names of nodes; simulated machines of ``up`` are called node-0 and so on."""

_GATES: Final = ("--feature-gates", "GenericWorkload=true")
_START_SECONDS: Final = 120.0
_DATA_MEBIBYTES: Final = 512
_NODE_MEBIBYTES: Final = 16


class Plane:
    """Running cluster of one layout."""

    def __init__(self, folder: pathlib.Path, layout: str, *, with_disks: bool, with_clocks: bool) -> None:
        self.layout = layout
        self.folder = folder
        self.components: list[Component] = []
        self.client_partition: faults.Partition
        self._with_disks = with_disks
        self._with_clocks = with_clocks
        self._port = _free_port()
        self._disks: list[faults.Disk] = []
        self._partitions: list[faults.Partition] = []
        self._supervision: asyncio.Task[None]
        self._tokens = {name: secrets.token_hex(16) for name in _NODES}
        self._logs = folder / "logs"

    @property
    def server(self) -> Component:
        return next(each for each in self.components if each.name in SERVERS)

    def named(self, name: str) -> Component:
        return next(each for each in self.components if each.name == name)

    def partitions(self, component: Component) -> Sequence[faults.Partition]:
        """Return what to close so that a component is cut off; for a server that is the way of all clients."""
        if component is self.server:
            return self._partitions
        return (component.partition,) if component.partition is not None else ()

    async def start(self) -> None:
        """Start all components, install definitions and fixtures, and wait until nodes are there."""
        self._logs.mkdir(parents=True, exist_ok=True)
        tokens = self.folder / "tokens.csv"
        lines = [f'{token},system:node:{name},{name},"system:nodes"' for name, token in self._tokens.items()]
        tokens.write_text("\n".join(lines))
        self.client_partition = await self._add_partition()
        await self._start_server(("--token-auth-file", str(tokens)))
        async with self.connect() as wire:
            if self.layout == "separate":
                for document in manifests.definitions():
                    await _create(wire, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", document)
                await self._start_control_plane()
            for path, document in manifests.fixtures():
                await _create(wire, path, document)
            for name in _NODES:
                await self._start_node(name)
            self._supervision = asyncio.create_task(components.supervise(self.components))
            await self._await_slices(wire)

    @contextlib.asynccontextmanager
    async def connect(self, *, is_direct: bool = True) -> AsyncIterator[Wire]:
        """Reach the API server as its administrator, past all partitions or through that of clients."""
        content = yaml.safe_load((self.folder / "admin.yaml").read_text())
        authority = base64.b64decode(content["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        port = self._port if is_direct else self.client_partition.port
        async with Wire(f"https://127.0.0.1:{port}", content["users"][0]["user"]["token"], authority) as wire:
            yield wire

    async def end(self) -> None:
        """Kill everything that was started."""
        if hasattr(self, "_supervision"):
            self._supervision.cancel()
        for component in self.components:
            component.resume()
            component.kill()
        for partition in self._partitions:
            await partition.end()
        for disk in self._disks:
            disk.remove()

    async def _start_server(self, options: Sequence[str]) -> None:
        name = "apiserver" if self.layout == "separate" else "up"
        data = self._add_disk(name, mebibytes=_DATA_MEBIBYTES)
        folder = self._folder(name, data)
        command = [*components.DRACHMA, name, "--data", str(folder / "data"), "--listen", f"127.0.0.1:{self._port}"]
        command += ["--kubeconfig-out", str(self.folder / "admin.yaml"), *_GATES, *options]
        if name == "up":
            command += ["--queueing", "--queueing-config", str(self._write_configuration()), "--nodes", "1"]
        component = self._add(name, command, disk=data)
        component.start()
        await self._await_server(component)

    async def _start_control_plane(self) -> None:
        commands = {
            "controllers": ("--no-leader-elect", *_GATES),
            "scheduler": ("--no-leader-elect", "--gangs"),
            "queueing": ("--no-leader-elect", "--queueing-config", str(self._write_configuration())),
        }
        for name, options in commands.items():
            partition = await self._add_partition()
            kubeconfig = self._write_kubeconfig(name, partition.port)
            command = [*components.DRACHMA, name, "--kubeconfig", str(kubeconfig), *options]
            self._add(name, command, partition=partition).start()

    async def _start_node(self, node: str) -> None:
        """Start the agent and the driver of a node; components are called by what they are."""
        name, driver = node.replace("worker", "node"), node.replace("worker", "driver")
        disk = self._add_disk(name, mebibytes=_NODE_MEBIBYTES)
        root = self._folder(name, disk) / "root"
        root.mkdir()
        partition = await self._add_partition()
        kubeconfig = self._write_kubeconfig(name, partition.port, token=self._tokens[node])
        command = [*components.DRACHMA, "node", "--name", node, "--root", str(root), "--kubeconfig", str(kubeconfig)]
        command += ["--listen", "127.0.0.1:0", "--cdi-dir", str(root / "cdi"), *_GATES]
        self._add(name, command, partition=partition, disk=disk).start()
        driver_partition = await self._add_partition()
        driver_kubeconfig = self._write_kubeconfig(driver, driver_partition.port)
        command = [sys.executable, str(_DRIVER), "run", "--kubeconfig", str(driver_kubeconfig), "--node-name", node]
        command += ["--root-dir", str(root), "--cdi-dir", str(root / "cdi")]
        self._add(driver, command, partition=driver_partition, disk=disk).start()

    def _add(
        self,
        name: str,
        command: Sequence[str],
        *,
        partition: faults.Partition | None = None,
        disk: faults.Disk | None = None,
    ) -> Component:
        clock = faults.Clock(self.folder / f"{name}.clock") if self._with_clocks else None
        component = Component(name, command, logs=self._logs, partition=partition, disk=disk, clock=clock)
        self.components.append(component)
        return component

    def _add_disk(self, name: str, *, mebibytes: int) -> faults.Disk | None:
        if not self._with_disks:
            return None
        disk = faults.Disk(self.folder / f"{name}.img", self.folder / name, mebibytes=mebibytes)
        self._disks.append(disk)
        return disk

    def _folder(self, name: str, disk: faults.Disk | None) -> pathlib.Path:
        folder = self.folder / name if disk is None else disk.folder
        folder.mkdir(exist_ok=True)
        return folder

    async def _add_partition(self) -> faults.Partition:
        partition = await faults.Partition(self._port).serve()
        self._partitions.append(partition)
        return partition

    def _write_kubeconfig(self, name: str, port: int, *, token: str = "") -> pathlib.Path:
        content: dict[str, Any] = yaml.safe_load((self.folder / "admin.yaml").read_text())
        content["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
        if token:
            content["users"][0]["user"] = {"token": token}
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(yaml.safe_dump(content))
        return path

    def _write_configuration(self) -> pathlib.Path:
        path = self.folder / "queueing.yaml"
        path.write_text(yaml.safe_dump(manifests.CONFIGURATION))
        return path

    async def _await_server(self, component: Component) -> None:
        async with asyncio.timeout(_START_SECONDS):
            while not (self.folder / "admin.yaml").exists():
                await asyncio.sleep(0.1)
            async with self.connect() as wire:
                while (await wire.call("GET", "/readyz")).code != 200:
                    await asyncio.sleep(0.1)

    async def _await_slices(self, wire: Wire) -> None:
        """Wait until drivers have published the devices of all nodes."""
        wanted = len(_NODES)
        async with asyncio.timeout(_START_SECONDS):
            while True:
                answer = await wire.call("GET", "/apis/resource.k8s.io/v1/resourceslices")
                slices = answer.document.get("items", ())
                if sum(each["spec"]["driver"] == manifests.DRIVER for each in slices) >= wanted:
                    return
                await asyncio.sleep(0.2)


async def _create(wire: Wire, path: str, document: dict[str, Any]) -> None:
    """Create an object; a kind that was just defined may take a moment to be served."""
    for _ in range(100):
        answer = await wire.call("POST", path, document)
        if answer.code in (201, 409):
            return
        await asyncio.sleep(0.1)
    raise RuntimeError(f"{path}: {answer.code} {answer.document.get('message')}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
