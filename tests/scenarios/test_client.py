"""What every client does: in process, on a socket, and over HTTP on loopback, against drachma's own server."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from msgspec import structs

from drachma import errors
from drachma.api import deviceclass, meta, namespace, pod, resourceclaim
from drachma.api.struct import Struct
from drachma.client import Change, Client, Event, Selection, patches, target
from drachma.runtime import Informers, clock
from drachma.runtime.informer import Handler
from drachma.testing import PodBuilder, claim, device_class
from drachma.testing import pod as build_pod
from tests import patience
from tests.scenarios import clusters

Claim = resourceclaim.ResourceClaim
Pod = pod.Pod

CONFIG_MAPS = target.metadata_of("", "v1", plural="configmaps", kind="ConfigMap", namespaced=True)


CLUSTERS = {"local": clusters.local_cluster, "socket": clusters.socket_cluster, "http": clusters.http_cluster}


@pytest.fixture(params=CLUSTERS)
async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[clusters.Cluster]:
    async with asyncio.timeout(patience.SECONDS), CLUSTERS[request.param]() as made:
        yield made


@pytest.fixture
def client(cluster: clusters.Cluster) -> Client:
    return cluster.client


def a_claim(name: str, *, place: str = "default", labels: dict[str, str] | None = None) -> Claim:
    made = claim(name).request("gpu", device_class="gpu.example.com").build()
    return structs.replace(made, metadata=meta.ObjectMeta(name=name, namespace=place, labels=labels or {}))


def a_pod(name: str, builder: PodBuilder | None = None) -> Pod:
    made = (builder or build_pod(name)).build()
    return structs.replace(made, metadata=structs.replace(made.metadata, name=name, namespace="default"))


def pod_document(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "registry.example/pause:3.10"}], **spec},
    }


def names(found: Sequence[meta.Object]) -> list[str]:
    return [each.metadata.name for each in found]


async def events_of(watch: Any, count: int) -> list[str]:
    """So many events, as type and name."""
    events: list[Event[meta.Object]] = []
    while len(events) < count:
        batch = await watch.batch()
        assert batch, "the watch ended early"
        events += [event for event in batch if event.change is not Change.BOOKMARK]
    return [f"{event.change} {event.object.metadata.name}" for event in events]


# Reading and creating


async def test_create_and_get(client: Client) -> None:
    made = await client.create(a_claim("c"))
    exactly = made.spec.devices.requests[0].exactly
    assert exactly is not None
    assert (exactly.allocation_mode, exactly.count) == ("ExactCount", 1), "the server's defaults come back"
    assert made.metadata.uid
    assert await client.get(Claim, "c", namespace="default") == made


async def test_a_name_is_generated(client: Client) -> None:
    unnamed = structs.replace(a_claim("x"), metadata=meta.ObjectMeta(generate_name="c-", namespace="default"))
    made = await client.create(unnamed)
    assert made.metadata.name.startswith("c-")
    assert len(made.metadata.name) > 2


async def test_cluster_scope(client: Client) -> None:
    made = await client.create(device_class("gpu.example.com").build())
    assert await client.get(deviceclass.DeviceClass, "gpu.example.com") == made


async def test_refusals_of_reads_and_creates(client: Client) -> None:
    with pytest.raises(errors.ObjectNotFoundError) as missing:
        await client.get(Claim, "c", namespace="default")
    assert str(missing.value) == 'resourceclaims.resource.k8s.io "c" not found'
    assert (missing.value.code, missing.value.details["name"]) == (404, "c")
    await client.create(a_claim("c"))
    with pytest.raises(errors.ObjectExistsError) as taken:
        await client.create(a_claim("c"))
    assert str(taken.value) == 'resourceclaims.resource.k8s.io "c" already exists'
    with pytest.raises(errors.ObjectNotFoundError, match='namespaces "nowhere" not found'):
        await client.create(a_claim("c", place="nowhere"))
    with pytest.raises(errors.InvalidObjectError) as invalid:
        await client.create(a_claim("Not_A_Name"))
    assert invalid.value.details["causes"][0]["field"] == "metadata.name"


async def test_calls_without_sense(client: Client) -> None:
    with pytest.raises(errors.InvalidValueError, match="no namespace is given"):
        await client.get(Pod, "p")
    with pytest.raises(errors.InvalidValueError, match="is a partial view"):
        await client.update(a_pod("p"))
    with pytest.raises(errors.InvalidValueError, match="a watch needs the resource version"):
        await client.watch(Pod, resource_version="").__aenter__()


async def test_list_selects(client: Client) -> None:
    for name, color in (("c", "red"), ("a", "red"), ("b", "blue")):
        await client.create(a_claim(name, labels={"color": color}))
    await client.create(a_claim("d", place="kube-system", labels={"color": "red"}))
    assert names((await client.list(Claim)).items) == ["a", "b", "c", "d"]
    assert names((await client.list(Claim, Selection("default"))).items) == ["a", "b", "c"]
    assert names((await client.list(Claim, Selection(labels="color=red"))).items) == ["a", "c", "d"]
    assert names((await client.list(Claim, Selection(fields="metadata.name=b"))).items) == ["b"]
    with pytest.raises(errors.BadRequestError, match="unable to parse requirement"):
        await client.list(Claim, Selection(labels="color in red"))
    with pytest.raises(errors.BadRequestError):
        await client.list(Claim, Selection(fields="spec.unheard=x"))


async def test_pages(client: Client) -> None:
    for number in range(5):
        await client.create(a_claim(f"c{number}"))
    first = await client.list(Claim, limit=2)
    assert (names(first.items), first.remaining) == (["c0", "c1"], 3)
    await client.create(a_claim("c11"))
    second = await client.list(Claim, limit=2, continue_token=first.continue_token)
    assert names(second.items) == ["c2", "c3"], "pages are of one moment"
    last = await client.list(Claim, limit=2, continue_token=second.continue_token)
    assert (names(last.items), last.continue_token) == (["c4"], "")
    assert last.resource_version == first.resource_version


async def test_a_page_that_is_too_old(cluster: clusters.Cluster) -> None:
    for number in range(3):
        await cluster.client.create(a_claim(f"c{number}"))
    first = await cluster.client.list(Claim, limit=1)
    await cluster.client.create(a_claim("more"))
    await cluster.store.compact(cluster.store.revision)
    with pytest.raises(errors.HistoryGoneError, match="continue parameter is too old"):
        await cluster.client.list(Claim, limit=1, continue_token=first.continue_token)


# Watching


async def test_watch(client: Client) -> None:
    await client.create(a_claim("before"))
    listed = await client.list(Claim)
    async with client.watch(Claim, resource_version=listed.resource_version) as watch:
        made = await client.create(a_claim("c"))
        await client.patch(Claim, "c", patch=patches.merge({"metadata": {"labels": {"a": "b"}}}), namespace="default")
        await client.delete(Claim, "c", namespace="default")
        assert await events_of(watch, 3) == ["ADDED c", "MODIFIED c", "DELETED c"]
    async with client.watch(Claim, resource_version=made.metadata.resource_version) as watch:
        assert await events_of(watch, 2) == ["MODIFIED c", "DELETED c"], "a watch resumes anywhere"


async def test_events_are_typed_and_complete(client: Client) -> None:
    listed = await client.list(Claim)
    async with client.watch(Claim, resource_version=listed.resource_version) as watch:
        made = await client.create(a_claim("c"))
        event = (await watch.batch())[0]
    assert (event.change, event.object) == (Change.ADDED, made)
    assert event.resource_version == made.metadata.resource_version


async def test_a_watch_that_selects(client: Client) -> None:
    """Objects come and go with what is selected, not with their existence."""
    for name in ("mine", "other"):
        await client.create_document(Pod, pod_document(name))
    listed = await client.list(Pod)
    here = Selection("default", fields="spec.nodeName=here")
    async with client.watch(Pod, here, resource_version=listed.resource_version) as watch:
        await client.bind(listed.items[1], node="there")
        await client.bind(listed.items[0], node="here")
        await client.patch(Pod, "mine", patch=patches.merge({"metadata": {"labels": {"a": "b"}}}), namespace="default")
        await client.delete(Pod, "mine", namespace="default", grace_period_seconds=0)
        assert await events_of(watch, 3) == ["ADDED mine", "MODIFIED mine", "DELETED mine"]
    red = Selection(labels="color=red")
    async with client.watch(Pod, red, resource_version=(await client.list(Pod)).resource_version) as watch:
        for color in ("red", "blue", "red"):
            content = {"metadata": {"labels": {"color": color}}}
            await client.patch(Pod, "other", patch=patches.merge(content), namespace="default")
        assert await events_of(watch, 3) == ["ADDED other", "DELETED other", "ADDED other"]


async def test_a_watch_from_too_long_ago(cluster: clusters.Cluster) -> None:
    start = (await cluster.client.list(Claim)).resource_version
    await cluster.client.create(a_claim("c"))
    await cluster.store.compact(cluster.store.revision)

    async def follow() -> None:
        async with cluster.client.watch(Claim, resource_version=start) as watch:
            await watch.batch()

    with pytest.raises(errors.HistoryGoneError, match="too old resource version"):
        await follow()


async def test_a_watch_ends_with_the_server(cluster: clusters.Cluster) -> None:
    start = (await cluster.client.list(Claim)).resource_version
    async with cluster.client.watch(Claim, resource_version=start) as watch:
        await cluster.client.create(a_claim("c"))
        assert len(await watch.batch()) == 1
        cluster.application.drain()
        assert not await watch.batch()


# Patching and updating


async def test_merge_patch_with_preconditions(client: Client) -> None:
    made = await client.create(a_claim("c"))
    content = {"metadata": {"labels": {"a": "b"}}}
    changed = await client.patch(Claim, "c", patch=patches.merge(content, patches.unchanged(made)), namespace="default")
    assert changed.metadata.labels == {"a": "b"}
    with pytest.raises(errors.ObjectConflictError, match="the object has been modified"):
        await client.patch(Claim, "c", patch=patches.merge(content, patches.unchanged(made)), namespace="default")
    other = patches.Preconditions(uid="another")
    with pytest.raises(errors.ObjectConflictError, match=r"metadata\.uid: .*field is immutable"):
        await client.patch(Claim, "c", patch=patches.merge(content, other), namespace="default")
    with pytest.raises(errors.ObjectNotFoundError):
        await client.patch(Claim, "d", patch=patches.merge(content), namespace="default")


async def test_status_is_written_apart(client: Client) -> None:
    made = await client.create(a_claim("c"))
    result = resourceclaim.DeviceRequestAllocationResult(
        request="gpu", driver="gpu.example.com", pool="node", device="gpu-0"
    )
    allocation = resourceclaim.AllocationResult(devices=resourceclaim.DeviceAllocationResult(results=(result,)))
    content = {"status": {"allocation": allocation}, "metadata": {"labels": {"not": "taken"}}}
    changed = await client.patch(
        Claim, "c", patch=patches.merge(content, patches.unchanged(made)), namespace="default", subresource="status"
    )
    assert changed.status.allocation is not None
    assert changed.status.allocation.devices.results == (result,)
    assert changed.metadata.labels == {}
    reference = resourceclaim.ResourceClaimConsumerReference(resource="pods", name="p", uid="u")
    reserved = await client.update(
        structs.replace(changed, status=structs.replace(changed.status, reserved_for=(reference,))),
        subresource="status",
    )
    assert reserved.status.reserved_for == (reference,)


async def test_json_patch(client: Client) -> None:
    made = await client.create(a_claim("c", labels={"a": "b"}))
    steps = [{"op": "add", "path": "/metadata/labels/c", "value": "d"}]
    changed = await client.patch(Claim, "c", patch=patches.json(steps, patches.same(made)), namespace="default")
    assert changed.metadata.labels == {"a": "b", "c": "d"}
    with pytest.raises(errors.InvalidObjectError):
        await client.patch(
            Claim, "c", patch=patches.json(steps, patches.Preconditions(uid="another")), namespace="default"
        )


async def test_strategic_patch_merges_lists_by_key(client: Client) -> None:
    await client.create_document(Pod, pod_document("p"))

    async def set_condition(kind: str, status: str) -> Pod:
        content = {"status": {"conditions": [{"type": kind, "status": status}]}}
        return await client.patch(Pod, "p", patch=patches.strategic(content), namespace="default", subresource="status")

    await set_condition("Ready", "False")
    await set_condition("PodScheduled", "True")
    changed = await set_condition("Ready", "True")
    found = {condition.type: condition.status for condition in changed.status.conditions}
    assert found == {"Ready": "True", "PodScheduled": "True"}


async def test_apply(client: Client) -> None:
    content = {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}}
    made = await client.patch(Claim, "c", patch=patches.apply(content), namespace="default")
    stored = await client.get_document(Claim, "c", namespace="default")
    assert stored["metadata"]["managedFields"][0]["manager"] == "tester"
    again = await client.patch(Claim, "c", patch=patches.apply(content), namespace="default")
    assert again.metadata.resource_version == made.metadata.resource_version, "nothing changed, nothing written"


async def test_update(client: Client) -> None:
    made = await client.create(a_claim("c"))
    labelled = structs.replace(made, metadata=structs.replace(made.metadata, labels={"a": "b"}))
    changed = await client.update(labelled)
    assert changed.metadata.labels == {"a": "b"}
    with pytest.raises(errors.ObjectConflictError):
        await client.update(labelled)


async def test_typed_objects_have_no_managed_fields_and_updates_keep_them(client: Client) -> None:
    content = {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}}
    applied = await client.patch(Claim, "c", patch=patches.apply(content), namespace="default")
    listed, watched = (await client.list(Claim)).items[0], await first_event(client, applied)
    for typed in (applied, await client.get(Claim, "c", namespace="default"), listed, watched):
        assert typed.metadata.managed_fields == ()
    before = (await client.get_document(Claim, "c", namespace="default"))["metadata"]["managedFields"]
    assert before[0]["operation"] == "Apply"
    await client.update(structs.replace(applied, metadata=structs.replace(applied.metadata, labels={"a": "b"})))
    after = (await client.get_document(Claim, "c", namespace="default"))["metadata"]["managedFields"]
    assert after[0] == before[0], "what was applied is still owned by who applied it"
    assert [each["operation"] for each in after] == ["Apply", "Update"]


async def first_event(client: Client, first: Claim) -> Claim:
    before = int(first.metadata.resource_version) - 1
    async with client.watch(Claim, resource_version=str(before)) as watch:
        return (await watch.batch())[0].object


async def test_unknown_fields_survive(client: Client) -> None:
    """A pod has many fields that the view does not know, and a component that patches it keeps them all."""
    await client.create_document(Pod, pod_document("p", terminationGracePeriodSeconds=7, hostname="h"))
    found = await client.get(Pod, "p", namespace="default")
    await client.patch(
        Pod,
        "p",
        patch=patches.merge({"metadata": {"labels": {"a": "b"}}}, patches.unchanged(found)),
        namespace="default",
    )
    document = await client.get_document(Pod, "p", namespace="default")
    assert (document["spec"]["hostname"], document["spec"]["terminationGracePeriodSeconds"]) == ("h", 7)
    document["metadata"]["labels"]["c"] = "d"
    changed = await client.update_document(Pod, document)
    assert (changed["spec"]["hostname"], changed["metadata"]["labels"]) == ("h", {"a": "b", "c": "d"})


async def test_patched_documents_have_all_fields(client: Client) -> None:
    await client.create_document(Pod, pod_document("p", hostname="h"))
    patch = patches.merge({"metadata": {"labels": {"a": "b"}}})
    document = await client.patch_document(Pod, "p", patch=patch, namespace="default")
    assert (document["kind"], document["spec"]["hostname"], document["metadata"]["labels"]) == ("Pod", "h", {"a": "b"})


class HostnameSpec(Struct, frozen=True, kw_only=True):
    hostname: str = ""


class HostnameView(meta.Object, frozen=True, kw_only=True):
    spec: HostnameSpec = HostnameSpec()


async def test_cache_entries_have_the_whole_document(client: Client) -> None:
    """Objects that were listed, watched and observed: each entry has the fields that the typed view lacks."""
    await client.create_document(Pod, pod_document("listed", hostname="first"))
    async with Informers(client) as informers:
        pods = informers.of(Pod, with_documents=True)
        await informers.wait_synced()
        created = await client.create_document(Pod, pod_document("observed", hostname="second"))
        informers.observe(Pod, created)
        for name, hostname in (("listed", "first"), ("observed", "second")):
            entry = pods.cache.entry(name, namespace="default")
            assert entry is not None
            assert entry.object is pods.cache.get(name, namespace="default")
            assert entry.document() == await client.get_document(Pod, name, namespace="default")
            assert entry.view(target.view_of(target.of(Pod), HostnameView)).spec.hostname == hostname
        await client.create_document(Pod, pod_document("watched", hostname="third"))
        while (entry := pods.cache.entry("watched", namespace="default")) is None:
            await asyncio.sleep(0.001)
        assert entry.document() == await client.get_document(Pod, "watched", namespace="default")
        assert pods.cache.entry("absent", namespace="default") is None


# Deleting


async def test_delete_with_preconditions(client: Client) -> None:
    made = await client.create(a_claim("c"))
    with pytest.raises(errors.ObjectConflictError, match="the UID in the precondition"):
        await client.delete(Claim, "c", namespace="default", preconditions=patches.Preconditions(uid="another"))
    await client.delete(Claim, "c", namespace="default", preconditions=patches.unchanged(made))
    with pytest.raises(errors.ObjectNotFoundError):
        await client.delete(Claim, "c", namespace="default")


async def test_finalizers_hold_an_object(client: Client) -> None:
    metadata = meta.ObjectMeta(name="c", namespace="default", finalizers=("example.com/hold",))
    await client.create(structs.replace(a_claim("c"), metadata=metadata))
    await client.delete(Claim, "c", namespace="default")
    held = await client.get(Claim, "c", namespace="default")
    assert held.metadata.deletion_timestamp is not None
    patch = patches.merge({"metadata": {"finalizers": None}}, patches.unchanged(held))
    await client.patch(Claim, "c", patch=patch, namespace="default")
    with pytest.raises(errors.ObjectNotFoundError):
        await client.get(Claim, "c", namespace="default")


async def test_delete_collection(client: Client) -> None:
    for name, color in (("a", "red"), ("b", "blue"), ("c", "red")):
        await client.create(a_claim(name, labels={"color": color}))
    await client.delete_collection(Claim, Selection("default", labels="color=red"))
    assert names((await client.list(Claim)).items) == ["b"]


async def test_a_namespace_is_finalized(client: Client) -> None:
    await client.create_document(namespace.Namespace, {"kind": "Namespace", "metadata": {"name": "short"}})
    await client.delete(namespace.Namespace, "short")
    document = await client.get_document(namespace.Namespace, "short")
    assert document["status"]["phase"] == "Terminating"
    document["spec"]["finalizers"] = []
    await client.update_document(namespace.Namespace, document, subresource="finalize")
    with pytest.raises(errors.ObjectNotFoundError):
        await client.get(namespace.Namespace, "short")


# Pods


async def test_bind(client: Client) -> None:
    await client.create_document(Pod, pod_document("p"))
    found = await client.get(Pod, "p", namespace="default")
    other = structs.replace(found, metadata=structs.replace(found.metadata, uid="another"))
    with pytest.raises(errors.ObjectConflictError, match="Precondition failed: UID"):
        await client.bind(other, node="here")
    await client.bind(found, node="here")
    assert (await client.get(Pod, "p", namespace="default")).spec.node_name == "here"
    with pytest.raises(errors.ObjectConflictError, match='pod p is already assigned to node "here"'):
        await client.bind(found, node="there")


async def test_evict(client: Client) -> None:
    await client.create_document(Pod, pod_document("p"))
    found = await client.get(Pod, "p", namespace="default")
    await client.evict(found, grace_period_seconds=0)
    with pytest.raises(errors.ObjectNotFoundError):
        await client.evict(found)


# Any resource


async def test_metadata_of_any_resource(client: Client) -> None:
    document = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "m", "namespace": "default"}}
    start = (await client.list(CONFIG_MAPS)).resource_version
    await client.create_document(CONFIG_MAPS, {**document, "data": {"a": "b"}})
    found = await client.get(CONFIG_MAPS, "m", namespace="default")
    assert type(found) is meta.Object
    assert names((await client.list(CONFIG_MAPS)).items) == ["m"]
    async with client.watch(CONFIG_MAPS, resource_version=start) as watch:
        assert await events_of(watch, 1) == ["ADDED m"]
    await client.delete(CONFIG_MAPS, "m", namespace="default", preconditions=patches.same(found))
    assert (await client.list(CONFIG_MAPS)).items == ()


async def test_resources(client: Client) -> None:
    found = {each.qualified: each for each in await client.resources()}
    assert {"pods", "configmaps", "resourceclaims.resource.k8s.io", "jobs.batch"} <= found.keys()
    assert found["resourceslices.resource.k8s.io"].namespaced is False
    for each in found.values():
        await client.list(each)


async def test_a_closed_client(client: Client) -> None:
    await client.close()
    with pytest.raises(errors.UnreachableError, match="the client is closed"):
        await client.list(Claim)


async def test_a_store_that_takes_no_more_writes(cluster: clusters.Cluster) -> None:
    await cluster.client.create(a_claim("c"))
    await cluster.store.close()
    with pytest.raises(errors.ServerFaultError, match="the server is shutting down"):
        await cluster.client.create(a_claim("d"))
    assert names((await cluster.client.list(Claim)).items) == ["c"], "reads go on"


# Informers


class Follower:
    """Waits until an informer's handlers have heard of a version."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._changed = asyncio.Event()
        self.handler: Handler[Claim] = Handler(
            added=lambda new: self._hear(f"added {new.metadata.name}"),
            updated=lambda old, new: self._hear(f"updated {new.metadata.name}"),
            deleted=lambda gone: self._hear(f"deleted {gone.metadata.name}"),
        )

    def _hear(self, line: str) -> None:
        self.lines.append(line)
        self._changed.set()

    async def heard(self, line: str) -> None:
        while line not in self.lines:
            self._changed.clear()
            await self._changed.wait()


async def test_an_informer_follows(client: Client) -> None:
    await client.create(a_claim("first"))
    follower = Follower()
    async with Informers(client) as informers:
        informer = informers.of(Claim)
        informer.add_handler(follower.handler)
        await informers.wait_synced()
        assert follower.lines == ["added first"]
        made = await client.create(a_claim("second", labels={"color": "red"}))
        await follower.heard("added second")
        assert informer.cache.get("second", namespace="default") == made
        await client.delete(Claim, "first", namespace="default")
        await follower.heard("deleted first")
        assert names(tuple(informer.cache)) == ["second"]


async def test_an_informer_ends_up_with_what_there_is(client: Client) -> None:
    """Many writes at random, and in the end the cache is the list."""
    chance, follower = random.Random(3), Follower()
    async with Informers(client) as informers:
        informer = informers.of(Claim)
        informer.add_handler(follower.handler)
        informer.cache.add_index("color", lambda known: [known.metadata.labels.get("color", "none")])
        alive: set[str] = set()
        for number in range(150):
            name = chance.choice([f"c{number}", *sorted(alive)])
            if name not in alive:
                await client.create(a_claim(name))
                alive.add(name)
            elif chance.random() < 0.3:
                await client.delete(Claim, name, namespace="default")
                alive.discard(name)
            else:
                content = {"metadata": {"labels": {"color": chance.choice(["red", "blue"]), "n": str(number)}}}
                await client.patch(Claim, name, patch=patches.merge(content), namespace="default")
        await client.create(a_claim("the-end"))
        await follower.heard("added the-end")
        listed = await client.list(Claim)
        assert {known.metadata.name: known for known in informer.cache} == {
            known.metadata.name: known for known in listed.items
        }
        for color in ("red", "blue", "none"):
            want = sorted(k.metadata.name for k in listed.items if k.metadata.labels.get("color", "none") == color)
            assert sorted(names(informer.cache.by("color", color))) == want


class HastyClock(clock.SystemClock):
    """Waits no longer than others need for their turn."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


@pytest.mark.parametrize("is_forgotten", [pytest.param(False, id="resumes"), pytest.param(True, id="lists-again")])
async def test_an_informer_survives_its_server(is_forgotten: bool) -> None:
    """The server is away for a while and things happen meanwhile; what it forgot of them, a new list has."""
    async with asyncio.timeout(patience.SECONDS), clusters.restarting_cluster() as cluster:
        for name in ("stays", "goes"):
            await cluster.inside.create(a_claim(name))
        await cluster.start()
        follower = Follower()
        async with Informers(cluster.client, clock=HastyClock()) as informers:
            informers.of(Claim).add_handler(follower.handler)
            await informers.wait_synced()
            await cluster.stop()
            await cluster.inside.delete(Claim, "goes", namespace="default")
            await cluster.inside.create(a_claim("comes"))
            await cluster.inside.delete(Claim, "comes", namespace="default")
            if is_forgotten:
                await cluster.store.compact(cluster.store.revision)
            await cluster.inside.create(a_claim("ends"))
            await cluster.start()
            await follower.heard("added ends")
    between = [] if is_forgotten else ["added comes", "deleted comes"]
    assert follower.lines == ["added goes", "added stays", "deleted goes", *between, "added ends"]
