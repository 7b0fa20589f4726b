"""Claims whose opaque parameters contain blanks: kube-apiserver keeps the bytes, and a write of JSON would change them.

kube-scheduler and its controllers write protobuf and never notice. drachma's components must manage these claims too,
also those that kube-scheduler has allocated.
"""

import json
from collections.abc import Iterator

import pytest

from tests import patience
from tests.cluster import controlplane, objects
from tests.scenarios import wire

PARAMETERS = {"memory": "1Gi", "sharing": {"strategy": "TimeSlicing"}}


@pytest.fixture
def cluster(plane: controlplane.ControlPlane, admin: wire.Wire, cleared: None) -> Iterator[wire.Wire]:
    objects.create(admin, objects.device_class(), objects.node("n1"), objects.resource_slice("n1", 2))
    with (
        plane.kube_controllers(without="-resourceclaim-controller") as upstream,
        plane.drachma("controllers", "--controllers=resourceclaim-controller", "--no-leader-elect") as own,
    ):
        yield admin
        upstream.check()
        own.check()


def _create_claim(admin: wire.Wire, name: str) -> None:
    document = objects.claim(name, PARAMETERS)
    body = json.dumps(document, indent=4).encode()
    assert admin.call("POST", objects.path(document), body).code == 201


def _consumers(admin: wire.Wire, name: str) -> list[str]:
    status = admin.call("GET", f"{objects.CLAIMS}/{name}").body.get("status", {})
    return [each["name"] for each in status.get("reservedFor", ())]


def _delete(admin: wire.Wire, *pods: str) -> None:
    for name in pods:
        admin.call("DELETE", f"{objects.PODS}/{name}", {"gracePeriodSeconds": 0})


def _wait_until_free(admin: wire.Wire, name: str) -> None:
    patience.until(
        lambda: admin.call("GET", f"{objects.CLAIMS}/{name}").body,
        lambda claim: "allocation" not in claim.get("status", {}) and not claim["metadata"].get("finalizers"),
        what=f"claim {name} is free",
    )


def test_a_claim_is_allocated_shared_released_and_deleted(plane: controlplane.ControlPlane, cluster: wire.Wire) -> None:
    _create_claim(cluster, "blanks")
    with plane.drachma("scheduler", "--no-leader-elect"):
        for name in ("one", "two"):
            objects.create(cluster, objects.pod(name, claim_name="blanks"))
            objects.wait_for_node(cluster, name)
        assert _consumers(cluster, "blanks") == ["one", "two"]
        _delete(cluster, "one")
        patience.until(lambda: _consumers(cluster, "blanks"), lambda names: names == ["two"], what="one is released")
        _delete(cluster, "two")
        _wait_until_free(cluster, "blanks")
    cluster.call("DELETE", f"{objects.CLAIMS}/blanks")
    assert cluster.call("GET", f"{objects.CLAIMS}/blanks").code == 404


def test_a_claim_of_kube_scheduler_is_shared_and_released(plane: controlplane.ControlPlane, cluster: wire.Wire) -> None:
    _create_claim(cluster, "theirs")
    with plane.kube_scheduler():
        objects.create(cluster, objects.pod("first", claim_name="theirs"))
        objects.wait_for_node(cluster, "first")
    with plane.drachma("scheduler", "--no-leader-elect"):
        objects.create(cluster, objects.pod("second", claim_name="theirs"))
        objects.wait_for_node(cluster, "second")
    assert _consumers(cluster, "theirs") == ["first", "second"]
    _delete(cluster, "first")
    patience.until(lambda: _consumers(cluster, "theirs"), lambda names: names == ["second"], what="first is released")
    _delete(cluster, "second")
    _wait_until_free(cluster, "theirs")
