"""Pods of the time of v1alpha2, with ``source``, are taken in every way in which an object can be written."""

from typing import Any

import pytest

from tests import firstalpha
from tests.unit.server import client
from tests.unit.server.client import Client

PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
STRICT = "fieldValidation=Strict"
CONTAINERS = [{"name": "c", "image": "registry.example/app"}]


def of_then(claim: str) -> dict[str, Any]:
    return {"name": "gpu", "source": {"resourceClaimName": claim}}


def pod(*entries: dict[str, Any]) -> dict[str, Any]:
    spec = {"containers": CONTAINERS, "resourceClaims": list(entries)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def deployment(*entries: dict[str, Any]) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": pod(*entries)["spec"]}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}


@pytest.fixture
async def server() -> Client:
    made = await client.start(gates=firstalpha.GATES)
    created = await made.call("POST", f"{DEPLOYMENTS}?{STRICT}", deployment(of_then("first")))
    assert (created.code, entries(created.body)) == (201, [{"name": "gpu", "resourceClaimName": "first"}])
    return made


def entries(document: dict[str, Any]) -> Any:
    return document["spec"]["template"]["spec"]["resourceClaims"]


TEMPLATE = "/spec/template/spec/resourceClaims"
SPEC = {"template": {"spec": {"resourceClaims": [of_then("second")]}}}


@pytest.mark.parametrize(
    ("verb", "media_type", "body"),
    [
        pytest.param("PUT", "application/json", deployment(of_then("second")), id="update"),
        pytest.param("PATCH", "application/merge-patch+json", {"spec": SPEC}, id="merge-patch"),
        pytest.param("PATCH", "application/strategic-merge-patch+json", {"spec": SPEC}, id="strategic-merge-patch"),
        pytest.param(
            "PATCH",
            "application/json-patch+json",
            [{"op": "replace", "path": f"{TEMPLATE}/0", "value": of_then("second")}],
            id="json-patch-of-an-entry",
        ),
        pytest.param(
            "PATCH",
            "application/json-patch+json",
            [
                {"op": "remove", "path": f"{TEMPLATE}/0/resourceClaimName"},
                {"op": "add", "path": f"{TEMPLATE}/0/source", "value": {"resourceClaimName": "second"}},
            ],
            id="json-patch-of-fields",
        ),
        pytest.param("PATCH", "application/apply-patch+yaml", deployment(of_then("second")), id="apply"),
    ],
)
async def test_a_template_with_source(server: Client, verb: str, media_type: str, body: Any) -> None:
    query = f"{STRICT}&fieldManager=m&force=true" if media_type.endswith("yaml") else f"{STRICT}&fieldManager=m"
    answer = await server.call(verb, f"{DEPLOYMENTS}/d?{query}", body, content_type=media_type)
    assert answer.code == 200, answer.body
    assert entries(answer.body) == [{"name": "gpu", "resourceClaimName": "second"}]
    assert answer.header("warning") is None


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        pytest.param("application/merge-patch+json", {"spec": {"resourceClaims": [of_then("my")]}}, id="merge-patch"),
        pytest.param(
            "application/strategic-merge-patch+json",
            {"spec": {"resourceClaims": [{"name": "gpu", "source": None, "resourceClaimName": "my"}]}},
            id="source-is-to-go",
        ),
        pytest.param("application/apply-patch+yaml", pod(of_then("my")), id="apply"),
    ],
)
async def test_a_pod_that_says_the_same_again(server: Client, media_type: str, body: Any) -> None:
    created = await server.call("POST", PODS, pod(of_then("my")))
    assert created.code == 201
    query = f"{STRICT}&fieldManager=m&force=true" if media_type.endswith("yaml") else STRICT
    answer = await server.call("PATCH", f"{PODS}/p?{query}", body, content_type=media_type)
    assert answer.code == 200, answer.body
    assert answer.body["spec"]["resourceClaims"] == [{"name": "gpu", "resourceClaimName": "my"}]


async def test_an_update_of_a_pod(server: Client) -> None:
    created = (await server.call("POST", PODS, pod(of_then("my")))).body
    changed = {**created, "spec": {**created["spec"], "resourceClaims": [of_then("my")]}}
    changed["metadata"]["labels"] = {"a": "b"}
    answer = await server.call("PUT", f"{PODS}/p?{STRICT}", changed)
    assert (answer.code, answer.body["metadata"]["labels"]) == (200, {"a": "b"})
    assert answer.body["spec"] == created["spec"]


async def test_source_is_unknown_where_the_first_alpha_is_off() -> None:
    server = await client.start()
    refused = await server.call("POST", f"{DEPLOYMENTS}?{STRICT}", deployment(of_then("first")))
    assert 'unknown field "spec.template.spec.resourceClaims[0].source"' in refused.body["message"]
