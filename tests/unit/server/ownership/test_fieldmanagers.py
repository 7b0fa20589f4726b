"""The first owner of new objects: the same whether it is worked out or known from like ones."""

from typing import Any

import pytest

from tests.unit.server import client
from tests.unit.server.client import CLAIMS, PODS, Client

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


async def _entry(server: Client, path: str, body: dict[str, Any], agent: str) -> dict[str, Any]:
    answer = await server.call("POST", path, body, headers={"user-agent": agent})
    assert answer.code == 201
    (entry,) = answer.body["metadata"]["managedFields"]
    return dict(entry)


@pytest.mark.parametrize(
    ("path", "make"), [pytest.param(CLAIMS, client.claim, id="claim"), pytest.param(PODS, client.pod, id="pod")]
)
async def test_alike_objects_have_alike_owners(server: Client, path: str, make: Any) -> None:
    first = await _entry(server, path, make("a", labels={"x": "1"}), "one/1")
    server.clock.advance(5)
    second = await _entry(server, path, make("b", labels={"x": "2"}), "one/2")
    assert second == {**first, "time": "2026-01-02T03:04:10Z"}
    third = await _entry(server, path, make("c", labels={"y": "1"}), "")
    assert third["manager"] == "unknown"
    assert "f:y" in third["fieldsV1"]["f:metadata"]["f:labels"]


def _reference(uid: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "name": f"pod-{uid}", "uid": uid, "controller": uid == "1"}


async def test_references_to_owners_are_owned_one_by_one(server: Client) -> None:
    worked_out, both, bare, remembered = [
        (await _entry(server, CLAIMS, client.claim(name, **metadata), "one/1"))["fieldsV1"]
        for name, metadata in (
            ("a", {"ownerReferences": [_reference("1")], "labels": {"x": "1"}}),
            ("b", {"ownerReferences": [_reference("3"), _reference("2")], "labels": {"x": "2"}}),
            ("c", {"labels": {"x": "3"}}),
            ("d", {"ownerReferences": [_reference("4")], "labels": {"x": "4"}}),
        )
    ]
    labels: dict[str, Any] = {".": {}, "f:x": {}}
    want: dict[str, Any] = {".": {}, 'k:{"uid":"2"}': {}, 'k:{"uid":"3"}': {}}
    assert worked_out["f:metadata"] == {"f:labels": labels, "f:ownerReferences": {".": {}, 'k:{"uid":"1"}': {}}}
    assert both == {**worked_out, "f:metadata": {"f:labels": labels, "f:ownerReferences": want}}
    assert list(both["f:metadata"]["f:ownerReferences"]) == list(want)
    assert bare == {**worked_out, "f:metadata": {"f:labels": labels}}
    assert remembered["f:metadata"] == {"f:labels": labels, "f:ownerReferences": {".": {}, 'k:{"uid":"4"}': {}}}


async def test_values_do_not_tell_objects_apart(server: Client) -> None:
    entries = []
    for name, data in (("a", {"x": "1"}), ("b", {"x": "2"}), ("c", {"x": "1", "y": "2"})):
        body = {"metadata": {"name": name}, "data": data, "immutable": True}
        entries.append(await _entry(server, CONFIG_MAPS, body, "values/1"))
    first, second, other = entries
    assert first["fieldsV1"] == {"f:data": {".": {}, "f:x": {}}, "f:immutable": {}}
    assert second == first
    assert other["fieldsV1"] == {"f:data": {".": {}, "f:x": {}, "f:y": {}}, "f:immutable": {}}


async def test_items_without_identity_are_for_validation_to_refuse(server: Client) -> None:
    pod = client.pod("p")
    pod["spec"]["containers"].append({"image": "registry.example/pause:3.10"})
    refused = await server.call("POST", PODS, pod)
    assert refused.code == 422
    assert "spec.containers[1].name: Required value" in refused.body["message"]


async def test_versions_are_told_apart(server: Client) -> None:
    request = {"name": "gpu", "deviceClassName": "gpu.example.com"}
    old = {"metadata": {"name": "old"}, "spec": {"devices": {"requests": [request]}}}
    new = await _entry(server, CLAIMS, client.claim("new"), "a/1")
    beta = await _entry(server, CLAIMS.replace("/v1/", "/v1beta1/"), old, "a/1")
    assert (new["apiVersion"], beta["apiVersion"]) == ("resource.k8s.io/v1", "resource.k8s.io/v1beta1")
