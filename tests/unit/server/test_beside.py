"""Non-resource paths: discovery, version, health, metrics, authentication, limits."""

import asyncio
import datetime as dt
import re

import pytest

from drachma.server.access import authentication
from drachma.server.user import User
from drachma.server.wire import limits as requestlimits
from tests.unit.server import client
from tests.unit.server.client import CLAIMS, Client

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


async def test_version(server: Client) -> None:
    body = (await server.call("GET", "/version")).body
    assert (body["major"], body["minor"]) == ("1", "37")
    assert re.fullmatch(r"v1\.37\.0\+drachma-.*", body["gitVersion"])


async def test_discovery_in_both_forms(server: Client) -> None:
    legacy = (await server.call("GET", "/apis")).body
    assert "resource.k8s.io" in [group["name"] for group in legacy["groups"]]
    whole = await server.call("GET", "/apis", headers={"accept": f"{AGGREGATED},application/json"})
    assert whole.header("content-type") == AGGREGATED
    assert whole.body["kind"] == "APIGroupDiscoveryList"
    plain = await server.call("GET", "/apis", headers={"accept": f"application/json,{AGGREGATED}"})
    assert plain.body["kind"] == "APIGroupList"
    core = await server.call("GET", "/api", headers={"accept": AGGREGATED})
    assert core.body["items"][0]["versions"][0]["version"] == "v1"
    assert (await server.call("GET", "/api/v1/")).body["kind"] == "APIResourceList"


@pytest.mark.parametrize("path", ["/", "/healthz", "/livez", "/readyz", "/readyz/ping", "/api", "/apis/batch"])
async def test_paths_that_answer(server: Client, path: str) -> None:
    assert (await server.call("GET", path)).code == 200


@pytest.mark.parametrize("path", ["/nope", "/readyz/nope", "/healthz/", "//apis", "/apis/nope.example.com"])
async def test_paths_that_do_not(server: Client, path: str) -> None:
    answer = await server.call("GET", path)
    assert (answer.code, answer.body) == (404, "404 page not found\n")


@pytest.mark.parametrize("path", ["/apis/batch/v9", "/apis/batch/v9/jobs", "/api/v9", "/api/v9/pods"])
async def test_unknown_versions_of_known_groups(server: Client, path: str) -> None:
    answer = await server.call("GET", path)
    assert (answer.code, answer.body["reason"], answer.body["details"]) == (404, "NotFound", {})


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        pytest.param("HEAD", "/healthz", 200, id="health-answers-all"),
        pytest.param("POST", "/apis", 200, id="groups-answer-all"),
        pytest.param("HEAD", "/api", 405, id="versions-are-read"),
        pytest.param("OPTIONS", "/version", 405, id="the-version-is-read"),
        pytest.param("HEAD", "/apis/batch/v1", 405, id="resources-are-read"),
        pytest.param("HEAD", CLAIMS, 405, id="no-head-of-a-collection"),
        pytest.param("FOO", "/apis/nope", 404, id="nothing-there"),
    ],
)
async def test_methods(server: Client, method: str, path: str, code: int) -> None:
    assert (await server.call(method, path)).code == code


async def test_readiness_ends_first(server: Client) -> None:
    server.app.drain()
    ready = await server.call("GET", "/readyz?verbose")
    assert ready.code == 500
    assert "[-]shutdown failed" in ready.body
    assert (await server.call("GET", "/livez")).body == "ok"
    assert (await server.call("GET", CLAIMS)).header("connection") == "close"


async def test_metrics_count_requests(server: Client) -> None:
    await server.call("POST", CLAIMS, client.claim())
    await server.call("GET", f"{CLAIMS}/none")
    text = (await server.call("GET", "/metrics")).body
    line = (
        'apiserver_request_total{code="201",component="apiserver",dry_run="",group="resource.k8s.io",'
        'resource="resourceclaims",scope="namespace",subresource="",verb="POST",version="v1"} 1.0'
    )
    assert line in text.splitlines()
    assert re.search(r'apiserver_request_total\{code="404".*verb="GET"', text)
    assert "apiserver_request_duration_seconds_bucket" in text
    assert 'apiserver_current_inflight_requests{request_kind="mutating"} 0.0' in text


@pytest.mark.parametrize(
    ("headers", "path", "code"),
    [
        pytest.param({"authorization": ""}, CLAIMS, 401, id="nobody"),
        pytest.param({"authorization": "Bearer wrong"}, CLAIMS, 401, id="unknown-token"),
        pytest.param({"authorization": "Basic c2VzYW1l"}, CLAIMS, 401, id="another-scheme"),
        pytest.param({"authorization": ""}, "/version", 200, id="anybody-may-ask-the-version"),
        pytest.param({"authorization": ""}, "/healthz", 200, id="anybody-may-ask-for-health"),
        pytest.param({"authorization": "Bearer wrong"}, "/version", 401, id="but-not-with-a-wrong-token"),
        pytest.param({"authorization": ""}, "/metrics", 401, id="metrics-are-not-for-everybody"),
    ],
)
async def test_authentication(server: Client, headers: dict[str, str], path: str, code: int) -> None:
    answer = await server.call("GET", path, headers=headers)
    assert answer.code == code
    if code == 401:
        assert answer.body == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": "Unauthorized",
            "reason": "Unauthorized",
            "code": 401,
        }


async def test_a_client_certificate_says_who(server: Client) -> None:
    scope = server.scope("GET", CLAIMS, headers={"authorization": ""})
    shown = authentication.ClientCertificate(User(name="ann"), server.clock() + dt.timedelta(hours=1))
    scope["extensions"] = {authentication.EXTENSION: {authentication.CERTIFICATE: shown}}
    stream = client.Stream()
    await server.app(scope, stream.receive, stream.send)
    assert stream.code == 200


async def test_a_client_certificate_expires_on_an_open_connection(server: Client) -> None:
    shown = authentication.ClientCertificate(User(name="ann"), server.clock() + dt.timedelta(hours=1))
    codes = []
    for hours in (0, 2):
        server.clock.advance(3600 * hours)
        scope = server.scope("GET", CLAIMS, headers={"authorization": ""})
        scope["extensions"] = {authentication.EXTENSION: {authentication.CERTIFICATE: shown}}
        stream = client.Stream()
        await server.app(scope, stream.receive, stream.send)
        codes.append(stream.code)
    assert codes == [200, 401]


async def test_two_authorization_headers_are_refused(server: Client) -> None:
    scope = server.scope("GET", CLAIMS)
    scope["headers"] = [*scope["headers"], (b"authorization", b"Bearer other")]
    stream = client.Stream()
    await server.app(scope, stream.receive, stream.send)
    assert stream.code == 400


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
async def test_only_reading(server: Client, method: str) -> None:
    assert (await server.call(method, "/version")).code == 405


async def test_a_request_that_takes_too_long() -> None:
    server = await client.start(limits=requestlimits.Limits(request_seconds=0.01))
    scope = server.scope("POST", CLAIMS)

    async def receive() -> object:
        return await asyncio.get_running_loop().create_future()

    stream = client.Stream()
    await server.app(scope, receive, stream.send)  # type: ignore[arg-type]
    assert stream.code == 504


async def test_a_closed_store_refuses_writes_and_answers_reads(server: Client) -> None:
    await server.store.close()
    refused = await server.call("POST", CLAIMS, client.claim())
    assert (refused.code, refused.body["message"]) == (503, "the server is shutting down")
    assert (await server.call("GET", CLAIMS)).code == 200


async def test_a_query_without_end(server: Client) -> None:
    answer = await server.call("GET", f"{CLAIMS}?{'&'.join(['a=b'] * 1001)}")
    assert (answer.code, answer.body["message"]) == (400, "the query has more than 1000 parameters")
