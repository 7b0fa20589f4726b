"""kill -9 of components and of the API server under load: another replica goes on, and no device is given out twice."""

import functools
import urllib.request
from collections import Counter

import pytest

from tests import patience, ports
from tests.cluster import churn, controlplane, objects, queues
from tests.scenarios import wire

DEVICES = 20


@pytest.fixture
def cluster(admin: wire.Wire, cleared: None) -> wire.Wire:
    objects.create(admin, objects.device_class(), objects.template("one"))
    for name in ("n0", "n1"):
        objects.create(admin, objects.node(name), objects.resource_slice(name, DEVICES // 2))
    return admin


def _bound(admin: wire.Wire) -> int:
    items = admin.call("GET", objects.PODS).body["items"]
    return sum(bool(each["spec"].get("nodeName")) for each in items)


def _check_devices(admin: wire.Wire, count: int) -> None:
    devices = objects.allocated_devices(objects.claims(admin))
    assert [device for device, times in Counter(devices).items() if times > 1] == []
    assert len(devices) == count


def test_a_scheduler_is_killed_while_it_works_and_another_replica_goes_on(
    plane: controlplane.ControlPlane, cluster: wire.Wire
) -> None:
    with plane.kube_controllers(), plane.drachma("scheduler") as first:
        first.wait_for("leads by lease")
        with plane.drachma("scheduler") as second:
            for number in range(DEVICES):
                objects.create(cluster, objects.pod(f"p{number}", template_name="one"))
            patience.until(lambda: _bound(cluster), lambda count: count >= 2, what="the first pods are bound")
            first.kill()
            patience.until(lambda: _bound(cluster), lambda count: count == DEVICES, what="all pods are bound")
            second.wait_for("leads by lease")
    _check_devices(cluster, DEVICES)


def test_controllers_are_killed_and_started_again(plane: controlplane.ControlPlane, cluster: wire.Wire) -> None:
    options = ("--controllers=resourceclaim-controller", "--leader-elect-resource-name=drachma-claims")
    with plane.kube_controllers(without="-resourceclaim-controller"), plane.kube_scheduler():
        with plane.drachma("controllers", *options) as first:
            first.wait_for("leads by lease")
            for number in range(4):
                objects.create(cluster, objects.pod(f"p{number}", template_name="one"))
            patience.until(lambda: len(objects.claims(cluster)), what="a claim is created")
            first.kill()
        with plane.drachma("controllers", *options) as again:
            patience.until(lambda: _bound(cluster), lambda count: count == 4, what="all pods are bound")
            for number in range(4):
                cluster.call("DELETE", f"{objects.PODS}/p{number}", {"gracePeriodSeconds": 0})
            patience.until(lambda: objects.claims(cluster), lambda claims: not claims, what="all claims are gone")
            again.check()


def test_kube_scheduler_takes_over_and_hands_back(plane: controlplane.ControlPlane, cluster: wire.Wire) -> None:
    def add(first: int, count: int) -> None:
        for number in range(first, first + count):
            objects.create(cluster, objects.pod(f"p{number}", template_name="one"))
        patience.until(lambda: _bound(cluster), lambda bound: bound == first + count, what="all pods are bound")

    with plane.kube_controllers():
        with plane.drachma("scheduler", "--no-leader-elect"):
            add(0, 4)
        with plane.kube_scheduler():
            add(4, 4)
        with plane.drachma("scheduler", "--no-leader-elect"):
            add(8, 4)
    _check_devices(cluster, 12)


@pytest.mark.skipif(not queues.DEFINITIONS.is_dir(), reason=f"Kueue's definitions absent: {queues.DEFINITIONS}")
def test_queueing_is_killed_while_it_admits_and_another_replica_goes_on(
    plane: controlplane.ControlPlane, cluster: wire.Wire
) -> None:
    queues.install_definitions(cluster)
    objects.create_if_absent(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}})
    queues.create_queue(cluster, "killed")
    with plane.kube_controllers(), plane.drachma("queueing") as first:
        first.wait_for("leads by lease")
        with (
            plane.drachma("queueing") as second,
            churn.JobChurn(plane, queue="killed").running() as load,
        ):
            second.wait_for("waiting for lease")
            load.wait_for(10)
            first.kill()
            load.wait_for(10)
            second.wait_for("leads by lease")


def test_the_api_server_is_killed_under_load(plane: controlplane.ControlPlane, cluster: wire.Wire) -> None:
    """Components wait for the API server, and go on with its new process without a restart of their own."""
    options = ("--controllers=resourceclaim-controller", "--no-leader-elect")
    with (
        plane.kube_controllers(without="-resourceclaim-controller"),
        plane.drachma("controllers", *options) as controllers,
        plane.drachma("scheduler", "--no-leader-elect") as scheduler,
    ):
        for number in range(4):
            objects.create(cluster, objects.pod(f"before-{number}", template_name="one"))
        patience.until(lambda: _bound(cluster), what="a pod is bound")
        plane.kill_server()
        plane.restart_server()
        with wire.Wire(plane) as admin:
            for number in range(4):
                objects.create(admin, objects.pod(f"after-{number}", template_name="one"))
            patience.until(lambda: _bound(admin), lambda count: count == 8, what="all pods are bound")
            _check_devices(admin, 8)
            for document in objects.claims(admin):
                pod = document["metadata"]["ownerReferences"][0]["name"]
                admin.call("DELETE", f"{objects.PODS}/{pod}", {"gracePeriodSeconds": 0})
            patience.until(lambda: objects.claims(admin), lambda left: not left, what="all claims are gone")
        scheduler.check()
        controllers.check()


def _page(program: controlplane.Program, url: str, token: str = "") -> str:
    """Return the answer of a component, or why there is none yet."""
    program.check()
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return str(answer.read().decode())
    except OSError as error:
        return str(error)


def test_an_exporter_is_killed_and_counts_again(plane: controlplane.ControlPlane, cluster: wire.Wire) -> None:
    objects.create(cluster, objects.claim("waits"))
    want = 'drachma_resource_claims{namespace="default",state="pending"} 1.0'
    with ports.reserved() as port:
        for _ in range(2):
            with plane.drachma("exporter", f"--metrics-port={port}", "--interval=1") as exporter:
                patience.until(
                    functools.partial(_page, exporter, f"http://127.0.0.1:{port}/metrics"),
                    lambda text: want in text,
                    what="the claim is counted",
                )


def test_a_dashboard_is_killed_and_serves_again(plane: controlplane.ControlPlane, cluster: wire.Wire) -> None:
    objects.create(cluster, objects.pod("shown"))
    with ports.reserved() as port:
        for _ in range(2):
            with plane.drachma("dashboard", f"--listen=127.0.0.1:{port}", "--sign-in") as dashboard:
                patience.until(
                    functools.partial(_page, dashboard, f"http://127.0.0.1:{port}/pods", plane.token),
                    lambda text: "/pods/default/shown" in text,
                    what="the page has the pod",
                )
