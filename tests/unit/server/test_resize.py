"""Resizing pods in place."""

from typing import Any

import pytest

from tests.unit.server import client
from tests.unit.server.client import PODS

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


async def _create(server: client.Client, **resources: Any) -> None:
    pod = client.pod()
    pod["spec"]["containers"][0]["resources"] = resources or {"requests": {"cpu": "100m"}}
    assert (await server.call("POST", PODS, pod)).code == 201


async def _resize(server: client.Client, **resources: Any) -> client.Answer:
    patch = {"spec": {"containers": [{"name": "main", "resources": resources}]}}
    return await server.call("PATCH", f"{PODS}/p/resize", patch, content_type=STRATEGIC)


async def test_cpu_and_memory(server: client.Client) -> None:
    await _create(server)
    answer = await _resize(server, requests={"cpu": "200m", "memory": "1Gi"})
    assert answer.code == 200
    assert answer.body["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "200m", "memory": "1Gi"}}
    assert answer.body["metadata"]["generation"] == 2
    again = await _resize(server, requests={"cpu": "200m"})
    assert again.body["metadata"]["generation"] == 2, "nothing changed"


async def test_nothing_is_no_change(server: client.Client) -> None:
    assert (await server.call("POST", PODS, client.pod())).code == 201
    before = (await server.call("GET", f"{PODS}/p")).body
    answer = await server.call("PATCH", f"{PODS}/p/resize", {"spec": {}}, content_type=MERGE)
    assert (answer.code, answer.body) == (200, before)


async def test_all_else_stays(server: client.Client) -> None:
    await _create(server)
    patch = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "other", "resources": {"requests": {"cpu": "1"}}}],
        },
        "status": {"phase": "Failed"},
    }
    answer = await server.call("PATCH", f"{PODS}/p/resize", patch, content_type=MERGE)
    assert answer.code == 200
    (container,) = answer.body["spec"]["containers"]
    assert (container["image"], container["resources"]) == ("registry.example/pause:3.10", {"requests": {"cpu": "1"}})
    assert answer.body["spec"]["terminationGracePeriodSeconds"] == 30
    assert "labels" not in answer.body["metadata"]
    assert answer.body["status"]["phase"] == "Pending"


@pytest.mark.parametrize(
    ("before", "resources", "want"),
    [
        pytest.param(
            {"requests": {"cpu": "1"}},
            {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
            None,
            id="limits-are-added",
        ),
        pytest.param(
            {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
            {"limits": {"cpu": "2"}},
            'spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing',
            id="class-changes",
        ),
        pytest.param(
            {"requests": {"cpu": "1", "memory": "1Gi"}},
            {"requests": {"memory": None}},
            "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed",
            id="removed",
        ),
        pytest.param(
            {"requests": {"cpu": "1"}},
            {"requests": {"ephemeral-storage": "1Gi"}},
            "spec: Forbidden: only cpu and memory resources are mutable",
            id="others",
        ),
    ],
)
async def test_rules(server: client.Client, before: Any, resources: Any, want: str | None) -> None:
    await _create(server, **before)
    answer = await _resize(server, **resources)
    if want is None:
        assert answer.code == 200
    else:
        assert (answer.code, answer.body["message"]) == (422, f'Pod "p" is invalid: {want}')


async def test_containers_stay_the_same(server: client.Client) -> None:
    await _create(server)
    patch = {"spec": {"containers": [{"name": "other", "image": "i"}]}}
    answer = await server.call("PATCH", f"{PODS}/p/resize", patch, content_type=MERGE)
    assert "spec.containers[0].name: Forbidden: containers may not be renamed or reordered" in answer.body["message"]


async def test_pods_with_node_allocatable_claims_can_be_resized(server: client.Client) -> None:
    pod = client.pod()
    pod["spec"]["resourceClaims"] = [{"name": "c", "resourceClaimName": "c"}]
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}, "claims": [{"name": "c"}]}
    await server.call("POST", PODS, pod)
    claims = [{"resourceClaimName": "c", "containers": ["main"], "mapping": [{"name": "cpu", "quantity": "1"}]}]
    patch = {"status": {"nodeAllocatableResourceClaimStatuses": claims}}
    answer = await server.call("PATCH", f"{PODS}/p/status", patch, content_type=MERGE)
    assert answer.code == 200, answer.body
    answer = await _resize(server, requests={"cpu": "2"})
    assert answer.code == 200, answer.body
    assert answer.body["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "2"}
