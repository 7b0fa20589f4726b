"""kill -9 of components, two replicas, and an upgrade: another replica goes on, and no device is given out twice."""

from collections import Counter

import pytest

from tests import patience
from tests.cluster import controlplane, objects
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
