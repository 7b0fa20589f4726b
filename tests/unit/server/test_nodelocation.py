"""Calls that nodes answer: the node, the container, upstream's refusals, and permissions."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from drachma.server.access import authentication
from drachma.server.calls import podlogoptions
from drachma.server.calls.call import Call, Target
from drachma.server.pipeline.answer import NodeEndpoint
from drachma.server.wire import nodeconnections, nodeproxy, nodetls, tunnel
from tests import ports
from tests.unit.server import client, people
from tests.unit.server.client import PODS, Client


async def _pod(server: Client, *, containers: tuple[str, ...] = ("c",), node: str = "") -> None:
    made = client.pod()
    made["spec"]["containers"] = [{"name": name, "image": "x"} for name in containers]
    if node:
        made["spec"]["nodeName"] = node
    answer = await server.call("POST", PODS, made)
    assert answer.code == 201, answer.body


async def _node(server: Client, **status: Any) -> None:
    answer = await server.call("POST", "/api/v1/nodes", {"metadata": {"name": "n1"}, "status": status})
    assert answer.code == 201, answer.body


async def test_a_pod_without_a_node_has_an_empty_log(server: Client) -> None:
    await _pod(server)
    answer = await server.raw("GET", f"{PODS}/p/log", b"")
    assert (answer.code, answer.data) == (200, b"")


@pytest.mark.parametrize(
    ("containers", "query", "want"),
    [
        pytest.param(
            ("a", "b"), "", "a container name must be specified for pod p, choose one of: [a b]", id="several"
        ),
        pytest.param(("a",), "?container=x", "container x is not valid for pod p", id="another"),
        pytest.param(("a",), "?tailLines=x", 'strconv.ParseInt: parsing "x": invalid syntax', id="no-number"),
    ],
)
async def test_logs_that_are_refused(server: Client, containers: tuple[str, ...], query: str, want: str) -> None:
    await _pod(server, containers=containers)
    answer = await server.call("GET", f"{PODS}/p/log{query}")
    assert (answer.code, answer.body["message"]) == (400, want)


@pytest.mark.parametrize(
    ("query", "want"),
    [
        pytest.param(
            {"tailLines": ["-1"]}, "tailLines: Invalid value: -1: must be greater than or equal to 0", id="tail"
        ),
        pytest.param({"limitBytes": ["0"]}, "limitBytes: Invalid value: 0: must be greater than 0", id="bytes"),
        pytest.param({"sinceSeconds": ["0"]}, "sinceSeconds: Invalid value: 0: must be greater than 0", id="since"),
        pytest.param(
            {"sinceSeconds": ["1"], "sinceTime": ["2026-01-02T03:04:05Z"]},
            "at most one of `sinceTime` or `sinceSeconds` may be specified",
            id="both",
        ),
        pytest.param({"stream": ["x"]}, 'stream: Unsupported value: "x"', id="stream"),
    ],
)
def test_options_that_contradict_rules(query: dict[str, list[str]], want: str) -> None:
    with pytest.raises(Exception, match=r"PodLogOptions \"p\" is invalid") as refused:
        podlogoptions.read(query, "p")
    assert want in str(refused.value)


async def test_streams_take_a_node_and_another_protocol(server: Client) -> None:
    await _pod(server)
    answer = await server.call("POST", f"{PODS}/p/exec?command=ls&stdout=1")
    assert (answer.code, answer.body["message"]) == (400, "pod p does not have a host assigned")
    await server.call("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
    await _node(server, addresses=[{"type": "InternalIP", "address": "127.0.0.1"}])
    await _pod(server, node="n1")
    answer = await server.call("POST", f"{PODS}/p/exec?command=ls&stdout=1")
    assert (answer.code, answer.body["message"]) == (400, "Upgrade request required")


async def test_a_node_without_an_address_cannot_be_asked(server: Client) -> None:
    await _node(server)
    answer = await server.call("GET", "/api/v1/nodes/n1/proxy/healthz")
    assert (answer.code, answer.body["message"]) == (500, "no preferred addresses found; known addresses: []")
    assert (await server.call("GET", "/api/v1/nodes/n2/proxy/healthz")).code == 404
    assert (await server.call("GET", "/api/v1/nodes/a:b:c:d/proxy/")).body["message"] == (
        'invalid node request "a:b:c:d"'
    )


async def test_who_may_only_get_may_not_reach_into_a_pod() -> None:
    server = await people.start()
    await _pod(server, node="n1")
    await people.grant(server, "bob", {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get"]})
    answer = await server.showing("bob").call("GET", f"{PODS}/p/exec?command=ls&stdout=1")
    assert answer.code == 403
    assert 'cannot create resource "pods/exec"' in answer.body["message"]
    await server.store.close()


@asynccontextmanager
async def _listening(answer: bytes) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Serve one answer to every request; yield the port and the requests."""
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listener:
        yield listener.sockets[0].getsockname()[1], heard


@pytest.fixture
async def nearby() -> AsyncIterator[Client]:
    """A server whose nodes may be at loopback addresses."""
    dialer = nodeconnections.Dialer(nodetls.NodeTls(), allows_loopback=True)
    server = await client.start(nodes=nodeproxy.NodeProxy(dialer))
    await _node(server, addresses=[{"type": "InternalIP", "address": "127.0.0.1"}])
    yield server
    await server.store.close()


async def test_what_a_node_serves_is_passed_on_without_the_clients_secrets(nearby: Client) -> None:
    said = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Own: 1\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    async with _listening(said) as (port, heard):
        answer = await nearby.raw("GET", f"/api/v1/nodes/http:n1:{port}/proxy/some/path?a=1", b"")
    assert (answer.code, answer.data) == (200, b"hello")
    assert ("x-own", "1") in answer.headers
    assert heard[0].startswith(b"GET /some/path?a=1 HTTP/1.1\r\n")
    assert b"authorization" not in heard[0].lower()


async def test_a_pod_does_not_open_the_servers_origin_to_pages(nearby: Client) -> None:
    said = b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nAccess-Control-Allow-Credentials: true\r\n\r\n"
    async with _listening(said) as (port, _):
        answer = await nearby.raw("GET", f"/api/v1/nodes/http:n1:{port}/proxy/", b"")
    assert answer.code == 200
    assert not [name for name, _ in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize(
    ("path", "want"),
    [
        pytest.param("a%0d%0aX-Evil:%201%0d%0a%0d%0aGET%20/b", b"/a%0D%0AX-Evil:%201%0D%0A%0D%0AGET%20/b", id="lines"),
        pytest.param("a%20HTTP/1.1", b"/a%20HTTP/1.1", id="space"),
        pytest.param("a%3Fb%23c", b"/a%3Fb%23c", id="marks"),
        pytest.param("%00%7f%C3%A4", b"/%00%7F%C3%A4", id="control-and-beyond-ascii"),
        pytest.param("a?x=%0d%0aX-Evil:%201", b"/a?x=%0D%0AX-Evil%3A+1", id="query"),
    ],
)
async def test_nothing_of_a_path_ends_the_line_that_a_node_reads(nearby: Client, path: str, want: bytes) -> None:
    async with _listening(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n") as (port, heard):
        answer = await nearby.raw("GET", f"/api/v1/nodes/http:n1:{port}/proxy/{path}", b"")
    assert answer.code == 200
    assert heard[0].split(b"\r\n")[0] == b"GET " + want + b" HTTP/1.1"
    assert b"\r\nX-Evil" not in heard[0]


async def test_a_header_that_ends_a_line_is_refused(nearby: Client) -> None:
    headers = {"x-own": "1\r\nX-Evil: 1"}
    answer = await nearby.raw("GET", "/api/v1/nodes/http:n1:9/proxy/", b"", headers=headers)
    assert answer.code == 400
    assert b"header 'x-own': must not have a line end in it" in answer.data


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"HTTP/1.1 99999 Odd\r\n\r\n", id="no-code"),
        pytest.param(b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n", id="no-header"),
        pytest.param(b"SSH-2.0 hello\r\n\r\n", id="no-http"),
    ],
)
async def test_an_answer_that_is_no_http_is_an_error_of_the_node(nearby: Client, said: bytes) -> None:
    async with _listening(said) as (port, _):
        answer = await nearby.call("GET", f"/api/v1/nodes/http:n1:{port}/proxy/")
    assert answer.code == 500
    assert answer.body["message"].startswith(f"error reading the answer of 127.0.0.1:{port}: ")


async def test_trailers_of_a_node_have_an_end(nearby: Client) -> None:
    ended = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n")
        with contextlib.suppress(OSError):
            while True:
                writer.write(b"x-more: " + b"y" * 10_000 + b"\r\n")
                await writer.drain()
        ended.set()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listener, asyncio.timeout(20):
        port = listener.sockets[0].getsockname()[1]
        answer = await nearby.raw("GET", f"/api/v1/nodes/http:n1:{port}/proxy/", b"")
        await ended.wait()
    assert answer.data == b"hello"
    assert not [name for name, _ in answer.headers if name == "x-more"]


async def test_a_node_that_cannot_be_reached(nearby: Client) -> None:
    with ports.reserved() as port:
        answer = await nearby.call("GET", f"/api/v1/nodes/http:n1:{port}/proxy/")
    assert answer.code == 500
    assert answer.body["message"] == f"error dialing backend: dial tcp 127.0.0.1:{port}: connect: connection refused"


@pytest.mark.parametrize("path", ["api/v1/nodes/n1/proxy/", f"{PODS[1:]}/p/log"])
async def test_a_node_at_a_loopback_address_is_not_dialled(server: Client, path: str) -> None:
    await _node(server, addresses=[{"type": "InternalIP", "address": "127.0.0.1"}])
    await _pod(server, node="n1")
    answer = await server.call("GET", f"/{path}")
    assert answer.code == 400
    assert answer.body["message"].startswith("address not allowed: node n1: 127.0.0.1 is a loopback address")


class _NoTunnel:
    """The tunnel of a request that asks for another protocol and does not get it."""


@pytest.mark.parametrize(
    ("origin", "want"),
    [
        pytest.param("https://page.example.com", 403, id="another-page"),
        pytest.param("null", 403, id="no-page"),
        # The node at the discard port does not answer, which is found out later.
        pytest.param("https://api.example.com:6443", 500, id="own-page"),
        pytest.param("", 500, id="no-browser"),
    ],
)
async def test_streams_are_not_for_pages_of_other_servers(nearby: Client, origin: str, want: int) -> None:
    await _pod(nearby, node="n1")
    with ports.reserved() as port:
        scope = nearby.scope("GET", f"/api/v1/nodes/http:n1:{port}/proxy/", headers={"origin": origin})
        scope["headers"].append((b"host", b"api.example.com:6443"))
        scope["extensions"] = {tunnel.EXTENSION: {tunnel.TUNNEL: _NoTunnel()}}
        stream = client.Stream()
        await nearby.app(scope, stream.receive, stream.send)
    assert stream.code == want


async def test_nodes_have_names_of_their_own_for_streams(server: Client) -> None:
    await _node(server, addresses=[{"type": "InternalIP", "address": "127.0.0.1"}])
    await _pod(server, node="n1")
    surface = server.app.dispatcher.surface
    found = surface.route("POST", f"{PODS}/p/exec")
    assert found is not None
    call = Call(
        user=authentication.ADMIN,
        verb="create",
        surface=surface,
        target=Target(found.resource, "v1", "default", "p", found.subresource),
        query={"command": ["ls", "-l"], "stdin": ["true"], "stdout": ["1"], "tty": ["false"]},
    )
    where = (await server.app.dispatcher.dispatch(call)).content
    assert isinstance(where, NodeEndpoint)
    assert (where.path, where.query) == ("/exec/default/p/c", "input=1&output=1&command=ls&command=-l")


async def test_the_internal_address_of_a_node_comes_before_its_host_name(server: Client) -> None:
    addresses = [{"type": "Hostname", "address": "n1.invalid"}, {"type": "InternalIP", "address": "192.0.2.7"}]
    await _node(server, addresses=addresses)
    await _pod(server, node="n1")
    where = (await server.app.dispatcher.dispatch(_log(server))).content
    assert isinstance(where, NodeEndpoint)
    assert where.host == "192.0.2.7"


def _log(server: Client) -> Call:
    surface = server.app.dispatcher.surface
    route = surface.route("GET", f"{PODS}/p/log")
    assert route is not None
    target = Target(route.resource, "v1", "default", "p", route.subresource)
    return Call(user=authentication.ADMIN, verb="get", surface=surface, target=target, query={})
