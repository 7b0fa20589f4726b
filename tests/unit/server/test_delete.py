"""Deleting: preconditions, finalizers, grace, dependents, namespaces, collections."""

from typing import Any

import pytest

from tests.unit.server import client
from tests.unit.server.client import CLAIMS, PODS, SLICES, Client

MERGE = "application/merge-patch+json"


async def _running_pod(server: Client, **metadata: Any) -> None:
    await server.call("POST", PODS, client.pod(**metadata))
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
    assert (await server.call("POST", f"{PODS}/p/binding", binding)).code == 201


async def test_kinds_answer_with_the_object_or_a_status(server: Client) -> None:
    await server.call("POST", CLAIMS, client.claim())
    assert (await server.call("DELETE", f"{CLAIMS}/c")).body["kind"] == "ResourceClaim"
    maps = "/api/v1/namespaces/default/configmaps"
    made = (await server.call("POST", maps, {"metadata": {"name": "m"}})).body
    answer = await server.call("DELETE", f"{maps}/m")
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "m", "kind": "configmaps", "uid": made["metadata"]["uid"]},
    }


@pytest.mark.parametrize(
    ("preconditions", "message"),
    [
        pytest.param(
            {"uid": "other"},
            "the UID in the precondition (other) does not match the UID in record",
            id="another-uid",
        ),
        pytest.param(
            {"resourceVersion": "1"},
            "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record",
            id="an-old-version",
        ),
    ],
)
async def test_preconditions(server: Client, preconditions: dict[str, str], message: str) -> None:
    await server.call("POST", CLAIMS, client.claim())
    answer = await server.call("DELETE", f"{CLAIMS}/c", {"preconditions": preconditions})
    assert answer.code == 409
    assert answer.body["details"]["kind"] == "ResourceClaim"
    assert message in answer.body["message"]


async def test_finalizers_hold_an_object_until_the_last_is_gone(server: Client) -> None:
    await server.call("POST", CLAIMS, client.claim(finalizers=["example.com/a", "example.com/b"]))
    marked = (await server.call("DELETE", f"{CLAIMS}/c")).body
    assert marked["metadata"]["deletionTimestamp"] == "2026-01-02T03:04:05Z"
    again = (await server.call("DELETE", f"{CLAIMS}/c")).body
    assert again["metadata"]["deletionTimestamp"] == marked["metadata"]["deletionTimestamp"]
    added = await server.call(
        "PATCH",
        f"{CLAIMS}/c",
        {"metadata": {"finalizers": ["example.com/a", "example.com/new"]}},
        content_type=MERGE,
    )
    assert added.code == 422
    await server.call("PATCH", f"{CLAIMS}/c", {"metadata": {"finalizers": ["example.com/b"]}}, content_type=MERGE)
    assert (await server.call("GET", f"{CLAIMS}/c")).code == 200
    last = await server.call("PATCH", f"{CLAIMS}/c", {"metadata": {"finalizers": []}}, content_type=MERGE)
    assert last.code == 200
    assert (await server.call("GET", f"{CLAIMS}/c")).code == 404


@pytest.mark.parametrize(
    ("options", "code", "finalizers"),
    [
        pytest.param({"propagationPolicy": "Foreground"}, 200, ["foregroundDeletion"], id="foreground"),
        pytest.param({"propagationPolicy": "Orphan"}, 200, ["orphan"], id="orphan"),
        pytest.param({"orphanDependents": True}, 200, ["orphan"], id="orphan-in-the-old-way"),
    ],
)
async def test_dependents(server: Client, options: dict[str, Any], code: int, finalizers: list[str]) -> None:
    await server.call("POST", CLAIMS, client.claim())
    answer = await server.call("DELETE", f"{CLAIMS}/c", options)
    assert answer.code == code
    assert answer.body["metadata"]["finalizers"] == finalizers
    assert "deletionTimestamp" in answer.body["metadata"]


async def test_background_deletion_is_immediate(server: Client) -> None:
    await server.call("POST", CLAIMS, client.claim(finalizers=["orphan"]))
    await server.call("DELETE", f"{CLAIMS}/c", {"propagationPolicy": "Background"})
    assert (await server.call("GET", f"{CLAIMS}/c")).code == 404


async def test_dry_run(server: Client) -> None:
    await server.call("POST", CLAIMS, client.claim())
    assert (await server.call("DELETE", f"{CLAIMS}/c?dryRun=All")).code == 200
    assert (await server.call("GET", f"{CLAIMS}/c")).code == 200


async def test_a_pod_on_a_node_gets_time_to_end(server: Client) -> None:
    await _running_pod(server)
    first = (await server.call("DELETE", f"{PODS}/p")).body["metadata"]
    assert (first["deletionTimestamp"], first["deletionGracePeriodSeconds"]) == ("2026-01-02T03:04:35Z", 30)
    server.clock.advance(5)
    longer = (await server.call("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 60})).body["metadata"]
    assert longer["deletionTimestamp"] == "2026-01-02T03:04:35Z"
    sooner = (await server.call("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 10})).body["metadata"]
    assert (sooner["deletionTimestamp"], sooner["deletionGracePeriodSeconds"]) == ("2026-01-02T03:04:15Z", 10)
    assert (await server.call("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})).code == 200
    assert (await server.call("GET", f"{PODS}/p")).code == 404


async def test_a_pod_without_node_goes_at_once(server: Client) -> None:
    await server.call("POST", PODS, client.pod())
    gone = (await server.call("DELETE", f"{PODS}/p")).body
    assert gone["metadata"]["deletionGracePeriodSeconds"] == 0
    assert (await server.call("GET", f"{PODS}/p")).code == 404


async def test_a_finished_pod_goes_at_once(server: Client) -> None:
    await _running_pod(server)
    await server.call("PATCH", f"{PODS}/p/status", {"status": {"phase": "Succeeded"}}, content_type=MERGE)
    await server.call("DELETE", f"{PODS}/p")
    assert (await server.call("GET", f"{PODS}/p")).code == 404


async def test_a_namespace_ends_in_two_steps(server: Client) -> None:
    path = "/api/v1/namespaces"
    await server.call("POST", path, {"metadata": {"name": "n"}})
    ending = (await server.call("DELETE", f"{path}/n")).body
    assert ending["status"]["phase"] == "Terminating"
    assert (await server.call("DELETE", f"{path}/n")).code == 200
    assert (await server.call("GET", f"{path}/n")).code == 200
    ending["spec"] = {"finalizers": []}
    assert (await server.call("PUT", f"{path}/n/finalize", ending)).code == 200
    assert (await server.call("GET", f"{path}/n")).code == 404


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_some_namespaces_are_immortal(server: Client, name: str) -> None:
    answer = await server.call("DELETE", f"/api/v1/namespaces/{name}")
    assert answer.code == 403
    assert answer.body["message"] == f'namespaces "{name}" is forbidden: this namespace may not be deleted'


async def test_a_collection_by_selector(server: Client) -> None:
    for name, label in (("a", "x"), ("b", "y"), ("c", "x")):
        await server.call("POST", CLAIMS, client.claim(name, labels={"l": label}))
    answer = await server.call("DELETE", f"{CLAIMS}?labelSelector=l%3Dx")
    assert [item["metadata"]["name"] for item in answer.body["items"]] == ["a", "c"]
    left = (await server.call("GET", CLAIMS)).body["items"]
    assert [item["metadata"]["name"] for item in left] == ["b"]


async def test_a_large_collection(server: Client) -> None:
    spec = {"driver": "d.example.com", "nodeName": "n", "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1}}
    for number in range(250):
        assert (await server.call("POST", SLICES, {"metadata": {"name": f"s{number}"}, "spec": spec})).code == 201
    assert len((await server.call("DELETE", SLICES)).body["items"]) == 250
    assert (await server.call("GET", SLICES)).body["items"] == []


async def test_missing(server: Client) -> None:
    assert (await server.call("DELETE", f"{CLAIMS}/none")).code == 404
    assert (await server.call("DELETE", f"{CLAIMS}/c", "{broken")).code == 400
