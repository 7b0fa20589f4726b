"""The node agent on a real control plane, with upstream's scheduler and controllers and a driver made with the SDK."""

import contextlib
import pathlib
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

from tests import patience
from tests.cluster import controlplane, objects
from tests.scenarios import wire

EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "drivers" / "gpu-sim" / "gpu_sim.py"
NODE = controlplane.NODE


class Machine:
    """Folders of a machine, and its programs."""

    def __init__(self, plane: controlplane.ControlPlane, folder: pathlib.Path) -> None:
        self._plane = plane
        self._root = folder / "root"
        self.cdi = folder / "cdi"
        self.cdi.mkdir()

    def agent(self) -> contextlib.AbstractContextManager[controlplane.Program]:
        """Run the node agent, with the identity of its node, until the end of the block."""
        kubeconfig = self._plane.write_kubeconfig(NODE, controlplane.NODE_TOKEN)
        options = (f"--name={NODE}", f"--root={self._root}", "--listen=127.0.0.1:0", f"--cdi-dir={self.cdi}")
        return self._plane.drachma("node", *options, kubeconfig=kubeconfig)

    def driver(self) -> contextlib.AbstractContextManager[controlplane.Program]:
        """Run the example driver until the end of the block."""
        options = ("--node-name", NODE, "--root-dir", str(self._root), "--cdi-dir", str(self.cdi))
        command = [sys.executable, str(EXAMPLE), "run", "--kubeconfig", str(self._plane.kubeconfig), *options]
        return self._plane.running("driver", command)


@pytest.fixture
def machine(plane: controlplane.ControlPlane) -> Iterator[Machine]:
    # Paths of sockets are short.
    with tempfile.TemporaryDirectory(prefix="drachma-") as folder:
        yield Machine(plane, pathlib.Path(folder))


@pytest.fixture
def cluster(plane: controlplane.ControlPlane, admin: wire.Wire, cleared: None) -> Iterator[wire.Wire]:
    objects.create(admin, objects.device_class(), objects.template("one"))
    with plane.kube_controllers(has_agents=True), plane.kube_scheduler():
        yield admin


def _status(admin: wire.Wire, pod: str) -> dict[str, Any]:
    status: dict[str, Any] = admin.call("GET", f"{objects.PODS}/{pod}").body.get("status", {})
    return status


def _wait_for_phase(admin: wire.Wire, pod: str, phase: str) -> None:
    patience.until(lambda: _status(admin, pod), lambda seen: seen.get("phase") == phase, what=f"{pod} is {phase}")


def _wait_for_health(admin: wire.Wire, pod: str, health: str) -> None:
    def look() -> list[str]:
        containers = _status(admin, pod).get("containerStatuses", ())
        reports = [each for container in containers for each in container.get("allocatedResourcesStatus", ())]
        return [resource["health"] for each in reports for resource in each["resources"]]

    patience.until(look, lambda seen: seen == [health], what=f"the device of {pod} is {health}")


def test_an_agent_is_killed_and_goes_on_with_its_pods(cluster: wire.Wire, machine: Machine) -> None:
    with machine.driver() as driver:
        with machine.agent() as first:
            objects.create(cluster, objects.pod("train", template_name="one"))
            _wait_for_phase(cluster, "train", "Running")
            _wait_for_health(cluster, "train", "Healthy")
            first.kill()
        (file,) = machine.cdi.iterdir()
        assert objects.DRIVER.partition(".")[0] in file.read_text()
        started = _status(cluster, "train")["startTime"]
        with machine.agent() as second:
            objects.create(cluster, objects.pod("next", template_name="one"))
            _wait_for_phase(cluster, "next", "Running")
            assert _status(cluster, "train")["startTime"] == started, "the pod was not started again"
            for name in ("train", "next"):
                cluster.call("DELETE", f"{objects.PODS}/{name}", {"gracePeriodSeconds": 1})
            patience.until(lambda: objects.claims(cluster), lambda left: not left, what="the claims are gone")
            assert list(machine.cdi.iterdir()) == []
            second.check()
        driver.check()
