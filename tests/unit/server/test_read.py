"""Reading: get, list, pages, versions, forms."""

import base64
import json
from typing import Any

import pytest

from drachma.store import memory, protocol
from tests.unit.server import client
from tests.unit.server.client import CLAIMS, PODS, Client

ALL = "/apis/resource.k8s.io/v1/resourceclaims"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}


async def _claims(server: Client, *names: str) -> list[dict[str, Any]]:
    return [(await server.call("POST", CLAIMS, client.claim(name))).body for name in names]


def _names(answer: client.Answer) -> list[str]:
    return [item["metadata"]["name"] for item in answer.body["items"]]


async def test_pages_see_one_moment(server: Client) -> None:
    await _claims(server, "a", "b", "c", "d", "e")
    first = await server.call("GET", f"{ALL}?limit=2")
    assert (_names(first), first.body["metadata"]["remainingItemCount"]) == (["a", "b"], 3)
    await server.call("DELETE", f"{CLAIMS}/c")
    await _claims(server, "bb", "z")
    token = first.body["metadata"]["continue"]
    second = await server.call("GET", f"{ALL}?limit=2&continue={token}")
    third = await server.call("GET", f"{ALL}?limit=2&continue={second.body['metadata']['continue']}")
    assert (_names(second), _names(third)) == (["c", "d"], ["e"])
    assert "continue" not in third.body["metadata"]
    versions = {answer.body["metadata"]["resourceVersion"] for answer in (first, second, third)}
    assert len(versions) == 1


async def test_a_token_that_is_too_old_says_how_to_go_on() -> None:
    server = await client.start(store=memory.MemoryStore(limits=protocol.Limits(history_events=5)))
    await _claims(server, "a", "b", "c")
    token = (await server.call("GET", f"{CLAIMS}?limit=1")).body["metadata"]["continue"]
    await server.store.compact(server.store.revision)
    await _claims(server, "d")
    await server.store.compact(server.store.revision)
    expired = await server.call("GET", f"{CLAIMS}?limit=1&continue={token}")
    assert (expired.code, expired.body["reason"]) == (410, "Expired")
    rest = await server.call("GET", f"{CLAIMS}?continue={expired.body['metadata']['continue']}")
    assert _names(rest) == ["b", "c", "d"]


def _token(**content: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        pytest.param("continue=!!", 400, "invalid continue token: continue key is not valid", id="garbage"),
        pytest.param(
            f"continue={_token(v='v9', rv=1, start='a')}", 400, "does not recognize this encoded version", id="version"
        ),
        pytest.param(f"continue={_token(v='meta.k8s.io/v1', start='a')}", 400, "incorrect encoded start", id="no-rv"),
        pytest.param(f"continue={_token(v='meta.k8s.io/v1', rv=3)}", 400, "start key empty", id="no-start"),
        pytest.param(
            f"continue={_token(v='meta.k8s.io/v1', rv=3, start='../x')}", 400, "continue key is not valid", id="escape"
        ),
        pytest.param(
            f"continue={_token(v='meta.k8s.io/v1', rv=3, start='a')}&resourceVersion=5",
            400,
            "specifying resource version is not allowed when using continue",
            id="with-version",
        ),
        pytest.param("resourceVersion=x", 400, 'parsing "x": invalid syntax', id="no-version"),
        pytest.param(
            "resourceVersion=99999&resourceVersionMatch=Exact", 504, "Too large resource version", id="future"
        ),
        pytest.param("labelSelector=a%20b", 400, "unable to parse requirement", id="bad-labels"),
        pytest.param("fieldSelector=x", 400, "invalid selector", id="bad-fields"),
    ],
)
async def test_lists_refused(server: Client, query: str, code: int, message: str) -> None:
    answer = await server.call("GET", f"{CLAIMS}?{query}")
    assert answer.code == code
    assert message in answer.body["message"]


async def test_a_list_at_an_exact_version(server: Client) -> None:
    made = await _claims(server, "a", "b")
    version = made[0]["metadata"]["resourceVersion"]
    exact = await server.call("GET", f"{CLAIMS}?resourceVersion={version}&resourceVersionMatch=Exact")
    newer = await server.call("GET", f"{CLAIMS}?resourceVersion={version}&resourceVersionMatch=NotOlderThan")
    legacy = await server.call("GET", f"{CLAIMS}?resourceVersion={version}&limit=10")
    assert (_names(exact), _names(newer), _names(legacy)) == (["a"], ["a", "b"], ["a"])
    assert exact.body["metadata"]["resourceVersion"] == version


async def test_selectors(server: Client) -> None:
    for name, labels in (("a", {"app": "x"}), ("b", {"app": "y"}), ("c", {})):
        await server.call("POST", PODS, client.pod(name, labels=labels))
    queries = {
        "labelSelector=app": ["a", "b"],
        "labelSelector=app%20in%20(x)": ["a"],
        "labelSelector=!app": ["c"],
        "fieldSelector=metadata.name%3Db": ["b"],
        "fieldSelector=metadata.name%3Db&labelSelector=app%3Dx": [],
        "fieldSelector=status.phase%3DPending,spec.nodeName%3D": ["a", "b", "c"],
    }
    for query, want in queries.items():
        assert _names(await server.call("GET", f"{PODS}?{query}")) == want, query
    everywhere = await server.call("GET", "/api/v1/pods?fieldSelector=metadata.namespace%3Ddefault")
    assert len(everywhere.body["items"]) == 3


async def test_tables(server: Client) -> None:
    await _claims(server, "a")
    listed = (await server.call("GET", CLAIMS, headers=TABLE)).body
    single = (await server.call("GET", f"{CLAIMS}/a?includeObject=Object", headers=TABLE)).body
    assert listed["rows"][0]["cells"] == ["a", "pending", "0s"]
    assert single["rows"][0]["object"]["kind"] == "ResourceClaim"
    assert (await server.call("GET", f"{CLAIMS}?includeObject=Most", headers=TABLE)).code == 400


async def test_metadata_only(server: Client) -> None:
    await _claims(server, "a")
    one = {"accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
    many = {"accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
    single = (await server.call("GET", f"{CLAIMS}/a", headers=one)).body
    assert (single["kind"], set(single)) == ("PartialObjectMetadata", {"kind", "apiVersion", "metadata"})
    listed = (await server.call("GET", CLAIMS, headers=many)).body
    assert (listed["kind"], listed["items"][0]["metadata"]["name"]) == ("PartialObjectMetadataList", "a")
    assert (await server.call("GET", CLAIMS, headers=one)).code == 406
    assert (await server.call("GET", f"{CLAIMS}/a", headers=many)).code == 406


async def test_pretty(server: Client) -> None:
    answer = await server.call("GET", "/api/v1/namespaces/default?pretty=true")
    assert answer.header("content-length") != str(len(json.dumps(answer.body)))


@pytest.mark.parametrize(
    ("path", "code"),
    [
        pytest.param(f"{CLAIMS}/none", 404, id="missing"),
        pytest.param(f"{CLAIMS}/a%25b", 400, id="percent-in-a-name"),
        pytest.param(f"{CLAIMS}/a?resourceVersion=x", 400, id="bad-version"),
    ],
)
async def test_get_refused(server: Client, path: str, code: int) -> None:
    assert (await server.call("GET", path)).code == code
