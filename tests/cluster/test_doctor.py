"""``drachma doctor`` on a real cluster: nothing invented on a healthy one, and planted faults found and repaired."""

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import controlplane, objects
from tests.scenarios import processes, wire

Document = dict[str, Any]


@pytest.fixture
def cluster(plane: controlplane.ControlPlane, admin: wire.Wire, cleared: None) -> Iterator[wire.Wire]:
    objects.create(
        admin, objects.device_class(), objects.node("n1"), objects.resource_slice("n1", 2), objects.template("one")
    )
    with plane.kube_controllers(), plane.kube_scheduler():
        objects.create(admin, objects.pod("p", template_name="one"))
        objects.wait_for_node(admin, "p")
        yield admin


def _doctor(plane: controlplane.ControlPlane, *options: str) -> tuple[int, list[Document]]:
    command = [*processes.DRACHMA, "doctor", "--kubeconfig", str(plane.kubeconfig), "-o", "json", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    findings: list[Document] = json.loads(done.stdout)["findings"]
    return done.returncode, findings


@pytest.mark.usefixtures("cluster")
def test_a_healthy_cluster_has_no_findings(plane: controlplane.ControlPlane) -> None:
    assert _doctor(plane) == (0, [])


def test_planted_faults_are_found_and_repaired(plane: controlplane.ControlPlane, cluster: wire.Wire) -> None:
    # A second slice of the pool says that there are two more, which never come.
    incomplete = objects.resource_slice("n1", 1)
    incomplete["metadata"]["name"] = "n1-more"
    incomplete["spec"]["pool"] = {"name": "n1-more", "generation": 1, "resourceSliceCount": 3}
    hopeless = objects.device_class("hopeless")
    hopeless["spec"]["selectors"] = [{"cel": {"expression": "device.driver == 'nobody.example.com'"}}]
    wanting = objects.claim("wanting")
    wanting["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "hopeless"
    objects.create(cluster, incomplete, hopeless, wanting)
    # A reservation for a pod that does not exist.
    objects.create(cluster, objects.claim("left"))
    results = [{"request": "gpu", "driver": objects.DRIVER, "pool": "n1", "device": "gpu-1"}]
    pod = {"resource": "pods", "name": "gone", "uid": "00000000-0000-0000-0000-000000000000"}
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": [pod]}
    objects.merge(cluster, f"{objects.CLAIMS}/left/status", {"status": status})
    code, findings = _doctor(plane)
    checks = {each["check"] for each in findings}
    assert {"pool-incomplete", "class-without-devices"} <= checks, findings
    assert code == 1
