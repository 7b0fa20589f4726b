"""Processes listen on the address that they are told, and on no other that others could reach."""

import pathlib
from typing import Any

from tests import listeners, patience
from tests.scenarios import processes, wire

ELSEWHERE = "192.0.2.7"
"""The address of a machine of another cluster, which must not be dialled."""


def _places(connection: wire.Wire) -> dict[str, tuple[str, int]]:
    """Return where nodes say that they are reached."""
    found = {}
    for each in connection.call("GET", "/api/v1/nodes").body["items"]:
        status: dict[str, Any] = each["status"]
        addresses = {entry["type"]: entry["address"] for entry in status.get("addresses", ())}
        if "InternalIP" in addresses and "daemonEndpoints" in status:
            port = status["daemonEndpoints"]["kubeletEndpoint"]["Port"]
            found[each["metadata"]["name"]] = (addresses["InternalIP"], port)
    return found


def test_a_control_plane_with_nodes_listens_on_loopback_only(tmp_path: pathlib.Path) -> None:
    options = ("--nodes", "3", "--pretend-nodes", "--queueing")
    with processes.running(tmp_path, command_name="up", options=options) as server, wire.Wire(server) as connection:
        resources = {"cpu": "8", "memory": "32Gi", "pods": "110"}
        status = {"capacity": resources, "addresses": [{"type": "InternalIP", "address": ELSEWHERE}]}
        created = connection.call("POST", "/api/v1/nodes", {"metadata": {"name": "copied"}, "status": status})
        assert created.code == 201, created.body
        places = patience.until(
            lambda: _places(connection),
            lambda seen: len(seen) == 4 and seen["copied"][0] != ELSEWHERE,
            what="all nodes say where they are",
        )
        assert len(set(places.values())) == 4
        assert len({port for _, port in places.values()}) == 1, "all nodes have one port"
        opened = listeners.listen_addresses(server.process.pid)
        assert all(address.is_loopback for address, _ in opened), opened
        assert {(str(address), port) for address, port in opened} >= set(places.values())
        for name in places:
            assert connection.call("GET", f"/api/v1/nodes/{name}/proxy/healthz").body == "ok"
            summary = connection.call("GET", f"/api/v1/nodes/{name}/proxy/stats/summary").body
            assert summary["node"]["nodeName"] == name
        assert connection.call("DELETE", "/api/v1/nodes/copied").code == 200
        patience.until(
            lambda: {str(address) for address, _ in listeners.listen_addresses(server.process.pid)},
            lambda seen: places["copied"][0] not in seen,
            what="nothing listens for a node that is gone",
        )
