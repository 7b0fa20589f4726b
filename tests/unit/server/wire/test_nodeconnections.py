"""Which addresses of nodes are dialled: those that were checked, and none of the server's own machine by default."""

import asyncio
import contextlib
import datetime as dt
import pathlib
import socket
import ssl
from collections.abc import AsyncIterator
from typing import Any

import pytest

from drachma.node.endpoint import certificate
from drachma.server import status
from drachma.server.access import certificates
from drachma.server.pipeline.answer import NodeEndpoint
from drachma.server.wire import nodeconnections, nodetls

NOW = dt.datetime.now(dt.UTC)


def _where(host: str, port: int = 10250, **fields: Any) -> NodeEndpoint:
    return NodeEndpoint(node="n1", host=host, port=port, path="/", is_secure=fields.pop("is_secure", False), **fields)


async def _refusal(dialer: nodeconnections.Dialer, where: NodeEndpoint) -> str:
    with pytest.raises(status.StatusError) as refused:
        await dialer.dial(where)
    return f"{refused.value.code} {refused.value}"


@contextlib.asynccontextmanager
async def _listening(host: str = "127.0.0.1", context: Any = None) -> AsyncIterator[int]:
    accepted: set[asyncio.Task[None]] = set()

    async def drain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()

    def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.add(asyncio.ensure_future(drain(reader, writer)))

    listener = await asyncio.start_server(serve, host, 0, ssl=context)
    async with listener:
        yield listener.sockets[0].getsockname()[1]
    await asyncio.gather(*accepted, return_exceptions=True)


async def _dials(dialer: nodeconnections.Dialer, where: NodeEndpoint) -> None:
    _, writer = await dialer.dial(where)
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize(
    ("host", "want"),
    [
        pytest.param("127.0.0.1", "a loopback address", id="loopback"),
        pytest.param("127.8.9.10", "a loopback address", id="another-loopback"),
        pytest.param("::1", "a loopback address", id="loopback-v6"),
        pytest.param("::ffff:127.0.0.1", "a loopback address", id="loopback-in-v6"),
        pytest.param("localhost", "a loopback address", id="name"),
        pytest.param("2130706433", "a loopback address", id="number"),
        pytest.param("127.1", "a loopback address", id="short"),
        pytest.param("169.254.169.254", "a link-local address", id="metadata-service"),
        pytest.param("fe80::1", "a link-local address", id="link-local-v6"),
        pytest.param("224.0.0.1", "a multicast address", id="multicast"),
        pytest.param("ff02::1", "a multicast address", id="multicast-v6"),
        pytest.param("0.0.0.0", "no address of one machine", id="unspecified"),
        pytest.param("0.1.2.3", "no address of one machine", id="this-network"),
        pytest.param("::", "no address of one machine", id="unspecified-v6"),
        pytest.param("255.255.255.255", "no address of one machine", id="broadcast"),
        pytest.param("a\r\nX-Evil: 1", "neither an IP address nor a host name", id="lines"),
        pytest.param("a b", "neither an IP address nor a host name", id="space"),
        pytest.param("a" * 64, "neither an IP address nor a host name", id="long-label"),
        pytest.param("a." * 200, "neither an IP address nor a host name", id="long-name"),
        pytest.param("ä", "neither an IP address nor a host name", id="beyond-ascii"),
    ],
)
async def test_addresses_that_are_refused(host: str, want: str) -> None:
    told = await _refusal(nodeconnections.Dialer(nodetls.NodeTls()), _where(host))
    assert told.startswith("400 address not allowed: node n1: ")
    assert want in told


async def test_loopback_addresses_where_the_operator_allows_them() -> None:
    dialer = nodeconnections.Dialer(nodetls.NodeTls(), allows_loopback=True)
    async with _listening() as port:
        await _dials(dialer, _where("127.0.0.1", port))
    assert "link-local" in await _refusal(dialer, _where("169.254.169.254"))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::ffff:127.0.0.1"])
async def test_the_api_server_itself_is_never_dialled(host: str) -> None:
    async with _listening("0.0.0.0") as port:
        dialer = nodeconnections.Dialer(nodetls.NodeTls(), own_port=port, allows_loopback=True)
        assert "is this API server" in await _refusal(dialer, _where(host, port))


async def test_the_api_server_itself_is_not_dialled_at_another_address_of_its_machine() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        own = probe.getsockname()[0]
    async with _listening("0.0.0.0") as port:
        assert "is this API server" in await _refusal(
            nodeconnections.Dialer(nodetls.NodeTls(), own_port=port), _where(own, port)
        )
        await _dials(nodeconnections.Dialer(nodetls.NodeTls(), own_port=1), _where(own, port))


class _Resolver:
    """Answers of a name server, one after the other."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)

    async def __call__(self, host: str, port: int, **_: Any) -> list[Any]:
        found = self.answers.pop(0)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in found]


async def test_the_address_that_is_dialled_is_the_one_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = _Resolver(["127.0.0.1"], ["169.254.169.254"])
    async with _listening() as port:
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolver)
        dialer = nodeconnections.Dialer(nodetls.NodeTls(), allows_loopback=True)
        _, writer = await dialer.dial(_where("node.example.com", port))
        assert writer.get_extra_info("peername")[0] == "127.0.0.1"
        writer.close()
    assert resolver.answers == [["169.254.169.254"]]


async def test_all_addresses_of_a_name_must_be_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", _Resolver(["192.0.2.1", "127.0.0.1"]))
    told = await _refusal(nodeconnections.Dialer(nodetls.NodeTls()), _where("node.example.com"))
    assert "127.0.0.1 is a loopback address" in told


class _Endpoint:
    """An endpoint of this process for one node at one address."""

    def __init__(self, port: int) -> None:
        self._place = ("n1", "127.0.0.1", port)

    def serves(self, node: str, host: str, port: int) -> bool:
        return (node, host, port) == self._place


def _serving() -> certificate.ServingCertificate:
    return certificate.make("nodes", address="127.0.0.1", client_authority=b"", now=NOW)


async def test_an_endpoint_of_this_process_is_dialled_for_its_own_node_and_port() -> None:
    serving = _serving()
    local = nodeconnections.LocalEndpoints(nodetls.NodeTls())
    dialer = nodeconnections.Dialer(nodetls.NodeTls(), local=local)
    async with _listening(context=serving.context) as port, _listening() as other:
        local.add(_Endpoint(port), certificate=serving.certificate)
        where = _where("127.0.0.1", port, is_secure=True)
        await _dials(dialer, where)
        stranger = NodeEndpoint(node="n2", host="127.0.0.1", port=port, path="/")
        assert "loopback" in await _refusal(dialer, stranger)
        assert "loopback" in await _refusal(dialer, _where("127.0.0.1", other))


async def test_an_endpoint_of_this_process_must_show_its_certificate() -> None:
    local = nodeconnections.LocalEndpoints(nodetls.NodeTls())
    async with _listening(context=_serving().context) as port:
        local.add(_Endpoint(port), certificate=_serving().certificate)
        told = await _refusal(
            nodeconnections.Dialer(nodetls.NodeTls(), local=local), _where("127.0.0.1", port, is_secure=True)
        )
    assert told.startswith(f"500 error dialing backend: dial tcp 127.0.0.1:{port}: tls: ")


async def test_certificates_of_nodes_are_verified_by_an_authority(tmp_path: pathlib.Path) -> None:
    """A node needs a certificate of the authority for the dialled address."""
    files = certificates.ensure(tmp_path / "ours", hosts=["127.0.0.1"], now=NOW)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    dialer = nodeconnections.Dialer(nodetls.NodeTls(authority=files.authority), allows_loopback=True)
    async with _listening("0.0.0.0", context) as port:
        assert "tls: " in await _refusal(dialer, _where("127.0.0.2", port, is_secure=True))
        await _dials(dialer, _where("127.0.0.1", port, is_secure=True))
    async with _listening(context=_serving().context) as port:
        assert "tls: " in await _refusal(dialer, _where("127.0.0.1", port, is_secure=True))
