"""The autoscaler on a real control plane: killed, replaced by another version, and on an older API server.

A machine that was ordered and is not ready yet is never ordered again, whichever process leads.
"""

import contextlib
import pathlib
from collections.abc import Iterator

import pytest

from tests import patience
from tests.cluster import controlplane, nodegroup, objects, programs, releases
from tests.scenarios import wire


@pytest.fixture
def cluster(admin: wire.Wire, cleared: None) -> wire.Wire:
    objects.create(admin, objects.node("n1"))
    return admin


@pytest.fixture
def group(tmp_path: pathlib.Path) -> nodegroup.NodeGroup:
    return nodegroup.NodeGroup(tmp_path, most=3)


class Autoscalers:
    """Processes of the autoscaler that share a lease."""

    def __init__(self, plane: controlplane.ControlPlane, group: nodegroup.NodeGroup) -> None:
        self._plane = plane
        self._group = group
        self._running: list[controlplane.Program] = []

    def start(self, source: str = "") -> controlplane.Program:
        """Start a process of a version."""
        options = (
            f"--node-groups={self._group.file}",
            f"--command={self._group.command}",
            "--interval=1",
            "--unneeded=1",
            "--cooldown=1",
            "--leader-elect",
            "--leader-elect-resource-name=drachma-autoscaler-test",
        )
        program = self._plane.start_drachma("autoscaler", *options, source=source)
        self._running.append(program)
        return program

    def stop(self) -> None:
        for each in self._running:
            each.kill()

    def wait_for_orders(self, want: list[str]) -> None:
        """Wait until exactly these orders were made; another one fails at once."""

        def look() -> list[str]:
            orders = self._group.orders()
            assert orders == want[: len(orders)], f"ordered {orders}"
            return orders

        patience.until(look, lambda orders: orders == want, what=f"orders {want}")


@contextlib.contextmanager
def _autoscalers(plane: controlplane.ControlPlane, group: nodegroup.NodeGroup) -> Iterator[Autoscalers]:
    autoscalers = Autoscalers(plane, group)
    try:
        yield autoscalers
    finally:
        autoscalers.stop()


def _make_ready(admin: wire.Wire, name: str) -> None:
    node = nodegroup.machine(name, is_ready=True)
    objects.merge(admin, f"{objects.path(node)}/{name}/status", {"status": node["status"]})


def test_an_autoscaler_is_killed_while_a_machine_starts_and_another_replica_goes_on(
    plane: controlplane.ControlPlane, cluster: wire.Wire, group: nodegroup.NodeGroup
) -> None:
    with plane.kube_scheduler(), _autoscalers(plane, group) as autoscalers:
        first = autoscalers.start()
        first.wait_for("leads by lease")
        second = autoscalers.start()
        second.wait_for("waiting for lease")
        objects.create(cluster, nodegroup.large_pod("large"))
        autoscalers.wait_for_orders(["grow boxes 1"])
        objects.create(cluster, nodegroup.machine("box-1", is_ready=False))
        first.kill()
        second.wait_for("leads by lease")
        _make_ready(cluster, "box-1")
        assert objects.wait_for_node(cluster, "large") == "box-1"
        cluster.call("DELETE", f"{objects.PODS}/large", {"gracePeriodSeconds": 0})
        autoscalers.wait_for_orders(["grow boxes 1", "remove boxes box-1"])
        second.check()


def test_an_autoscaler_is_replaced_by_another_version_and_back(
    plane: controlplane.ControlPlane, cluster: wire.Wire, group: nodegroup.NodeGroup, tmp_path: pathlib.Path
) -> None:
    old = releases.unpack(tmp_path)
    with plane.kube_scheduler(), _autoscalers(plane, group) as autoscalers:
        leader = autoscalers.start(old)
        leader.wait_for("leads by lease")
        want = []
        for number, source in enumerate((releases.NEW, old), start=1):
            follower = autoscalers.start(source)
            objects.create(cluster, nodegroup.large_pod(f"large-{number}"))
            want.append("grow boxes 1")
            autoscalers.wait_for_orders(want)
            objects.create(cluster, nodegroup.machine(f"box-{number}", is_ready=False))
            leader.terminate()
            follower.wait_for("leads by lease")
            _make_ready(cluster, f"box-{number}")
            assert objects.wait_for_node(cluster, f"large-{number}") == f"box-{number}"
            leader = follower
        assert group.orders() == want
        leader.check()


def test_an_old_api_server(group: nodegroup.NodeGroup, tmp_path: pathlib.Path) -> None:
    programs.require(programs.OLD_API_SERVER)
    folder = tmp_path / "plane"
    folder.mkdir()
    with (
        controlplane.control_plane(folder, api_server=programs.OLD_API_SERVER, gates=(), apis="api/ga=true") as plane,
        wire.Wire(plane) as admin,
        plane.drachma("scheduler", "--no-leader-elect"),
        _autoscalers(plane, group) as autoscalers,
    ):
        objects.create(admin, objects.node("n1"))
        running = autoscalers.start()
        running.wait_for("leads by lease")
        objects.create(admin, nodegroup.large_pod("large"))
        autoscalers.wait_for_orders(["grow boxes 1"])
        objects.create(admin, nodegroup.machine("box-1", is_ready=True))
        assert objects.wait_for_node(admin, "large") == "box-1"
        running.check()
