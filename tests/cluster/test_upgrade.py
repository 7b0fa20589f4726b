"""Upgrade of each component from the last release under load, replica by replica, and back.

Without the history of this repository, which has the last release, the tests are skipped.
"""

import contextlib
import urllib.request
from collections.abc import Iterator, Sequence

import pytest

from tests import patience, ports
from tests.cluster import churn, controlplane, objects, queues, releases
from tests.scenarios import wire

DEVICES = 20


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the source folder of the last release."""
    return releases.unpack(tmp_path_factory.mktemp("old"))


@pytest.fixture
def cluster(admin: wire.Wire, cleared: None) -> wire.Wire:
    objects.create(admin, objects.device_class(), objects.template("one"))
    for name in ("n0", "n1"):
        objects.create(admin, objects.node(name), objects.resource_slice(name, DEVICES // 2))
    return admin


class Replicas:
    """Two replicas of a component, which are replaced one by one as a Deployment does."""

    def __init__(self, plane: controlplane.ControlPlane, component: str, options: Sequence[str]) -> None:
        self._plane = plane
        self._component = component
        self._options = options
        self._running: list[controlplane.Program] = []
        self._ports = contextlib.ExitStack()

    def start(self, source: str) -> None:
        """Start a replica of a version, and wait until it is ready."""
        port = self._ports.enter_context(ports.reserved())
        options = (*self._options, f"--metrics-port={port}")
        program = self._plane.start_drachma(self._component, *options, source=source)
        self._running.append(program)

        def look() -> str:
            program.check()
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
                    return "ok" if answer.status == 200 else str(answer.status)
            except OSError as error:
                return str(error)

        patience.until(look, lambda seen: seen == "ok", what=f"{self._component} is ready")

    def replace(self, source: str, load: churn.Churn) -> None:
        """Replace both replicas by those of a version, while the load goes on."""
        for _ in range(2):
            self.start(source)
            load.wait_for(3)
            self._running.pop(0).terminate()
            load.wait_for(10)
        for each in self._running:
            each.check()

    def kill(self) -> None:
        for each in self._running:
            each.kill()
        self._ports.close()


@contextlib.contextmanager
def _replicas(plane: controlplane.ControlPlane, old: str, component: str, *options: str) -> Iterator[Replicas]:
    replicas = Replicas(plane, component, options)
    try:
        for _ in range(2):
            replicas.start(old)
        yield replicas
    finally:
        replicas.kill()


def _upgrade_and_back(replicas: Replicas, load: churn.Churn, old: str) -> None:
    load.wait_for(10)
    replicas.replace(releases.NEW, load)
    replicas.replace(old, load)


def test_the_scheduler(plane: controlplane.ControlPlane, cluster: wire.Wire, old: str) -> None:
    with (
        plane.kube_controllers(),
        _replicas(plane, old, "scheduler") as replicas,
        churn.PodChurn(plane, limit=DEVICES - 4).running() as load,
    ):
        _upgrade_and_back(replicas, load, old)


def test_controllers(plane: controlplane.ControlPlane, cluster: wire.Wire, old: str) -> None:
    names = "resourceclaim-controller,garbage-collector-controller"
    options = (f"--controllers={names}", "--leader-elect-resource-name=drachma-upgrade")
    without = ",".join(f"-{name}" for name in names.split(","))
    with (
        plane.kube_controllers(without=without),
        plane.kube_scheduler(),
        _replicas(plane, old, "controllers", *options) as replicas,
        churn.PodChurn(plane, limit=DEVICES - 4).running() as load,
    ):
        _upgrade_and_back(replicas, load, old)


@pytest.mark.skipif(not queues.DEFINITIONS.is_dir(), reason=f"Kueue's definitions absent: {queues.DEFINITIONS}")
def test_queueing(plane: controlplane.ControlPlane, cluster: wire.Wire, old: str) -> None:
    queues.install_definitions(cluster)
    objects.create_if_absent(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}})
    queues.create_queue(cluster, "upgrade")
    with (
        plane.kube_controllers(),
        _replicas(plane, old, "queueing") as replicas,
        churn.JobChurn(plane, queue="upgrade").running() as load,
    ):
        _upgrade_and_back(replicas, load, old)
