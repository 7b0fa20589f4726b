"""The HTTP client's own affairs: paths and bodies, versions, watches on the wire. What both clients do alike is
tested in tests/scenarios/test_client.py."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from drachma import errors
from drachma.api import codec, meta, node, pod, resourceclaim, resourceslice
from drachma.client import Change, Event, Selection, access, http, patches, target
from drachma.testing import claim, resource_slice
from tests.unit.client.clocks import FakeClock
from tests.unit.client.fakeserver import Answer, FakeServer, refused, serving

POD = {"metadata": {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": "5"}, "spec": {"nodeName": "n"}}
MANAGED = "fieldManager=tester&fieldValidation=Ignore"
NEWEST = Answer(
    body={
        "resources": [
            {"name": name, "kind": "Any", "namespaced": True, "verbs": ["get"]}
            for name in ("resourceclaims", "resourceslices")
        ]
    }
)


@asynccontextmanager
async def client_of(*answers: Answer) -> AsyncIterator[tuple[http.HttpClient, FakeServer]]:
    async with serving(*answers) as server:
        reached = access.Access(server=server.url + "/prefix", source="test")
        async with http.HttpClient(reached, manager="tester", clock=FakeClock()) as client:
            yield client, server


async def test_get() -> None:
    async with client_of(Answer(body=POD)) as (client, server):
        stored_pod = await client.get(pod.Pod, "p", namespace="ns")
    assert server.lines == ["GET /prefix/api/v1/namespaces/ns/pods/p"]
    assert (stored_pod.metadata.name, stored_pod.spec.node_name) == ("p", "n")


async def test_list() -> None:
    answer = {"metadata": {"resourceVersion": "9", "continue": "t", "remainingItemCount": 3}, "items": [POD]}
    async with client_of(Answer(body=answer)) as (client, server):
        page = await client.list(
            pod.Pod, Selection("ns", labels="a=b,c", fields="spec.nodeName=n"), limit=1, continue_token="x"
        )
    assert server.lines == [
        "GET /prefix/api/v1/namespaces/ns/pods?labelSelector=a%3Db,c&fieldSelector=spec.nodeName%3Dn&limit=1&continue=x"
    ]
    assert (len(page.items), page.resource_version, page.continue_token, page.remaining) == (1, "9", "t", 3)


async def test_what_go_servers_write_as_null_is_absent() -> None:
    odd = {"metadata": {"name": "p", "labels": None, "creationTimestamp": None}, "spec": {"containers": None}}
    lines = msgspec.json.encode({"type": "ADDED", "object": odd}) + b"\n"
    answers = Answer(body=odd), Answer(body={"metadata": {}, "items": [odd]}), Answer(body={"items": None})
    async with client_of(*answers, Answer(parts=[lines])) as (client, _):
        assert (await client.get(pod.Pod, "p", namespace="ns")).metadata.labels == {}
        assert (await client.list(pod.Pod)).items[0].spec.containers == ()
        assert (await client.list(pod.Pod)).items == ()
        async with client.watch(pod.Pod, resource_version="1") as watch:
            assert (await watch.batch())[0].object.metadata.name == "p"


@pytest.mark.parametrize(
    ("body", "want_message"),
    [
        pytest.param("<html>", "answer about pods: not JSON", id="not-json"),
        pytest.param([1], "answer about pods: expected an object, found a list", id="not-an-object"),
        pytest.param(
            {"metadata": {"name": "p", "namespace": "ns"}, "spec": {"nodeName": 5}},
            "Pod ns/p in v1: spec.nodeName: expected a string, found number 5",
            id="of-a-wrong-type",
        ),
    ],
)
async def test_answers_without_sense(body: Any, want_message: str) -> None:
    async with client_of(Answer(body=body)) as (client, _):
        with pytest.raises(errors.DecodeError) as caught:
            await client.get(pod.Pod, "p", namespace="ns")
    assert want_message in str(caught.value)


async def test_a_watch_is_put_together_from_parts() -> None:
    def line(kind: str, revision: int) -> bytes:
        metadata = {"name": "p", "resourceVersion": str(revision)}
        return msgspec.json.encode({"type": kind, "object": {"metadata": metadata}}) + b"\n"

    body = line("ADDED", 6) + line("MODIFIED", 7) + b"\n" + line("BOOKMARK", 8) + line("DELETED", 9)
    parts = [body[:10], body[10:200], body[200:210], body[210:]]
    async with client_of(Answer(parts=parts)) as (client, server):
        events: list[Event[pod.Pod]] = []
        async with client.watch(pod.Pod, Selection("ns"), resource_version="5", timeout_seconds=60) as watch:
            while batch := await watch.batch():
                events.extend(batch)
    assert [(event.change, event.resource_version) for event in events] == [
        (Change.ADDED, "6"),
        (Change.MODIFIED, "7"),
        (Change.BOOKMARK, "8"),
        (Change.DELETED, "9"),
    ]
    query = "watch=true&allowWatchBookmarks=true&resourceVersion=5&timeoutSeconds=60"
    assert server.lines == [f"GET /prefix/api/v1/namespaces/ns/pods?{query}"]


async def test_events_before_an_error_are_told_first() -> None:
    added = msgspec.json.encode({"type": "ADDED", "object": POD}) + b"\n"
    expired = {"kind": "Status", "status": "Failure", "message": "too old", "reason": "Expired", "code": 410}
    failed = msgspec.json.encode({"type": "ERROR", "object": expired}) + b"\n"
    async with (
        client_of(Answer(parts=[added + failed])) as (client, _),
        client.watch(pod.Pod, resource_version="5") as watch,
    ):
        assert len(await watch.batch()) == 1
        with pytest.raises(errors.HistoryGoneError, match="too old"):
            await watch.batch()


async def test_a_watch_that_is_refused_and_one_that_breaks_off() -> None:
    async with client_of(refused(410, "Expired"), Answer(parts=[b"{"], breaks_off=True)) as (client, _):
        with pytest.raises(errors.HistoryGoneError):
            await client.watch(pod.Pod, resource_version="5").__aenter__()
        async with client.watch(pod.Pod, resource_version="5") as watch:
            with pytest.raises(errors.UnreachableError, match="the watch broke off"):
                await watch.batch()


async def test_bodies_of_writes() -> None:
    bound = codec.decode({"apiVersion": "v1", "kind": "Pod", **POD})
    assert isinstance(bound, pod.Pod)
    async with client_of(*[Answer(body=POD)] * 6) as (client, server):
        await client.bind(bound, node="n")
        await client.evict(bound, grace_period_seconds=0)
        await client.delete(pod.Pod, "p", namespace="ns", preconditions=patches.same(bound), propagation="Background")
        await client.delete_collection(pod.Pod, Selection("ns", labels="a=b"))
        await client.patch(pod.Pod, "p", patch=patches.merge({"status": {}}), namespace="ns", subresource="status")
        await client.patch(pod.Pod, "p", patch=patches.apply({"spec": {}}, force=True), namespace="ns")
    assert server.lines == [
        f"POST /prefix/api/v1/namespaces/ns/pods/p/binding?{MANAGED}",
        f"POST /prefix/api/v1/namespaces/ns/pods/p/eviction?{MANAGED}",
        "DELETE /prefix/api/v1/namespaces/ns/pods/p",
        "DELETE /prefix/api/v1/namespaces/ns/pods?labelSelector=a%3Db",
        f"PATCH /prefix/api/v1/namespaces/ns/pods/p/status?{MANAGED}",
        f"PATCH /prefix/api/v1/namespaces/ns/pods/p?{MANAGED}&force=true",
    ]
    binding, eviction, deletion, _, _, apply = (msgspec.json.decode(request.body) for request in server.asked)
    assert binding["metadata"]["uid"] == "u"
    assert binding["target"] == {"kind": "Node", "name": "n"}
    assert eviction["deleteOptions"] == {"gracePeriodSeconds": 0, "preconditions": {"uid": "u"}}
    assert (deletion["preconditions"], deletion["propagationPolicy"]) == ({"uid": "u"}, "Background")
    assert apply == {"apiVersion": "v1", "kind": "Pod", "spec": {}, "metadata": {"name": "p"}}
    assert server.asked[4].headers["Content-Type"] == "application/merge-patch+json"


async def test_the_newest_version_that_both_know_is_spoken() -> None:
    old = {"metadata": {"name": "c", "namespace": "ns"}, "spec": {"devices": {"requests": [{"name": "r"}]}}}
    old["spec"]["devices"]["requests"][0]["deviceClassName"] = "gpu"  # type: ignore[index]
    answers = refused(404, "NotFound"), Answer(body={"resources": []}), NEWEST, Answer(body=old), Answer(body=old)
    async with client_of(*answers) as (client, server):
        stored_claim = await client.get(resourceclaim.ResourceClaim, "c", namespace="ns")
        new_claim = claim("c").request("r", device_class="gpu").build()
        metadata = msgspec.structs.replace(new_claim.metadata, namespace="ns")
        await client.create(msgspec.structs.replace(new_claim, metadata=metadata))
        with pytest.raises(errors.InvalidValueError, match="spec cannot be patched: the server has"):
            await client.patch(resourceclaim.ResourceClaim, "c", patch=patches.merge({"spec": {}}), namespace="ns")
    assert server.lines == [
        "GET /prefix/apis/resource.k8s.io/v1",
        "GET /prefix/apis/resource.k8s.io/v1beta2",
        "GET /prefix/apis/resource.k8s.io/v1beta1",
        "GET /prefix/apis/resource.k8s.io/v1beta1/namespaces/ns/resourceclaims/c",
        f"POST /prefix/apis/resource.k8s.io/v1beta1/namespaces/ns/resourceclaims?{MANAGED}",
    ]
    exactly = stored_claim.spec.devices.requests[0].exactly
    assert exactly is not None
    assert exactly.device_class_name == "gpu"
    sent = msgspec.json.decode(server.asked[-1].body)
    assert sent["apiVersion"] == "resource.k8s.io/v1beta1"
    assert sent["spec"]["devices"]["requests"] == [{"name": "r", "deviceClassName": "gpu"}]


async def test_a_kind_that_the_server_does_not_have() -> None:
    async with client_of(*[refused(404, "NotFound")] * 4) as (client, _):
        with pytest.raises(errors.ObjectNotFoundError, match="the server has it in none of"):
            await client.get(resourceslice.ResourceSlice, "s")


async def test_only_complete_kinds_are_updated() -> None:
    new_slice = resource_slice("s", driver="d", pool="p").build()
    async with client_of(NEWEST, Answer(body={"metadata": {"name": "s"}})) as (client, server):
        await client.update(new_slice)
        with pytest.raises(errors.InvalidValueError, match="nodes 'n': is a partial view"):
            await client.update(node.Node(metadata=meta.ObjectMeta(name="n")))
    assert server.lines[1:] == [f"PUT /prefix/apis/resource.k8s.io/v1/resourceslices/s?{MANAGED}"]


@pytest.mark.parametrize(
    ("kind", "name", "namespace", "want_message"),
    [
        pytest.param(pod.Pod, "p", "", "is namespaced, and no namespace is given", id="no-namespace"),
        pytest.param(node.Node, "n", "ns", "is not namespaced, and namespace 'ns' is given", id="namespace"),
        pytest.param(pod.Pod, "", "ns", "an object's name must not be empty", id="no-name"),
        pytest.param(pod.Pod, "../../nodes/n", "ns", "cannot be part of a path", id="path-in-name"),
        pytest.param(pod.Pod, "p", "..", "namespace '..' cannot be part of a path", id="path-in-namespace"),
    ],
)
async def test_calls_without_sense(kind: Any, name: str, namespace: str, want_message: str) -> None:
    async with client_of() as (client, server):
        with pytest.raises(errors.InvalidValueError) as caught:
            await client.get(kind, name, namespace=namespace)
    assert want_message in str(caught.value)
    assert server.lines == []


async def test_metadata_of_any_resource() -> None:
    replica_sets = target.metadata_of("apps", "v1", plural="replicasets", kind="ReplicaSet", namespaced=True)
    async with client_of(Answer(body=POD), Answer(body={"items": [POD]})) as (client, server):
        replica_set = await client.get(replica_sets, "r", namespace="ns")
        await client.list(replica_sets)
    assert (type(replica_set), replica_set.metadata.uid) == (meta.Object, "u")
    assert server.lines == [
        "GET /prefix/apis/apps/v1/namespaces/ns/replicasets/r",
        "GET /prefix/apis/apps/v1/replicasets",
    ]
    assert "as=PartialObjectMetadata;" in server.asked[0].headers["Accept"]
    assert "as=PartialObjectMetadataList;" in server.asked[1].headers["Accept"]


async def test_resources() -> None:
    everything = ["delete", "get", "list", "watch"]
    core = {
        "resources": [
            {"name": "pods", "kind": "Pod", "namespaced": True, "verbs": everything},
            {"name": "pods/status", "kind": "Pod", "namespaced": True, "verbs": everything},
            {"name": "bindings", "kind": "Binding", "namespaced": True, "verbs": ["create"]},
        ]
    }
    group = {
        "name": "g",
        "versions": [{"version": "v1beta1"}, {"version": "v1"}],
        "preferredVersion": {"version": "v1"},
    }
    newer = {"resources": [{"name": "things", "kind": "Thing", "namespaced": False, "verbs": everything}]}
    older = {"resources": [*newer["resources"], {**newer["resources"][0], "name": "olds"}]}
    answers = [{"versions": ["v1"]}, {"groups": [group]}, core, newer, older]
    async with client_of(*(Answer(body=body) for body in answers)) as (client, _):
        resources = await client.resources()
    assert [(each.api_version(each.versions[0]), each.plural, each.namespaced) for each in resources] == [
        ("v1", "pods", True),
        ("g/v1", "things", False),
        ("g/v1beta1", "olds", False),
    ]


async def test_resources_are_asked_for_anew() -> None:
    def served(*names: str) -> list[Answer]:
        verbs = ["delete", "list", "watch"]
        listed = [{"name": name, "kind": name, "namespaced": True, "verbs": verbs} for name in names]
        bodies = [{"versions": ["v1"]}, {"groups": []}, {"resources": listed}]
        return [Answer(body=body) for body in bodies]

    async with client_of(*served("as"), *served("as", "bs")) as (client, _):
        first, second = await client.resources(), await client.resources()
    assert ([each.plural for each in first], [each.plural for each in second]) == (["as"], ["as", "bs"])


async def test_resources_without_those_of_extension_servers_that_do_not_answer() -> None:
    verbs = ["delete", "list", "watch"]
    core = {"resources": [{"name": "pods", "kind": "Pod", "namespaced": True, "verbs": verbs}]}
    groups = {"groups": [{"name": "ext.example.com", "versions": [{"version": "v1"}]}]}
    first = [Answer(body={"versions": ["v1"]}), Answer(body=groups), Answer(body=core)]
    unavailable = Answer(code=503, body="service unavailable\n")
    async with client_of(*first, *[unavailable] * 20) as (client, _):
        assert [each.plural for each in await client.resources(needs_all=False)] == ["pods"]
    async with client_of(*first, *[unavailable] * 20) as (client, _):
        with pytest.raises(errors.RefusedError, match="service unavailable"):
            await client.resources()
