"""The in-process client against a server: what it shares, and what it is refused."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from drachma import errors
from drachma.api import codec, resourceclaim
from drachma.client import local, patches, protocol, target
from drachma.runtime import Informers
from drachma.server import inprocess
from drachma.server.calls.call import BODY_LIMIT
from drachma.testing import claim
from tests.unit.server.client import CLAIMS, Client

Claim = resourceclaim.ResourceClaim


@pytest_asyncio.fixture
async def inside(server: Client) -> AsyncIterator[local.LocalClient]:
    async with local.LocalClient(inprocess.InProcess(server.app.dispatcher)) as client:
        yield client


def new(name: str = "c") -> Claim:
    return claim(name).request("gpu", device_class="gpu.example.com").build()


async def test_cache_entries_share_the_bytes_of_the_store(server: Client) -> None:
    backend = inprocess.InProcess(server.app.dispatcher)
    client = local.LocalClient(backend)
    await client.create(new())
    async with Informers(client) as informers:
        claims = informers.of(Claim, with_documents=True)
        await informers.wait_synced()
        entry = claims.cache.entry("c", namespace="default")
        assert entry is not None
        place = local.Place(
            group="resource.k8s.io", version="v1", plural="resourceclaims", namespace="default", name="c"
        )
        assert entry.data is (await backend.get(place)).data


async def test_a_version_is_one_object_for_who_writes_reads_and_watches(inside: local.LocalClient) -> None:
    version = (await inside.list(Claim)).resource_version
    created = await inside.create(new())
    async with inside.watch(Claim, resource_version=version) as watch:
        (event,) = await watch.batch()
        assert (event.change, event.object) == (protocol.Change.ADDED, created)
        assert event.object is created
        assert await inside.get(Claim, "c", namespace="default") is created
        patched = await inside.patch(
            Claim, "c", namespace="default", patch=patches.merge({"metadata": {"labels": {"a": "b"}}})
        )
        assert patched.metadata.labels == {"a": "b"}
        assert (await watch.batch())[0].object is patched


@pytest.mark.parametrize("size", [pytest.param(1, id="small"), pytest.param(10_000, id="large")])
async def test_decoded_objects_go_when_they_are_replaced_or_deleted(inside: local.LocalClient, size: int) -> None:
    kept = local._decoded(target.of(Claim))
    version = (await inside.list(Claim)).resource_version
    async with (
        inside.watch(Claim, resource_version=version) as watch,
        inside.watch(Claim, resource_version=version) as late,
    ):
        created = await inside.create(new())
        filling = patches.merge({"metadata": {"annotations": {"a": "x" * size}}})
        patched = await inside.patch(Claim, "c", namespace="default", patch=filling)
        objects = [event.object for event in await watch.batch()]
        assert objects == [created, patched]
        assert await inside.get(Claim, "c", namespace="default") is objects[1]
        await inside.delete(Claim, "c", namespace="default")
        assert [event.change for event in await watch.batch()] == [protocol.Change.DELETED]
        assert len(await late.batch()) == 3
    assert created.metadata.uid not in kept._small
    assert kept._large.get(created.metadata.uid) is None


async def test_a_patch_that_changes_nothing_answers_with_what_is_there(inside: local.LocalClient) -> None:
    created = await inside.create(new())
    patch = patches.merge({"metadata": {"name": "c"}})
    assert await inside.patch(Claim, "c", namespace="default", patch=patch) is created


async def test_the_last_finalizer_answers_with_what_is_gone(inside: local.LocalClient) -> None:
    created = await inside.create(new())
    finalizers = {"metadata": {"finalizers": ["example.com/keep"]}}
    await inside.patch(Claim, "c", namespace="default", patch=patches.merge(finalizers))
    await inside.delete(Claim, "c", namespace="default")
    gone = await inside.patch(
        Claim, "c", namespace="default", patch=patches.merge({"metadata": {"finalizers": None}}, patches.same(created))
    )
    assert gone.metadata.uid == created.metadata.uid
    with pytest.raises(errors.ObjectNotFoundError):
        await inside.get(Claim, "c", namespace="default")


@pytest.mark.parametrize(
    ("verb", "place", "want"),
    [
        pytest.param(
            "update",
            local.Place(group="", version="v1", plural="nothings", namespace="default", name="x"),
            "could not find the requested resource",
            id="no-such-resource",
        ),
        pytest.param(
            "update",
            local.Place(group="", version="v1", plural="pods", namespace="default", name="x", subresource="nothing"),
            "could not find the requested resource",
            id="no-such-subresource",
        ),
        pytest.param(
            "create",
            local.Place(group="", version="v1", plural="pods", namespace="default", name="x", subresource="status"),
            "not allow this method",
            id="no-such-verb",
        ),
        pytest.param(
            "update",
            local.Place(group="", version="v1", plural="pods", name="x"),
            "not allow this method",
            id="nowhere",
        ),
    ],
)
async def test_what_is_not_served_is_refused(server: Client, verb: str, place: local.Place, want: str) -> None:
    backend = inprocess.InProcess(server.app.dispatcher)
    for _ in range(2):
        with pytest.raises(errors.RefusedError, match=want):
            await backend.write(local.Write(verb, place, b"{}", {}))


async def test_bodies_have_the_limit_of_those_from_the_wire(server: Client) -> None:
    backend = inprocess.InProcess(server.app.dispatcher)
    place = local.Place(group="", version="v1", plural="pods", namespace="default")
    body = bytes(BODY_LIMIT + 1)
    with pytest.raises(errors.RefusedError, match=f"limit is {BODY_LIMIT}"):
        await backend.write(local.Write("create", place, body, {}))


DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "d", "namespace": "default"},
    "spec": {
        "selector": {"matchLabels": {"app": "d"}},
        "template": {
            "metadata": {"labels": {"app": "d"}},
            "spec": {"containers": [{"name": "main", "image": "registry.example/pause:3.10"}]},
        },
    },
}
DEPLOYMENTS = target.metadata_of("apps", "v1", plural="deployments", kind="Deployment", namespaced=True)


async def test_a_patch_of_the_scale_scales(server: Client, inside: local.LocalClient) -> None:
    await inside.create_document(DEPLOYMENTS, DEPLOYMENT)
    scale = patches.merge({"spec": {"replicas": 3}})
    await inside.patch(DEPLOYMENTS, "d", namespace="default", subresource="scale", patch=scale)
    stored = (await server.call("GET", "/apis/apps/v1/namespaces/default/deployments/d")).body
    assert stored["spec"]["replicas"] == 3
    assert stored["spec"]["template"]["spec"]["containers"][0]["name"] == "main"


async def test_a_scale_is_read_and_replaced(server: Client, inside: local.LocalClient) -> None:
    await inside.create_document(DEPLOYMENTS, DEPLOYMENT)
    backend = inprocess.InProcess(server.app.dispatcher)
    place = local.Place(
        group="apps", version="v1", plural="deployments", namespace="default", name="d", subresource="scale"
    )
    scale = msgspec.json.decode((await backend.get(place)).data)
    assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 1})
    scale["spec"]["replicas"] = 5
    body = msgspec.json.encode(scale)
    answer = await backend.write(local.Write("update", place, body, {}))
    assert msgspec.json.decode(answer.data)["spec"] == {"replicas": 5}
    with pytest.raises(errors.ObjectConflictError):
        await backend.write(local.Write("update", place, body, {}))


def _without_owners(document: dict[str, Any]) -> dict[str, Any]:
    """An object as typed clients read it."""
    metadata = {field: value for field, value in document["metadata"].items() if field != "managedFields"}
    return {**document, "metadata": metadata}


async def test_both_doors_select_alike(server: Client, inside: local.LocalClient) -> None:
    version = (await inside.list(Claim)).resource_version
    selection = protocol.Selection("default", labels="a=b")
    query = f"watch=1&labelSelector=a%3Db&resourceVersion={version}"
    async with (
        inside.watch(Claim, selection, resource_version=version) as watch,
        server.watch(f"{CLAIMS}?{query}") as stream,
    ):
        await inside.create(new())
        for labels in ({"a": "b"}, {"c": "d"}, {"a": "c"}, {"a": "b"}):
            await inside.patch(Claim, "c", namespace="default", patch=patches.merge({"metadata": {"labels": labels}}))
        await inside.delete(Claim, "c", namespace="default")
        over_http = [await stream.event() for _ in range(5)]
        in_process: list[protocol.Event[Claim]] = []
        while len(in_process) < len(over_http):
            in_process += await watch.batch()
    assert [event.change.value for event in in_process] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]
    assert [(event.change.value, event.object) for event in in_process] == [
        (event["type"], codec.decode(_without_owners(event["object"]))) for event in over_http
    ]


async def test_documents_are_in_the_version_that_is_asked_for(inside: local.LocalClient) -> None:
    autoscalers = {
        version: target.metadata_of(
            "autoscaling", version, plural="horizontalpodautoscalers", kind="HorizontalPodAutoscaler", namespaced=True
        )
        for version in ("v1", "v2")
    }
    spec = {
        "maxReplicas": 3,
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
        "targetCPUUtilizationPercentage": 7,
    }
    head = {"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler"}
    made = await inside.create_document(
        autoscalers["v1"], {**head, "metadata": {"name": "a", "namespace": "default"}, "spec": spec}
    )
    old = await inside.get_document(autoscalers["v1"], "a", namespace="default")
    new_form = await inside.get_document(autoscalers["v2"], "a", namespace="default")
    assert (made["apiVersion"], made["spec"]["targetCPUUtilizationPercentage"]) == ("autoscaling/v1", 7)
    assert old == made
    assert (new_form["apiVersion"], new_form["spec"]["metrics"][0]["type"]) == ("autoscaling/v2", "Resource")
    updated = await inside.update_document(autoscalers["v1"], {**old, "spec": {**old["spec"], "maxReplicas": 4}})
    assert (updated["apiVersion"], updated["spec"]["maxReplicas"]) == ("autoscaling/v1", 4)
