"""Server-side apply to the scale of a workload: as kube-apiserver answers, and what it leaves in managedFields."""

from typing import Any

import pytest

from tests.unit.server.client import Client

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"

POD = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "x:1"}]}}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d"},
    "spec": {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": POD},
}


def scale(replicas: Any = None, **fields: Any) -> dict[str, Any]:
    content: dict[str, Any] = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"}}
    if replicas is not None:
        content["spec"] = {"replicas": replicas}
    return content | fields


async def apply(server: Client, content: dict[str, Any], manager: str = "applier", *, query: str = "") -> Any:
    return await server.call(
        "PATCH", f"{DEPLOYMENTS}/d/scale?fieldManager={manager}{query}", content, content_type=APPLY
    )


async def owners(server: Client, path: str = f"{DEPLOYMENTS}/d") -> list[tuple[Any, ...]]:
    """Manager, operation, version, subresource of each entry, and whether it has a time and the number of replicas."""
    workload = (await server.call("GET", path)).body
    return [
        (
            entry["manager"],
            entry["operation"],
            entry["apiVersion"],
            entry.get("subresource", ""),
            "time" in entry,
            "f:replicas" in entry["fieldsV1"].get("f:spec", {}),
        )
        for entry in workload["metadata"]["managedFields"]
    ]


async def with_deployment(server: Client) -> None:
    assert (await server.call("POST", f"{DEPLOYMENTS}?fieldManager=maker", DEPLOYMENT)).code == 201


MAKER = ("maker", "Update", "apps/v1", "", True)
MAKER_BY_SCALE = ("maker", "Update", "apps/v1", "", False)
APPLIER = ("applier", "Apply", "apps/v1", "scale", False)


async def test_who_owns_the_number_is_asked(server: Client) -> None:
    await with_deployment(server)
    answer = await apply(server, scale(5))
    message = 'Apply failed with 1 conflict: conflict with "maker" using autoscaling/v1: .spec.replicas'
    assert (answer.code, answer.body["message"]) == (409, message)
    assert await owners(server) == [(*MAKER, True)]


async def test_the_same_number_is_owned_by_both(server: Client) -> None:
    await with_deployment(server)
    answer = await apply(server, scale(2))
    assert (answer.code, answer.body["kind"], answer.body["spec"]) == (200, "Scale", {"replicas": 2})
    assert "managedFields" not in answer.body["metadata"]
    assert await owners(server) == [(*APPLIER, True), (*MAKER_BY_SCALE, True), (*MAKER, False)]


async def test_force_takes_it(server: Client) -> None:
    await with_deployment(server)
    answer = await apply(server, scale(5), query="&force=true")
    assert (answer.code, answer.body["spec"]) == (200, {"replicas": 5})
    assert await owners(server) == [(*APPLIER, True), (*MAKER, False)]
    assert (await apply(server, scale(6))).body["spec"] == {"replicas": 6}
    assert (await server.call("GET", f"{DEPLOYMENTS}/d")).body["spec"]["replicas"] == 6


async def test_who_applies_it_no_more_gives_it_up(server: Client) -> None:
    await with_deployment(server)
    await apply(server, scale(5), query="&force=true")
    answer = await apply(server, scale())
    assert (answer.code, answer.body["spec"]) == (200, {})
    assert await owners(server) == [(*MAKER, False)]
    assert (await apply(server, scale(7), "other")).code == 200


async def test_who_scaled_is_in_the_way(server: Client) -> None:
    await with_deployment(server)
    path = f"{DEPLOYMENTS}/d/scale?fieldManager=hpa"
    await server.call("PATCH", path, {"spec": {"replicas": 8}}, content_type=MERGE)
    (cause,) = (await apply(server, scale(9))).body["details"]["causes"]
    assert cause["message"] == 'conflict with "hpa" with subresource "scale" using autoscaling/v1'


async def test_an_applier_of_the_workload_is_another(server: Client) -> None:
    await server.call("PATCH", f"{DEPLOYMENTS}/d?fieldManager=applier", DEPLOYMENT, content_type=APPLY)
    assert (await apply(server, scale(4))).body["message"].endswith('conflict with "applier": .spec.replicas')
    assert (await apply(server, scale(4), query="&force=true")).code == 200
    assert await owners(server) == [(*APPLIER, True), ("applier", "Apply", "apps/v1", "", True, False)]
    again = await server.call("PATCH", f"{DEPLOYMENTS}/d?fieldManager=applier", DEPLOYMENT, content_type=APPLY)
    assert again.body["message"].endswith('conflict with "applier" with subresource "scale": .spec.replicas')


TYPED = "failed to create typed patch object (/d; autoscaling/v1, Kind=Scale): "


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        pytest.param(DEPLOYMENT, 400, "invalid object type: apps/v1, Kind=Deployment", id="another-kind"),
        pytest.param(
            scale("a"), 500, TYPED + ".spec.replicas: expected numeric (int or float), got string", id="another-type"
        ),
        pytest.param(scale(3, bogus=1), 500, TYPED + ".bogus: field not declared in schema", id="an-unknown-field"),
        pytest.param(
            scale(-3),
            422,
            'Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -3: must be greater than or equal to 0',
            id="negative",
        ),
        pytest.param(
            scale(3, metadata={"name": "z"}),
            400,
            "the name of the object (z) does not match the name on the URL (d)",
            id="another-name",
        ),
        pytest.param(
            scale(3, metadata={"name": "d", "managedFields": []}),
            400,
            "metadata.managedFields must be nil",
            id="managed-fields",
        ),
        pytest.param(
            scale(3, metadata={"name": "d", "resourceVersion": "1"}),
            409,
            'Operation cannot be fulfilled on deployments.apps "d": the object has been modified; please apply your '
            "changes to the latest version and try again",
            id="another-version",
        ),
    ],
)
async def test_what_is_refused(server: Client, content: dict[str, Any], code: int, message: str) -> None:
    await with_deployment(server)
    answer = await apply(server, content, query="&force=true")
    assert (answer.code, answer.body["message"]) == (code, message)
    assert await owners(server) == [(*MAKER, True)]


async def test_nothing_is_made_by_its_scale(server: Client) -> None:
    assert (await apply(server, scale(3))).code == 404


async def test_a_dry_run_leaves_nothing(server: Client) -> None:
    await with_deployment(server)
    answer = await apply(server, scale(3), query="&force=true&dryRun=All")
    assert (answer.code, answer.body["spec"]) == (200, {"replicas": 3})
    assert await owners(server) == [(*MAKER, True)]


async def test_a_custom_resource_without_a_selector_is_scaled(server: Client) -> None:
    size = {"type": "object", "properties": {"size": {"type": "integer"}}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": size, "status": size}}},
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
        },
    }
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    definition = {"metadata": {"name": "widgets.example.com"}, "spec": spec}
    assert (await server.call("POST", DEFINITIONS, definition)).code == 201
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "d"}, "spec": {}}
    assert (await server.call("POST", f"{WIDGETS}?fieldManager=maker", widget)).code == 201
    path = f"{WIDGETS}/d/scale?fieldManager=applier"
    answer = await server.call("PATCH", path, scale(5), content_type=APPLY)
    assert (answer.code, answer.body["spec"], answer.body["status"]) == (200, {"replicas": 5}, {"replicas": 0})
    conflict = await server.call("PATCH", f"{WIDGETS}/d/scale?fieldManager=other", scale(6), content_type=APPLY)
    assert conflict.body["message"].endswith('conflict with "applier" with subresource "scale": .spec.replicas')
    stored = (await server.call("GET", f"{WIDGETS}/d")).body
    (entry,) = (each for each in stored["metadata"]["managedFields"] if each["manager"] == "applier")
    assert (stored["spec"], entry["fieldsV1"]) == ({"size": 5}, {"f:spec": {"f:size": {}}})
