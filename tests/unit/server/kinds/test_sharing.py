"""Parts that equal objects and successive writes share, without a visible difference."""

import json
from typing import Any

import pytest

from drachma.store import record
from tests.unit.server import client
from tests.unit.server.client import CLAIMS, PODS

MERGE = "application/merge-patch+json"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
ALLOCATION = {
    "devices": {"results": [{"request": "gpu", "driver": "gpu.example.com", "pool": "node-1", "device": "gpu-0"}]}
}


def _claim(name: str, **metadata: Any) -> dict[str, Any]:
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "capacity": {"requests": {"memory": "1024Mi"}}}}]
    return {
        "kind": "ResourceClaim",
        "apiVersion": "resource.k8s.io/v1",
        "metadata": {"name": name, **metadata},
        "spec": {"devices": {"requests": requests}},
    }


def _pod(name: str, **metadata: Any) -> dict[str, Any]:
    created = client.pod(name)
    created["metadata"] |= metadata
    created["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpu"}]
    return created


def _stored(server: client.Client, resource: str, name: str) -> record.Record:
    result = server.store.get(record.Key(resource, "default", name))
    assert result is not None
    return result


def _priority_class(name: str, value: int) -> dict[str, Any]:
    return {
        "kind": "PriorityClass",
        "apiVersion": "scheduling.k8s.io/v1",
        "metadata": {"name": name},
        "value": value,
        "globalDefault": True,
    }


@pytest.mark.parametrize(
    ("path", "resource", "make"),
    [
        pytest.param(PODS, "pods", _pod, id="pods"),
        pytest.param(CLAIMS, "resource.k8s.io/resourceclaims", _claim, id="claims"),
    ],
)
async def test_like_objects_share_their_spec(server: client.Client, path: str, resource: str, make: Any) -> None:
    # Decisions about names that can be words are not repeated, so these objects are decided one by one.
    names = ("one", "two")
    for name in names:
        assert (await server.call("POST", path, make(name))).code == 201
    first, second = (_stored(server, resource, name) for name in names)
    assert first.value["spec"] is second.value["spec"]
    assert first.value == json.loads(first.data)


@pytest.mark.parametrize(
    ("path", "resource", "make", "patch"),
    [
        pytest.param(PODS, "pods", _pod, {"status": {"phase": "Running"}}, id="status-of-a-pod"),
        pytest.param(PODS, "pods", _pod, {"metadata": {"labels": {"a": "b"}}}, id="labels-of-a-pod"),
        pytest.param(
            CLAIMS,
            "resource.k8s.io/resourceclaims",
            _claim,
            {"status": {"allocation": ALLOCATION, "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}},
            id="status-of-a-claim",
        ),
        pytest.param(
            CLAIMS,
            "resource.k8s.io/resourceclaims",
            _claim,
            {"metadata": {"finalizers": ["example.com/mine"]}},
            id="finalizers-of-a-claim",
        ),
    ],
)
async def test_a_patch_keeps_what_it_leaves_alone(
    server: client.Client, path: str, resource: str, make: Any, patch: Any
) -> None:
    await server.call("POST", path, make("a"))
    before = _stored(server, resource, "a").value
    ((part, change),) = patch.items()
    where = f"{path}/a/status" if part == "status" else f"{path}/a"
    for at, body in ((where, patch), (f"{path}/a", {"metadata": {"annotations": {"x": "y"}}})):
        answer = await server.call("PATCH", at, body, content_type=MERGE)
        after = _stored(server, resource, "a")
        assert answer.code == 200, answer.body
        assert {key: after.value[part][key] for key in change} == change
        assert after.value["spec"] is before["spec"]
        assert after.value == json.loads(after.data) == answer.body


async def test_a_whole_object_that_came_back_shares_its_spec(server: client.Client) -> None:
    created = (await server.call("POST", PODS, _pod("a"))).body
    created["metadata"]["labels"] = {"a": "b"}
    assert (await server.call("PUT", f"{PODS}/a", created)).code == 200
    again = (await server.call("GET", f"{PODS}/a")).body
    before = _stored(server, "pods", "a").value
    again["metadata"]["labels"] = {"a": "c"}
    assert (await server.call("PUT", f"{PODS}/a", again)).code == 200
    assert _stored(server, "pods", "a").value["spec"] is before["spec"]


async def test_a_spec_is_stored_in_one_spelling(server: client.Client) -> None:
    for name in ("a", "b"):
        created = (await server.call("POST", CLAIMS, _claim(name))).body
        assert created["spec"]["devices"]["requests"][0]["exactly"]["capacity"] == {"requests": {"memory": "1Gi"}}


async def test_like_pods_get_the_priority_of_their_time(server: client.Client) -> None:
    result = []
    for step in range(5):
        match step:
            case 1:
                await server.call("POST", CLASSES, _priority_class("usual", 10))
            case 2:
                await server.call("DELETE", f"{CLASSES}/usual")
            case 3:
                await server.call("POST", CLASSES, _priority_class("rarely", 20))
            case 4:
                await server.call("DELETE", f"{CLASSES}/rarely")
        created = (await server.call("POST", PODS, _pod(f"p{step}"))).body
        result.append((created["spec"]["priority"], created["spec"].get("priorityClassName")))
    assert result == [(0, None), (10, "usual"), (0, None), (20, "rarely"), (0, None)]


async def test_priority_is_known_after_history_is_forgotten(server: client.Client) -> None:
    await server.call("POST", PODS, _pod("a"))
    await server.call("POST", CLASSES, _priority_class("usual", 10))
    await server.call("POST", PODS, _pod("b"))
    await server.store.compact(server.store.revision)
    created = (await server.call("POST", PODS, _pod("c"))).body
    assert created["spec"]["priority"] == 10


async def test_a_good_spec_is_not_good_for_static_pods(server: client.Client) -> None:
    assert (await server.call("POST", PODS, _pod("a"))).code == 201
    refusal = await server.call("POST", PODS, _pod("b", annotations={"kubernetes.io/config.mirror": "x"}))
    assert refusal.code == 422
    assert "static pods do not support resource claims" in refusal.body["message"]


async def test_a_bad_spec_stays_bad(server: client.Client) -> None:
    created = _pod("a")
    created["spec"]["containers"][0]["image"] = ""
    answers = [(await server.call("POST", PODS, created)).body["message"] for _ in range(2)]
    assert answers == ['Pod "a" is invalid: spec.containers[0].image: Required value'] * 2


async def test_types_are_checked_beside_a_known_spec(server: client.Client) -> None:
    await server.call("POST", PODS, _pod("a"))
    refusal = await server.call("POST", PODS, _pod("b", labels={"a": 1}))
    assert refusal.code == 400
    assert "cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string" in str(refusal.body)
