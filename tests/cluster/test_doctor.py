"""``drachma doctor`` on a real cluster: nothing invented on a healthy one, and 25 planted faults found and repaired."""

import copy
import datetime as dt
import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from drachma import doctor
from drachma.client import http
from drachma.doctor import visit
from tests.cluster import controlplane, objects
from tests.scenarios import processes, wire
from tests.unit.doctor import faults

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


WEBHOOK: Document = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingWebhookConfiguration",
    "metadata": {"name": "left-behind"},
    "webhooks": [
        {
            "name": "w.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {"service": {"namespace": "default", "name": "gone"}},
            # A group that does not exist, so that the webhook refuses nothing of this test.
            "rules": [{"apiGroups": ["x.com"], "apiVersions": ["v1"], "resources": ["xs"], "operations": ["CREATE"]}],
        }
    ],
}
OLD_KUBELET = "old-kubelet"


@pytest.fixture
def faulty(admin: wire.Wire, cleared: None) -> Iterator[list[str]]:
    """Plant all faults; return the findings that they must give."""
    documents, want = faults.combined()
    uids: dict[str, str] = {}
    # Pods come first, since reservations name their uids.
    for document in sorted(documents, key=lambda each: each["kind"] != "Pod"):
        _plant(admin, document, uids)
    old = objects.node(OLD_KUBELET)
    old["status"]["nodeInfo"] = {**dict.fromkeys(_NODE_INFO, "x"), "kubeletVersion": "v1.30.1"}
    objects.create(admin, old, WEBHOOK)
    yield [
        *want,
        "error webhook-without-endpoints: webhook w.example.com of left-behind",
        f"warning version-skew: Node {OLD_KUBELET}",
    ]
    admin.call("DELETE", f"{objects.path(WEBHOOK)}/left-behind")


_NODE_INFO = (
    *("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeProxyVersion"),
    *("operatingSystem", "architecture"),
)


def _plant(admin: wire.Wire, document: Document, uids: dict[str, str]) -> None:
    """Create an object with its status, and delete it if the fault is a deletion that does not end."""
    content = copy.deepcopy(document)
    status = content.pop("status", None) or {}
    is_deleted = content["metadata"].pop("deletionTimestamp", None) is not None
    planted_uid = content["metadata"].pop("uid")
    content["metadata"].pop("creationTimestamp")
    if content["kind"] == "Node":
        content["status"] = {**status, "capacity": status["allocatable"]}
    objects.create(admin, content)
    place = f"{objects.path(content)}/{content['metadata']['name']}"
    uids[planted_uid] = admin.call("GET", place).body["metadata"]["uid"]
    for consumer in status.get("reservedFor", ()):
        consumer["uid"] = uids.get(consumer["uid"], consumer["uid"])
    if status and content["kind"] != "Node":
        objects.merge(admin, f"{place}/status", {"status": status})
    if is_deleted:
        admin.call("DELETE", place)


async def test_25_planted_faults_are_found_and_repaired(client: http.HttpClient, faulty: list[str]) -> None:
    server_version = await client.server_version()
    # Pods, claims and pools have some minutes to settle.
    later = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    findings = doctor.examine(await visit.read(client, now=later, server_version=server_version))
    assert len(faulty) == 25
    assert sorted(f"{each.severity} {each.check}: {each.subject}" for each in findings) == sorted(faulty)
    repairs = [each.repair for each in findings if each.repair is not None]
    assert len(repairs) == 5
    for repair in repairs:
        await visit.carry_out(client, repair)
    left = doctor.examine(await visit.read(client, now=later, server_version=server_version))
    assert len(left) == 20
    assert [each.check for each in left if each.repair is not None] == []
