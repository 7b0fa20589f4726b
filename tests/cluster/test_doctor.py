"""``drachma doctor`` on a real cluster: nothing invented on a healthy one, and planted faults found and repaired."""

import json
import subprocess
from typing import Any

import pytest

from tests.cluster import controlplane, objects
from tests.scenarios import processes, wire

Document = dict[str, Any]


@pytest.fixture
def cluster(admin: wire.Wire, cleared: None) -> wire.Wire:
    objects.create(
        admin, objects.device_class(), objects.node("n1"), objects.resource_slice("n1", 2), objects.template("one")
    )
    return admin


def _doctor(plane: controlplane.ControlPlane, *options: str) -> tuple[int, list[Document]]:
    command = [*processes.DRACHMA, "doctor", "--kubeconfig", str(plane.kubeconfig), "-o", "json", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    findings: list[Document] = json.loads(done.stdout)["findings"]
    return done.returncode, findings


def test_a_healthy_cluster_has_no_findings(plane: controlplane.ControlPlane, cluster: wire.Wire) -> None:
    with plane.kube_controllers(), plane.kube_scheduler():
        objects.create(cluster, objects.pod("p", template_name="one"))
        objects.wait_for_node(cluster, "p")
        assert _doctor(plane) == (0, [])


def test_planted_faults_are_found_and_repaired(plane: controlplane.ControlPlane, cluster: wire.Wire) -> None:
    hopeless = objects.device_class("hopeless")
    hopeless["spec"]["selectors"] = [{"cel": {"expression": "device.driver == 'other.example.com'"}}]
    lost = objects.resource_slice("lost-node", 1)
    nowhere = objects.claim("nowhere")
    nowhere["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "absent"
    objects.create(cluster, hopeless, lost, nowhere, *map(objects.claim, ("left", "vanished", "one", "two")))
    # No controller runs, so reservations for pods that do not exist stay.
    gone = {"resource": "pods", "name": "gone", "uid": "00000000-0000-0000-0000-000000000000"}
    devices = {"left": "gpu-0", "vanished": "gpu-9", "one": "gpu-1", "two": "gpu-1"}
    for name, device in devices.items():
        result = {"request": "gpu", "driver": objects.DRIVER, "pool": "n1", "device": device}
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": [gone] if name == "left" else []}
        objects.merge(cluster, f"{objects.CLAIMS}/{name}/status", {"status": status})
    code, findings = _doctor(plane)
    assert code == 1
    assert {(each["check"], each["subject"]) for each in findings} == {
        ("class-missing", "ResourceClaim default/nowhere"),
        ("class-without-devices", "DeviceClass hopeless"),
        ("device-allocated-twice", f"device {objects.DRIVER}/n1/gpu-1"),
        ("device-not-published", "ResourceClaim default/vanished"),
        ("reservation-without-pod", "ResourceClaim default/left"),
        ("slice-orphaned", "ResourceSlice lost-node-gpus"),
    }
    _doctor(plane, "--fix", "--yes")
    left = {each["check"] for each in _doctor(plane)[1]}
    assert left.isdisjoint({"reservation-without-pod", "slice-orphaned"}), "repairs were carried out"
