"""``drachma up`` as users run it: one process that serves the API, makes claims, schedules pods, and keeps it all."""

import json
import pathlib
import signal
from typing import Any

import pytest

from drachma.api import manifest
from tests import patience
from tests.scenarios import processes, wire

Document = dict[str, Any]

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "01-two-gpus-and-a-nic"
PATHS = {
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/default/pods",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
}
TEMPLATE = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one-gpu"},
    "spec": {
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}},
    },
}


def apply_example(connection: wire.Wire) -> None:
    for name in ("classes", "node", "slices", "claim", "pod"):
        for document in manifest.read((EXAMPLE / f"{name}.yaml").read_bytes()):
            create(connection, document.content)


def create(connection: wire.Wire, document: Document) -> None:
    answer = connection.call("POST", PATHS[str(document["kind"])], document)
    assert answer.code == 201, answer.body


def bound(connection: wire.Wire, name: str) -> Document:
    """The pod once it has a node; what there is of it is read first, so that nothing is missed."""
    listed = connection.call("GET", PATHS["Pod"]).body
    for each in listed["items"]:
        if each["metadata"]["name"] == name and each["spec"].get("nodeName"):
            return Document(each)
    version = listed["metadata"]["resourceVersion"]
    selector = f"fieldSelector=metadata.name%3D{name}&resourceVersion={version}"
    with_watch = connection.open("GET", f"{PATHS['Pod']}?watch=1&{selector}")
    for line in with_watch:
        event = json.loads(line)
        if event["object"].get("spec", {}).get("nodeName"):
            connection.close()
            return Document(event["object"])
    raise AssertionError(f"pod {name} did not get a node")


def a_pod(name: str) -> Document:
    container = {"name": "main", "image": "registry.example/app:1", "resources": {"claims": [{"name": "gpu"}]}}
    spec = {"containers": [container], "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


@pytest.mark.parametrize("count", ["1", "3"])
def test_pods_are_scheduled_before_and_after_a_restart(count: str, tmp_path: pathlib.Path) -> None:
    options = ("--processes", count)
    with (
        processes.running(tmp_path, command_name="up", options=options) as server,
        wire.Wire(server) as connection,
    ):
        apply_example(connection)
        pod = bound(connection, "trainer")
        claim = connection.call("GET", f"{PATHS['ResourceClaim']}/training").body
        devices = [each["device"] for each in claim["status"]["allocation"]["devices"]["results"]]
        assert devices == ["gpu-2", "gpu-3", "nic-1"]
        assert [each["name"] for each in claim["status"]["reservedFor"]] == ["trainer"]
        metric = 'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1.0'
        patience.until(lambda: connection.call("GET", "/metrics").body, lambda seen: metric in seen, what="the metric")
        connection.close()
        assert server.stop() == 0, "asked to stop, it ends well"

    with (
        processes.running(tmp_path, command_name="up", options=options) as server,
        wire.Wire(server) as connection,
    ):
        after = connection.call("GET", f"{PATHS['Pod']}/trainer").body
        assert after["metadata"]["uid"] == pod["metadata"]["uid"]
        # What was given before is still given: the next pod gets one of the other two GPUs, by a claim made for it.
        create(connection, TEMPLATE)
        create(connection, a_pod("second"))
        second = bound(connection, "second")
        name = second["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
        made = connection.call("GET", f"{PATHS['ResourceClaim']}/{name}").body
        assert made["status"]["allocation"]["devices"]["results"][0]["device"] == "gpu-0"


def test_control_c_ends_it_well(tmp_path: pathlib.Path) -> None:
    with processes.running(tmp_path, command_name="up") as server:
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(patience.SECONDS) == 0


def test_machines_are_nodes_who_may_do_what_nodes_may(tmp_path: pathlib.Path) -> None:
    options = ("--nodes", "1")
    with (
        processes.running(tmp_path, command_name="up", options=options) as server,
        wire.Wire(server) as connection,
    ):
        exactly = {"name": "gpu", "exactly": {"deviceClassName": "gpu.simulation.drachma.dev"}}
        template = {**TEMPLATE, "spec": {"spec": {"devices": {"requests": [exactly]}}}}
        create(connection, template)
        create(connection, a_pod("worker"))
        assert bound(connection, "worker")["spec"]["nodeName"] == "node-0"
        running = f"{PATHS['Pod']}?watch=1&resourceVersion=0&fieldSelector=status.phase%3DRunning"
        event = json.loads(next(iter(connection.open("GET", running))))
        assert event["object"]["metadata"]["name"] == "worker"
        connection.close()
