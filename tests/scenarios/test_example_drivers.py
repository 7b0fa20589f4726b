"""The example drivers: every rule for drivers holds for them, and pods get what they publish."""

import asyncio
import contextlib
import importlib.util
import pathlib
import sys
import tempfile
from typing import Any

import pytest

from drachma import driver, testing
from drachma.api import manifest, node
from drachma.client import Client, patches
from drachma.driver import manifests
from drachma.driver.conformance import checks, stage, subject
from drachma.driver.conformance.apifaults import ApiFaults
from drachma.driver.conformance.report import Outcome
from drachma.driver.conformance.rules import apifaults
from drachma.driver.instance import NodeInstance, Place
from drachma.listening import addresses
from drachma.process import drivercheck, embedded
from drachma.runtime import Surroundings
from drachma.store import memory
from tests.unit.driver.conformance import faultyclient

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "drivers"
DRIVERS = {
    "gpu-sim": "Gpus",
    "mig-sim": "Partitions",
    "nic-sim": "Nics",
    "cpu": "Cores",
    "null-devices": "NullDevices",
}


def _example(folder: str) -> Any:
    """The class of an example, which is no package and not on the path."""
    (path,) = (EXAMPLES / folder).glob("*.py")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, DRIVERS[folder])


class InProcess:
    """A subject of checks that is no process: killing it leaves its sockets, as a kill does."""

    can_restart = True

    def __init__(self, of: type[driver.Driver], client: Client, place: Place) -> None:
        self._driver = of
        self._client = client
        self.place = place
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        around = Surroundings(self._client)
        async with around.informers:
            await NodeInstance(self._driver(), around, place=self.place).run()

    async def kill(self) -> None:
        await self.stop()

    async def stop(self) -> bool:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._task = None
        return True

    def problem(self) -> str:
        if self._task is None or not self._task.done():
            return ""
        return f"ended: {self._task.exception()}"


@pytest.mark.parametrize("folder", DRIVERS)
async def test_it_does_what_is_asked_of_drivers(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Driver and server are in this process: what is slow need not be so slow here.
    monkeypatch.setattr(apifaults, "SLOW_SECONDS", 0.05)
    example = _example(folder)
    with tempfile.TemporaryDirectory(prefix="e") as name:
        path = pathlib.Path(name)
        async with embedded.server(memory.MemoryStore()) as server:
            document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker"}}
            await server.client.create_document(node.Node, document)
            declared = patches.merge({"status": {"declaredFeatures": ["DRANodeAllocatableResources"]}})
            await server.client.patch(node.Node, "worker", patch=declared, subresource="status")
            place = Place(node="worker", plugins=path / "p" / example.name, registry=path / "r", cdi=path / "c")
            faults = ApiFaults()
            subject = InProcess(example, faultyclient.wrap(server.client, faults), place)
            staged = stage.Stage(
                server.client,
                subject,
                node="worker",
                registration=lambda: place.endpoints.registration if place.endpoints.registration.exists() else None,
                cdi=place.cdi,
                faults=faults,
            )
            made = await checks.run(staged, checks.ALL)
    bad = [(each.name, each.detail) for each in made.results if each.outcome in (Outcome.FAILED, Outcome.WARNED)]
    assert bad == []


def test_a_driver_that_is_a_process_is_checked_through_its_api_server() -> None:
    command = [sys.executable, str(EXAMPLES / "gpu-sim" / "gpu_sim.py")]
    made = drivercheck.check_command(command, checks.chosen(["claim-slow", "slices-conflict"]))
    assert [(each.name, each.outcome, each.detail) for each in made.results] == [
        ("claim-slow", Outcome.PASSED, ""),
        ("slices-conflict", Outcome.PASSED, ""),
    ]


def test_a_driver_that_others_start_is_checked_through_the_api_server_that_it_is_told() -> None:
    news: list[bool] = []
    with tempfile.TemporaryDirectory(prefix="d") as name:
        folder = pathlib.Path(name)
        kubeconfig, root, cdi = folder / "kubeconfig", folder / "k", folder / "cdi"
        places = {"KUBECONFIG": kubeconfig, "KUBELET_ROOT": root, "CDI_ROOT": cdi}
        environment = {"NODE_NAME": "worker", **{key: str(path) for key, path in places.items()}}
        command = [sys.executable, str(EXAMPLES / "gpu-sim" / "gpu_sim.py")]
        running = drivercheck.RunningDriver(
            socket=root / "plugins_registry" / "gpu.example.com-reg.sock",
            kubeconfig=None,
            node="worker",
            cdi=cdi,
            subject=subject.ProcessSubject(command, environment, output=folder / "output"),
        )
        made = drivercheck.check_listening(
            running,
            drivercheck.Listening(address=addresses.Address("127.0.0.1", 0), kubeconfig=kubeconfig),
            checks.chosen(["claim-refused"]),
            announce=lambda: news.append(kubeconfig.exists()),
        )
    assert news == [True]
    assert [(each.name, each.outcome, each.detail) for each in made.results] == [("claim-refused", Outcome.PASSED, "")]


POD = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: CLASS, REQUEST}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  resourceClaims: [{name: c, resourceClaimName: c}]
  containers: [{name: c, image: busybox, resources: {claims: [{name: c}]}}]
"""


@pytest.mark.parametrize(
    ("folder", "request_", "want"),
    [
        pytest.param("gpu-sim", "count: 2", ["gpu-0", "gpu-1"], id="gpu-sim"),
        pytest.param(
            "mig-sim",
            'selectors: [{cel: {expression: \'device.attributes["mig.example.com"].profile == "2g.20gb"\'}}]',
            ["gpu-0-2g-20gb-0"],
            id="mig-sim",
        ),
        pytest.param("nic-sim", "capacity: {requests: {bandwidth: 10G}}", ["nic-0"], id="nic-sim"),
        pytest.param("cpu", "count: 1", ["core-0"], id="cpu"),
        pytest.param("null-devices", "count: 1", ["null"], id="null-devices"),
    ],
)
async def test_a_pod_gets_a_device(folder: str, request_: str, want: list[str]) -> None:
    example = _example(folder)
    settings = manifests.Settings(image="image")
    documents = [each for each in manifests.documents(example, settings) if each["kind"] == "DeviceClass"]
    async with testing.cluster(profile="cpu", drivers=[example]) as c:
        await c.apply(manifest.write_yaml(documents), POD.replace("CLASS", example.name).replace("REQUEST", request_))
        running = await c.pod("p").running()
        assert [each.rpartition("/")[2].partition("/")[0] for each in running.devices] == want
