"""Extension API servers behind this one: conditions of APIServices, requests that are passed on, and discovery."""

import asyncio
import base64
import pathlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from drachma.server.access import certificates
from tests import patience
from tests.unit.server.client import Client

APISERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
NAME = "v1.metrics.example.com"
GROUP = "/apis/metrics.example.com"
RESOURCES = {
    "kind": "APIResourceList",
    "groupVersion": "metrics.example.com/v1",
    "resources": [
        {"name": "loads", "singularName": "load", "namespaced": True, "kind": "Load", "verbs": ["get", "list"]},
        {"name": "loads/peak", "singularName": "", "namespaced": True, "kind": "Peak", "verbs": ["get"]},
    ],
}


def api_service(**spec: Any) -> dict[str, Any]:
    service = {"name": "ext", "namespace": "default", "port": 443}
    priorities = {"groupPriorityMinimum": 100, "versionPriority": 10}
    full = {"group": "metrics.example.com", "version": "v1", "service": service, **priorities, **spec}
    return {"metadata": {"name": NAME}, "spec": {key: value for key, value in full.items() if value is not None}}


async def _create(server: Client, path: str, document: dict[str, Any]) -> Any:
    answer = await server.call("POST", path, document)
    assert answer.code == 201, answer.body
    return answer.body


async def _expose(server: Client, port: int) -> None:
    """Create the service of the extension API server, and its endpoint."""
    ports = [{"name": "https", "port": 443}]
    spec = {"ports": ports, "clusterIP": "10.96.0.77"}
    await _create(server, "/api/v1/namespaces/default/services", {"metadata": {"name": "ext"}, "spec": spec})
    slice_ = {
        "metadata": {"name": "ext", "labels": {"kubernetes.io/service-name": "ext"}},
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": port}],
        "endpoints": [{"addresses": ["127.0.0.1"]}],
    }
    await _create(server, "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice_)


async def _condition(server: Client, *, reason: str) -> dict[str, Any]:
    """Return the condition of the APIService once it has a reason."""

    async def look() -> dict[str, Any]:
        answer = await server.call("GET", f"{APISERVICES}/{NAME}")
        (condition,) = answer.body["status"].get("conditions") or [{}]
        return dict(condition)

    return await patience.until_async(look, lambda each: each.get("reason") == reason, what=reason)


@asynccontextmanager
async def _extension(folder: pathlib.Path, answers: dict[str, bytes]) -> AsyncIterator[tuple[int, str, list[bytes]]]:
    """Serve documents over TLS; yield the port, the authority, and the heads of all requests."""
    files = certificates.ensure(folder, hosts=["ext.default.svc"], now=datetime.now(UTC))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.certificate, files.key)
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        heads.append(head)
        body = answers.get(head.split(b" ")[1].decode().partition("?")[0])
        code = b"404 Not Found" if body is None else b"200 OK"
        body = body or b"{}"
        writer.write(b"HTTP/1.1 " + code + b"\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        await writer.drain()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    async with listener:
        yield listener.sockets[0].getsockname()[1], files.authority.read_text(), heads


async def test_requests_reach_the_extension_server_with_their_user(server: Client, tmp_path: pathlib.Path) -> None:
    answers = {f"{GROUP}/v1": msgspec.json.encode(RESOURCES), f"{GROUP}/v1/namespaces/n/loads": b'{"items":[]}'}
    async with _extension(tmp_path, answers) as (port, authority, heads):
        await _expose(server, port)
        bundle = base64.b64encode(authority.encode()).decode()
        await _create(server, APISERVICES, api_service(caBundle=bundle))
        condition = await _condition(server, reason="Passed")
        assert (condition["status"], condition["message"]) == ("True", "all checks passed")
        headers = {"x-remote-user": "evil"}
        answer = await server.raw("GET", f"{GROUP}/v1/namespaces/n/loads?limit=5", b"", headers=headers)
        assert (answer.code, answer.data) == (200, b'{"items":[]}')
        assert heads[-1].startswith(b"GET /apis/metrics.example.com/v1/namespaces/n/loads?limit=5 HTTP/1.1\r\n")
        assert b"x-remote-user: kubernetes-admin" in heads[-1]
        assert b"x-remote-group: system:masters" in heads[-1]
        assert b"evil" not in heads[-1]
        acting = {"impersonate-user": "ann", "impersonate-extra-example.com%2Fz\u00fc%20": "x"}
        await server.raw("GET", f"{GROUP}/v1/namespaces/n/loads", b"", headers=acting)
        assert b"x-remote-user: ann" in heads[-1]
        assert b"x-remote-extra-example.com%2fz" in heads[-1].lower()
        assert b"authorization" not in heads[-1].lower()
        missing = await server.raw("GET", f"{GROUP}/v1/namespaces/n/others", b"")
        assert missing.code == 404
    await server.app.close()


async def test_discovery_has_the_groups_of_extension_servers(server: Client, tmp_path: pathlib.Path) -> None:
    async with _extension(tmp_path, {f"{GROUP}/v1": msgspec.json.encode(RESOURCES)}) as (port, _, _):
        await _expose(server, port)
        await _create(server, APISERVICES, api_service(insecureSkipTLSVerify=True))
        await _condition(server, reason="Passed")
    version = {"groupVersion": "metrics.example.com/v1", "version": "v1"}
    listed = (await server.call("GET", "/apis")).body["groups"]
    assert listed[-1] == {"name": "metrics.example.com", "versions": [version], "preferredVersion": version}
    group = (await server.call("GET", GROUP)).body
    assert group == {"kind": "APIGroup", "apiVersion": "v1", **listed[-1]}
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    aggregated = (await server.call("GET", "/apis", headers={"accept": accept})).body["items"][-1]
    (served,) = aggregated["versions"]
    (loads,) = served["resources"]
    assert (served["freshness"], loads["resource"], loads["scope"]) == ("Current", "loads", "Namespaced")
    assert [each["subresource"] for each in loads["subresources"]] == ["peak"]
    await server.app.close()


async def test_an_authority_that_did_not_sign_the_certificate(server: Client, tmp_path: pathlib.Path) -> None:
    async with _extension(tmp_path / "a", {f"{GROUP}/v1": b"{}"}) as (port, _, heads):
        other = certificates.ensure(tmp_path / "b", hosts=["x"], now=datetime.now(UTC)).authority.read_bytes()
        await _expose(server, port)
        await _create(server, APISERVICES, api_service(caBundle=base64.b64encode(other).decode()))
        condition = await _condition(server, reason="FailedDiscoveryCheck")
        assert "tls: " in condition["message"]
        assert heads == []
    answer = await server.raw("GET", f"{GROUP}/v1", b"")
    assert (answer.code, answer.data) == (503, b"service unavailable\n")
    await server.app.close()


@pytest.mark.parametrize(
    ("port", "reason", "want"),
    [
        pytest.param(443, "ServiceNotFound", 'service/ext in "default" is not present', id="no-service"),
        pytest.param(8443, "ServicePortError", 'service/ext in "default" is not listening on port 8443', id="port"),
        pytest.param(
            443, "EndpointsNotFound", 'cannot find endpointslices for service/ext in "default"', id="no-endpoints"
        ),
    ],
)
async def test_conditions_in_upstreams_words(server: Client, port: int, reason: str, want: str) -> None:
    if reason != "ServiceNotFound":
        spec = {"ports": [{"name": "https", "port": 443}], "clusterIP": "10.96.0.77"}
        await _create(server, "/api/v1/namespaces/default/services", {"metadata": {"name": "ext"}, "spec": spec})
    service = {"name": "ext", "namespace": "default", "port": port}
    await _create(server, APISERVICES, api_service(service=service))
    condition = await _condition(server, reason=reason)
    assert (condition["status"], condition["message"]) == ("False", want)
    await server.app.close()


async def test_local_services_are_available_and_groups_of_this_server_stay_its_own(server: Client) -> None:
    local = await _create(server, APISERVICES, api_service(service=None))
    (condition,) = local["status"]["conditions"]
    assert (condition["reason"], condition["message"]) == ("Local", "Local APIServices are always available")
    own = api_service(group="apps")
    await _create(server, APISERVICES, {**own, "metadata": {"name": "v1.apps"}})
    assert (await server.call("GET", "/apis/apps/v1")).body["groupVersion"] == "apps/v1"
    await server.app.close()


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(
            {"version": "v2"},
            'metadata.name: Invalid value: "v1.metrics.example.com": must be `spec.version+"."+spec.group`: '
            '"v2.metrics.example.com"',
            id="name",
        ),
        pytest.param(
            {"groupPriorityMinimum": 0},
            "spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000",
            id="group-priority",
        ),
        pytest.param(
            {"versionPriority": 1001},
            "spec.versionPriority: Invalid value: 1001: must be positive and less than 1000",
            id="version-priority",
        ),
        pytest.param(
            {"service": {"name": "s", "port": 443}}, "spec.service.namespace: Required value", id="no-namespace"
        ),
        pytest.param(
            {"service": {"name": "s", "namespace": "n", "port": 0}},
            "spec.service.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
            id="port",
        ),
        pytest.param(
            {"insecureSkipTLSVerify": True, "caBundle": "YQ=="},
            "spec.insecureSkipTLSVerify: Invalid value: true: may not be true if caBundle is present",
            id="trust",
        ),
        pytest.param(
            {"service": None, "caBundle": "YQ=="},
            'spec.caBundle: Invalid value: "1 bytes": local APIServices may not have a caBundle',
            id="local-bundle",
        ),
    ],
)
async def test_services_that_are_refused(server: Client, spec: dict[str, Any], want: str) -> None:
    answer = await server.call("POST", APISERVICES, api_service(**spec))
    assert answer.code == 422
    assert answer.body["message"].endswith(want)


async def test_a_table(server: Client) -> None:
    await _create(server, APISERVICES, api_service())
    await _condition(server, reason="ServiceNotFound")
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    table = (await server.call("GET", APISERVICES, headers={"accept": accept})).body
    assert table["rows"][0]["cells"][:3] == [NAME, "default/ext", "False (ServiceNotFound)"]
    await server.app.close()
