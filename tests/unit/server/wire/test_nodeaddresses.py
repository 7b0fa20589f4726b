"""Nodes say where they are; an address that nothing can be reached under is answered, not failed on."""

import logging
from typing import Any

import pytest

from tests.unit.server import client


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("a" * 300, id="long-label"),
        pytest.param("a." * 5000, id="long-name"),
        pytest.param("\N{LATIN SMALL LETTER SHARP S}" * 100, id="not-ascii"),
        pytest.param("a\x00b", id="null"),
        pytest.param("a b\r\nc", id="line-break"),
        pytest.param("..", id="empty-labels"),
        pytest.param("\N{ZERO WIDTH JOINER}", id="not-a-letter"),
    ],
)
@pytest.mark.parametrize("path", ["nodes/n/proxy/healthz", "namespaces/default/pods/p/log"])
async def test_an_address_that_is_no_name(address: str, path: str, caplog: pytest.LogCaptureFixture) -> None:
    server = await start([{"type": "Hostname", "address": address}])
    answer = await server.call("GET", f"/api/v1/{path}")
    assert (answer.code, answer.body["reason"]) == (400, "BadRequest")
    assert answer.body["message"].endswith("is neither an IP address nor a host name")
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("port", [65536, 2**31 - 1])
async def test_a_port_that_is_none(port: int, caplog: pytest.LogCaptureFixture) -> None:
    server = await start([{"type": "InternalIP", "address": "192.0.2.1"}], port=port)
    answer = await server.call("GET", "/api/v1/nodes/n/proxy/healthz")
    assert answer.body["message"] == f"address not allowed: node n: {port} is no port"
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


async def start(addresses: list[dict[str, str]], *, port: int = 10250) -> client.Client:
    """A server with a node that says where it is, and a pod on it."""
    server = await client.start()
    status: dict[str, Any] = {"addresses": addresses, "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}
    node = await server.call("POST", "/api/v1/nodes", {"metadata": {"name": "n"}, "status": status})
    container = {"name": "c", "image": "i"}
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [container]}}
    assert (node.code, (await server.call("POST", "/api/v1/namespaces/default/pods", pod)).code) == (201, 201)
    return server
