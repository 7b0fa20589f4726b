"""Scales as requests of their own, to policies and in the fields that managers own."""

from typing import Any

import pytest

from tests.unit.server.admission import policies
from tests.unit.server.client import Client

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
MERGE = "application/merge-patch+json"
POD = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "x:1"}]}}
DEPLOYMENT = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": POD}}
TOLD = "request.kind.kind + ' ' + request.subResource + ' ' + object.kind + ' ' + string(oldObject.spec.replicas)"


async def scale(server: Client, replicas: int) -> Any:
    patch = {"spec": {"replicas": replicas}}
    return await server.call("PATCH", f"{DEPLOYMENTS}/d/scale?fieldManager=scaler", patch, content_type=MERGE)


@pytest.mark.parametrize(
    ("resource", "codes"),
    [
        pytest.param("deployments/scale", (422, 200), id="the-scale"),
        pytest.param("deployments", (200, 422), id="the-workload"),
        pytest.param("deployments/*", (422, 422), id="both"),
    ],
)
async def test_policies_tell_scales_from_workloads(server: Client, resource: str, codes: tuple[int, int]) -> None:
    await server.call("POST", DEPLOYMENTS, DEPLOYMENT)
    rules = [policies.rule(resource, groups=("apps",), operations=["UPDATE"])]
    await policies.validating(server, rules=rules, validations=[{"expression": "object.spec.replicas < 3"}])
    await policies.bind(server)
    scaled = await scale(server, 5)
    changed = await server.call("PATCH", f"{DEPLOYMENTS}/d", {"spec": {"replicas": 6}}, content_type=MERGE)
    assert (scaled.code, changed.code) == codes


async def test_policies_see_the_scale(server: Client) -> None:
    await server.call("POST", DEPLOYMENTS, DEPLOYMENT)
    rules = [policies.rule("deployments/scale", groups=("apps",))]
    validations = [{"expression": "false", "messageExpression": TOLD}]
    await policies.validating(server, rules=rules, validations=validations)
    await policies.bind(server)
    assert (await scale(server, 5)).body["message"].endswith("denied request: Scale scale Scale 1")


async def test_who_scales_owns_the_number(server: Client) -> None:
    await server.call("POST", DEPLOYMENTS, DEPLOYMENT)
    await scale(server, 5)
    entries = (await server.call("GET", f"{DEPLOYMENTS}/d")).body["metadata"]["managedFields"]
    (own,) = (each for each in entries if each["manager"] == "scaler")
    assert (own["subresource"], own["fieldsV1"]) == ("scale", {"f:spec": {"f:replicas": {}}})
    # As upstream, where that entry has no time and comes first.
    assert ("time" in own, entries[0] is own) == (False, True)
