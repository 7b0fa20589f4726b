"""drachma's scheduler next to kube-scheduler: on devices of their own, and on the same devices."""

from collections import Counter
from collections.abc import Iterator

import pytest

from tests import patience
from tests.cluster import controlplane, objects
from tests.scenarios import wire

OWN = "drachma-scheduler"
DEVICES = 24


@pytest.fixture
def cluster(plane: controlplane.ControlPlane, admin: wire.Wire, cleared: None) -> Iterator[wire.Wire]:
    nodes = [f"n{number}" for number in range(4)]
    objects.create(admin, objects.device_class(), objects.template("one"))
    for name in nodes:
        objects.create(admin, objects.node(name), objects.resource_slice(name, DEVICES // len(nodes)))
    with plane.kube_controllers(), plane.kube_scheduler():
        yield admin


def _create_pods(admin: wire.Wire, count: int) -> None:
    for number in range(count):
        scheduler = OWN if number % 2 else "default-scheduler"
        objects.create(admin, objects.pod(f"p{number}", template_name="one", scheduler=scheduler))


def _bound(admin: wire.Wire) -> list[str]:
    items = admin.call("GET", objects.PODS).body["items"]
    live = [each for each in items if "deletionTimestamp" not in each["metadata"]]
    return sorted(each["metadata"]["name"] for each in live if each["spec"].get("nodeName"))


def _twice(admin: wire.Wire) -> list[str]:
    counts = Counter(objects.allocated_devices(objects.claims(admin)))
    return sorted(device for device, count in counts.items() if count > 1)


def test_each_schedules_its_own_pods(plane: controlplane.ControlPlane, cluster: wire.Wire) -> None:
    with plane.drachma("scheduler", f"--scheduler-name={OWN}") as own:
        own.wait_for(f"leads by lease kube-system/{OWN}")
        for number, scheduler in enumerate(("default-scheduler", OWN)):
            name = f"lone-{number}"
            objects.create(cluster, objects.pod(name, template_name="one", scheduler=scheduler))
            objects.wait_for_node(cluster, name)
        own.check()
    assert _twice(cluster) == []


def test_a_device_that_was_given_out_twice_is_taken_back(plane: controlplane.ControlPlane, cluster: wire.Wire) -> None:
    with plane.drachma("scheduler", f"--scheduler-name={OWN}", "--neighbours") as own:
        own.wait_for("leads by lease")
        _create_pods(cluster, DEVICES)
        # Pods that lose their devices are deleted and not replaced, so not all of them stay.
        patience.until(
            lambda: (_twice(cluster), len(_bound(cluster)), _waiting(cluster)),
            lambda seen: not seen[0] and not seen[2],
            what="every device is given out once, and no pod waits",
        )
        own.check()
    bound, devices = _bound(cluster), objects.allocated_devices(objects.claims(cluster))
    assert len(set(devices)) == len(devices) == len(bound)
    undone = own.log.read_text().count("undoing the later allocation")
    assert len(bound) == DEVICES - undone


def _waiting(admin: wire.Wire) -> list[str]:
    items = admin.call("GET", objects.PODS).body["items"]
    return [each["metadata"]["name"] for each in items if not each["spec"].get("nodeName")]
