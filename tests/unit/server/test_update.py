"""Updates and patches: preconditions, what survives, no-ops, subresources, apply."""

import asyncio
import json
from typing import Any

import pytest

from tests.unit.server import client
from tests.unit.server.client import CLAIMS, PODS, SLICES, Client

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


async def _made(server: Client, **metadata: Any) -> dict[str, Any]:
    answer = await server.call("POST", CLAIMS, client.claim(**metadata))
    assert answer.code == 201
    body: dict[str, Any] = answer.body
    return body


async def test_a_put_without_version_replaces_whatever_is_there(server: Client) -> None:
    await _made(server)
    answer = await server.call("PUT", f"{CLAIMS}/c", client.claim(labels={"a": "b"}))
    assert (answer.code, answer.body["metadata"]["labels"]) == (200, {"a": "b"})


@pytest.mark.parametrize(
    ("metadata", "code", "message"),
    [
        pytest.param({"resourceVersion": "1"}, 409, "the object has been modified", id="old-version"),
        pytest.param({"uid": "other"}, 409, "Precondition failed: UID in precondition: other", id="another-uid"),
        pytest.param({"name": "d"}, 400, "does not match the name on the URL (c)", id="another-name"),
        pytest.param({"name": ""}, 400, "(c based on URL) was undeterminable", id="no-name"),
        pytest.param({"resourceVersion": "x"}, 500, 'parsing "x": invalid syntax', id="no-version"),
        pytest.param({"namespace": "x"}, 400, "does not match the namespace sent", id="another-namespace"),
    ],
)
async def test_preconditions(server: Client, metadata: dict[str, str], code: int, message: str) -> None:
    await _made(server)
    given = client.claim()
    given["metadata"].update(metadata)
    answer = await server.call("PUT", f"{CLAIMS}/c", given)
    assert answer.code == code
    assert message in answer.body["message"]


async def test_lease_wants_a_version(server: Client) -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    made = await server.call("PUT", f"{leases}/l", {"metadata": {"name": "l"}, "spec": {}})
    assert made.code == 201
    again = await server.call("PUT", f"{leases}/l", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}})
    assert again.code == 422
    assert "must be specified for an update" in again.body["message"]


async def test_system_fields_survive_a_put(server: Client) -> None:
    made = await _made(server)
    server.clock.advance(60)
    changed = (await server.call("PUT", f"{CLAIMS}/c", client.claim(labels={"a": "b"}))).body
    for field in ("uid", "creationTimestamp", "namespace"):
        assert changed["metadata"][field] == made["metadata"][field]


async def test_a_write_that_changes_nothing_is_none(server: Client) -> None:
    made = await _made(server)
    revision = server.store.revision
    server.clock.advance(60)
    await server.call("PATCH", f"{CLAIMS}/c", {"metadata": {}}, content_type=MERGE)
    again = await server.call("PUT", f"{CLAIMS}/c", made)
    assert again.code == 200
    assert server.store.revision == revision


async def test_generation_counts_changes_of_the_spec(server: Client) -> None:
    given = {
        "metadata": {"name": "s"},
        "spec": {
            "driver": "d.example.com",
            "nodeName": "n",
            "pool": {"name": "n", "generation": 1, "resourceSliceCount": 1},
        },
    }
    made = (await server.call("POST", SLICES, given)).body
    labelled = await server.call("PATCH", f"{SLICES}/s", {"metadata": {"labels": {"a": "b"}}}, content_type=MERGE)
    changed = await server.call("PATCH", f"{SLICES}/s", {"spec": {"pool": {"generation": 2}}}, content_type=MERGE)
    generations = [each["metadata"]["generation"] for each in (made, labelled.body, changed.body)]
    assert generations == [1, 1, 2]


async def test_the_status_subresource_changes_the_status_only(server: Client) -> None:
    await _made(server, labels={"keep": "me"})
    result = {"request": "gpu", "driver": "gpu.example.com", "pool": "n1", "device": "gpu-0"}
    given = client.claim(labels={"drop": "me"})
    given["spec"]["devices"]["requests"][0]["name"] = "other"
    given["status"] = {"allocation": {"devices": {"results": [result]}}}
    answer = await server.call("PUT", f"{CLAIMS}/c/status", given)
    assert answer.code == 200
    assert answer.body["metadata"]["labels"] == {"keep": "me"}
    assert answer.body["spec"]["devices"]["requests"][0]["name"] == "gpu"
    assert answer.body["status"]["allocation"]["devices"]["results"] == [result]
    plain = await server.call("PUT", f"{CLAIMS}/c", client.claim())
    assert plain.body["status"] == answer.body["status"]
    entries = {entry.get("subresource") for entry in answer.body["metadata"]["managedFields"]}
    assert "status" in entries


@pytest.mark.parametrize(
    ("content_type", "body", "code", "message"),
    [
        pytest.param("application/json", {}, 415, "415: Unsupported Media Type", id="no-patch"),
        pytest.param(MERGE, "{", 400, "", id="no-json"),
        pytest.param(
            "application/json-patch+json",
            [{"op": "replace", "path": "/spec/devices", "value": []}],
            422,
            "json: cannot unmarshal array into Go struct field",
            id="wrong-type",
        ),
        pytest.param(MERGE, {"kind": "Pod"}, 422, 'no kind "Pod" is registered', id="another-kind"),
        pytest.param(MERGE, {"metadata": {"name": "d"}}, 400, "does not match the name on the URL", id="rename"),
        pytest.param(MERGE, {"metadata": {"resourceVersion": "1"}}, 409, "has been modified", id="old-version"),
        pytest.param("application/json-patch+json", [{"op": "replace", "path": "", "value": []}], 422, "", id="root"),
    ],
)
async def test_patches_refused(server: Client, content_type: str, body: Any, code: int, message: str) -> None:
    await _made(server)
    answer = await server.call("PATCH", f"{CLAIMS}/c", body, content_type=content_type)
    assert answer.code == code
    assert message in answer.body["message"]


async def test_strategic_merge_patch_merges_by_key(server: Client) -> None:
    await server.call("POST", PODS, client.pod())
    patch = {"metadata": {"annotations": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "other:1"}]}}
    answer = await server.call("PATCH", f"{PODS}/p", patch, content_type="application/strategic-merge-patch+json")
    assert answer.code == 200
    assert [(each["name"], each["image"]) for each in answer.body["spec"]["containers"]] == [("main", "other:1")]


async def test_strict_patch_refuses_unknown_fields(server: Client) -> None:
    await _made(server)
    answer = await server.call(
        "PATCH", f"{CLAIMS}/c?fieldValidation=Strict", {"spec": {"bogus": 1}}, content_type=MERGE
    )
    assert answer.code == 422
    assert 'strict decoding error: unknown field "spec.bogus"' in answer.body["message"]


async def test_apply_creates_conflicts_and_removes(server: Client) -> None:
    first = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1", "b": "1"}}
    path = "/api/v1/namespaces/default/configmaps/m"
    made = await server.call("PATCH", f"{path}?fieldManager=one", _json(first), content_type=APPLY)
    assert made.code == 201
    second = {**first, "data": {"a": "2"}}
    refused = await server.call("PATCH", f"{path}?fieldManager=two", _json(second), content_type=APPLY)
    assert refused.code == 409
    assert refused.body["message"] == 'Apply failed with 1 conflict: conflict with "one": .data.a'
    forced = await server.call("PATCH", f"{path}?fieldManager=two&force=true", _json(second), content_type=APPLY)
    assert forced.body["data"] == {"a": "2", "b": "1"}
    less = await server.call(
        "PATCH", f"{path}?fieldManager=one", _json({**first, "data": {"a": "2"}}), content_type=APPLY
    )
    assert less.body["data"] == {"a": "2"}
    revision = server.store.revision
    server.clock.advance(60)
    await server.call("PATCH", f"{path}?fieldManager=one", _json({**first, "data": {"a": "2"}}), content_type=APPLY)
    assert server.store.revision == revision


async def test_apply_of_a_bad_quantity_over_fields_of_another_version_is_the_clients_mistake(server: Client) -> None:
    old = "/apis/resource.k8s.io/v1beta1/namespaces/default/resourceclaims"
    wanted = {"name": "gpu", "deviceClassName": "gpu.example.com"}
    first = {**client.claim("a"), "apiVersion": "resource.k8s.io/v1beta1", "spec": {"devices": {"requests": [wanted]}}}
    assert (await server.call("POST", old, first)).code == 201
    bad = client.claim("a")
    bad["spec"]["devices"]["requests"][0]["exactly"]["capacity"] = {"requests": {"memory": "much"}}

    answer = await server.call("PATCH", f"{CLAIMS}/a?fieldManager=two&force=true", _json(bad), content_type=APPLY)

    assert answer.code == 500
    assert "quantities must match the regular expression" in answer.body["message"]


async def test_apply_wants_a_manager_and_an_object(server: Client) -> None:
    without = await server.call("PATCH", f"{CLAIMS}/c", "{}", content_type=APPLY)
    assert without.code == 422
    broken = await server.call("PATCH", f"{CLAIMS}/c?fieldManager=m", "a: [", content_type=APPLY)
    assert broken.code == 400
    assert broken.body["message"].startswith("error decoding patch: error converting YAML to JSON: yaml:")


async def test_concurrent_patches_all_count(server: Client) -> None:
    await _made(server)
    patches = (
        server.call("PATCH", f"{CLAIMS}/c", {"metadata": {"labels": {f"l{i}": "x"}}}, content_type=MERGE)
        for i in range(20)
    )
    answers = await asyncio.gather(*patches)
    assert {answer.code for answer in answers} == {200}
    labels = (await server.call("GET", f"{CLAIMS}/c")).body["metadata"]["labels"]
    assert len(labels) == 20


async def test_scale(server: Client) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    deployment = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    assert (await server.call("POST", path, deployment)).code == 201
    scale = (await server.call("GET", f"{path}/d/scale")).body
    assert (scale["kind"], scale["spec"], scale["status"]["selector"]) == ("Scale", {"replicas": 1}, "a=b")
    scale["spec"]["replicas"] = 3
    assert (await server.call("PUT", f"{path}/d/scale", scale)).body["spec"] == {"replicas": 3}
    patched = await server.call("PATCH", f"{path}/d/scale", {"spec": {"replicas": 5}}, content_type=MERGE)
    assert patched.body["spec"] == {"replicas": 5}
    assert (await server.call("GET", f"{path}/d")).body["spec"]["replicas"] == 5
    negative = await server.call("PATCH", f"{path}/d/scale", {"spec": {"replicas": -1}}, content_type=MERGE)
    assert negative.code == 422


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document)


TEMPLATED = {"spec": {"containers": [{"name": "c", "image": "x"}]}, "metadata": {"labels": {"a": "b"}}}


@pytest.mark.parametrize(
    ("place", "document", "changes", "want"),
    [
        pytest.param(
            "/api/v1/namespaces/default/podtemplates",
            {"template": TEMPLATED},
            {"template": {"metadata": {"labels": {"a": "c"}}}},
            2,
            id="template-of-a-pod-template",
        ),
        pytest.param(
            "/api/v1/namespaces/default/podtemplates",
            {"template": TEMPLATED},
            {"metadata": {"annotations": {"a": "b"}}},
            1,
            id="annotations-of-a-pod-template",
        ),
        pytest.param(
            "/apis/apps/v1/namespaces/default/deployments",
            {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATED}},
            {"metadata": {"annotations": {"a": "b"}}},
            2,
            id="annotations-of-a-deployment",
        ),
        pytest.param(
            "/apis/apps/v1/namespaces/default/deployments",
            {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATED}},
            {"metadata": {"labels": {"a": "b"}}},
            1,
            id="labels-of-a-deployment",
        ),
    ],
)
async def test_generations_count_changes(
    server: Client, place: str, document: dict[str, Any], changes: dict[str, Any], want: int
) -> None:
    await server.call("POST", place, {**document, "metadata": {"name": "a"}})
    patched = await server.call("PATCH", f"{place}/a", changes, content_type="application/merge-patch+json")
    assert (patched.code, patched.body["metadata"]["generation"]) == (200, want)
