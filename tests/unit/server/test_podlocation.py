"""Proxies to pods and services: addresses, ports, upstream's refusals, and pods that are never dialled."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from drachma.server.wire import nodeconnections, nodeproxy, nodetls
from tests.unit.server import client
from tests.unit.server.client import PODS, Client
from tests.unit.server.test_nodelocation import _listening, _node

SERVICES = "/api/v1/namespaces/default/services"
HELLO = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"


@pytest.fixture
async def nearby() -> AsyncIterator[Client]:
    """A server that may connect to loopback addresses."""
    dialer = nodeconnections.Dialer(nodetls.NodeTls(), allows_loopback=True)
    server = await client.start(nodes=nodeproxy.NodeProxy(dialer))
    yield server
    await server.store.close()


async def _pod(server: Client, *, port: int = 0, address: str = "127.0.0.1", node: str = "n1") -> None:
    made = client.pod()
    ports = [{"containerPort": port}] if port else []
    made["spec"] |= {"nodeName": node, "containers": [{"name": "c", "image": "x", "ports": ports}]}
    assert (await server.call("POST", PODS, made)).code == 201
    status = {"status": {"podIP": address, "podIPs": [{"ip": address}] if address else []}}
    kind = "application/merge-patch+json"
    assert (await server.call("PATCH", f"{PODS}/p/status", status, content_type=kind)).code == 200


async def _service(server: Client, port: int, *, target: dict[str, Any] | None) -> None:
    spec = {"ports": [{"name": "web", "port": 80}, {"name": "other", "port": 81}], "clusterIP": "10.96.0.78"}
    assert (await server.call("POST", SERVICES, {"metadata": {"name": "s"}, "spec": spec})).code == 201
    endpoint = {"addresses": ["127.0.0.1"], **({"targetRef": target} if target else {})}
    slice_ = {
        "metadata": {"name": "s", "labels": {"kubernetes.io/service-name": "s"}},
        "addressType": "IPv4",
        "ports": [{"name": "web", "port": port}],
        "endpoints": [endpoint],
    }
    path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    assert (await server.call("POST", path, slice_)).code == 201


TARGET = {"kind": "Pod", "namespace": "default", "name": "p"}


async def test_a_pod_is_asked_at_its_first_port(nearby: Client) -> None:
    async with _listening(HELLO) as (port, heads):
        await _pod(nearby, port=port)
        answer = await nearby.raw("GET", f"{PODS}/p/proxy/some/path?a=1", b"")
        named = await nearby.raw("POST", f"{PODS}/http:p:{port}/proxy/", b"{}")
    assert (answer.code, answer.data, named.code) == (200, b"hello", 200)
    assert heads[0].startswith(b"GET /some/path?a=1 HTTP/1.1\r\n")
    assert heads[1].startswith(b"POST / HTTP/1.1\r\n")
    assert b"authorization" not in heads[0].lower()


@pytest.mark.parametrize("name", ["s:web", "s:80", "http:s:web"])
async def test_a_service_is_asked_at_one_of_its_pods(nearby: Client, name: str) -> None:
    async with _listening(HELLO) as (port, heads):
        await _pod(nearby, port=port)
        await _service(nearby, port, target=TARGET)
        answer = await nearby.raw("GET", f"{SERVICES}/{name}/proxy/metrics", b"")
    assert (answer.code, answer.data) == (200, b"hello")
    assert heads[0].startswith(b"GET /metrics HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("path", "code", "want"),
    [
        pytest.param(f"{PODS}/a:b:c:d/proxy", 400, 'invalid pod request "a:b:c:d"', id="pod-name"),
        pytest.param(f"{PODS}/ftp:p:21/proxy", 400, 'invalid pod request "ftp:p:21"', id="pod-scheme"),
        pytest.param(f"{PODS}/x/proxy", 404, 'pods "x" not found', id="no-pod"),
        pytest.param(f"{SERVICES}/:s:80/proxy/", 503, 'no endpoints available for service "s"', id="other-pods"),
        pytest.param(f"{SERVICES}/s:90/proxy", 503, 'no service port 90 found for service "s"', id="no-port"),
        pytest.param(f"{SERVICES}/s:81/proxy", 503, 'no endpoints available for service "s"', id="no-endpoints"),
        pytest.param(f"{SERVICES}/x:9/proxy", 404, 'services "x" not found', id="no-service"),
    ],
)
async def test_requests_that_are_refused(nearby: Client, path: str, code: int, want: str) -> None:
    await _pod(nearby, address="10.1.2.3")
    await _service(nearby, 9, target=TARGET)
    answer = await nearby.call("GET", path)
    assert (answer.code, answer.body["message"]) == (code, want)


async def test_endpoints_that_are_no_pods_are_not_dialled(nearby: Client) -> None:
    """A user who may write EndpointSlices does not reach programs on the server's machine."""
    await _service(nearby, 9, target=None)
    answer = await nearby.call("GET", f"{SERVICES}/s:web/proxy/")
    assert (answer.code, answer.body["message"]) == (503, 'no endpoints available for service "s"')


async def test_a_pod_without_an_address(nearby: Client) -> None:
    await _pod(nearby, address="")
    answer = await nearby.call("GET", f"{PODS}/p/proxy/")
    assert (answer.code, answer.body["message"]) == (400, "address not allowed")


async def test_loopback_addresses_are_for_nodes_of_this_process(server: Client) -> None:
    await _pod(server, port=9)
    answer = await server.call("GET", f"{PODS}/p/proxy/")
    assert answer.code == 400
    assert answer.body["message"].startswith("address not allowed: node n1: 127.0.0.1 is a loopback address")


async def test_simulated_pods_are_not_dialled(nearby: Client) -> None:
    await _node(nearby, nodeInfo={"containerRuntimeVersion": "simulated://1"})
    await _pod(nearby, port=80, address="10.0.0.7")
    answer = await nearby.call("GET", f"{PODS}/p/proxy/")
    want = 'pod "p": its containers are simulated: 10.0.0.7 is not dialled'
    assert (answer.code, answer.body["message"]) == (503, want)
