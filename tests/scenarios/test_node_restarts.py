"""A control plane with nodes that is killed and started again at once, as users run it."""

import pathlib
from typing import Any

from drachma.node.simulation import hardware
from tests import patience
from tests.scenarios import processes, wire

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"


def _pod(name: str) -> dict[str, Any]:
    spec = {"nodeName": "copied", "containers": [{"name": "c", "image": "busybox"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def _phases(connection: wire.Wire) -> dict[str, str]:
    items = connection.call("GET", PODS).body["items"]
    return {each["metadata"]["name"]: each["status"].get("phase", "") for each in items}


def _heartbeat(connection: wire.Wire) -> tuple[str, str]:
    """Return the state of the node's Ready condition, and when its agent last reported it."""
    conditions = connection.call("GET", f"{NODES}/copied").body["status"].get("conditions", ())
    return next(
        ((each["status"], each["lastHeartbeatTime"]) for each in conditions if each["type"] == "Ready"), ("", "")
    )


def test_a_killed_control_plane_adopts_its_nodes_and_publishes_again(tmp_path: pathlib.Path) -> None:
    options = ("--nodes", "1", "--pretend-nodes")
    resources = {"cpu": "8", "memory": "32Gi", "pods": "110"}
    copied = {"metadata": {"name": "copied"}, "status": {"capacity": resources, "allocatable": resources}}
    server = processes.start(tmp_path, command_name="up", options=options)
    try:
        with wire.Wire(server) as connection:
            assert connection.call("POST", NODES, copied).code == 201
            patience.until(lambda: _heartbeat(connection), lambda seen: seen[0] == "True", what="the node is ready")
            assert connection.call("POST", PODS, _pod("before")).code == 201
            patience.until(
                lambda: _phases(connection), lambda seen: seen == {"before": "Running"}, what="the first pod runs"
            )
            patience.until(
                lambda: connection.call("GET", SLICES).body["items"], lambda seen: len(seen) == 2, what="slices"
            )
            connection.close()
    finally:
        server.kill()

    server = processes.start(tmp_path, command_name="up", options=(*options, "--profile", "nic"))
    try:
        with wire.Wire(server) as connection:
            assert connection.call("POST", PODS, _pod("after")).code == 201
            patience.until(
                lambda: _phases(connection),
                lambda seen: seen == {"before": "Running", "after": "Running"},
                what="pods of a node that is adopted run",
            )
            want = hardware.build("nic", 1).machines[0].slices

            def published() -> dict[str, int]:
                items = connection.call("GET", SLICES).body["items"]
                return {each["metadata"]["name"]: len(each["spec"]["devices"]) for each in items}

            all_devices = {each["metadata"]["name"]: len(each["spec"]["devices"]) for each in want}
            patience.until(published, lambda seen: seen == all_devices, what="the other profile is published")
            (name,) = all_devices
            assert connection.call("DELETE", f"{SLICES}/{name}").code == 200
            patience.until(published, lambda seen: seen == all_devices, what="a deleted slice is published again")
            connection.close()
    finally:
        server.kill()
