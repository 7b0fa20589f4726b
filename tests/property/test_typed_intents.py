"""What components hand over typed comes out as what clients write as text: stored, owned, told and refused alike."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import hypothesis
import msgspec
import pytest
from hypothesis import strategies as st

from drachma import errors
from drachma.api import codec, event, meta, node, pod, resourceclaim, resourceclaimtemplate, resourceslice
from drachma.client import bodies, http, local, patches, transactions
from drachma.server import inprocess
from drachma.testing import claim
from tests.property.test_codec import values_of
from tests.unit.server import client

Claim = resourceclaim.ResourceClaim
FINALIZER = "resource.kubernetes.io/delete-protection"
SETTINGS = hypothesis.settings(max_examples=25, suppress_health_check=list(hypothesis.HealthCheck))

NAMES = st.sampled_from(["a", "b", "", "Not A Name"])
USERS = st.sampled_from(["p", "q"]).map(
    lambda name: resourceclaim.ResourceClaimConsumerReference(resource="pods", name=name, uid=f"uid-{name}")
)
STATUSES = st.builds(
    lambda is_allocated, users: resourceclaim.ResourceClaimStatus(
        allocation=claim("x")
        .request("gpu", device_class="gpu.example.com")
        .allocated(("gpu", "gpu.example.com", "pool", "gpu-0"))
        .build()
        .status.allocation
        if is_allocated
        else None,
        reserved_for=tuple(users),
    ),
    st.booleans(),
    st.lists(USERS, max_size=2),
)
LABELS = st.dictionaries(st.sampled_from(["x", "y", "not a key!"]), st.sampled_from(["1", "2"]), max_size=2)
FINALIZERS = st.lists(st.sampled_from([FINALIZER, "example.com/keep", "unqualified"]), max_size=2, unique=True)
GOOD_FINALIZERS = st.lists(st.sampled_from([FINALIZER, "example.com/keep"]), max_size=2, unique=True)


class Act(NamedTuple):
    """A change of a claim that is there, of a version of it that may be an old one."""

    subresource: str
    labels: dict[str, str]
    finalizers: list[str]
    status: resourceclaim.ResourceClaimStatus
    is_stale: bool

    def on(self, known: Claim) -> Claim:
        version = "1" if self.is_stale else known.metadata.resource_version
        metadata = msgspec.structs.replace(
            known.metadata, labels=self.labels, finalizers=tuple(self.finalizers), resource_version=version
        )
        return msgspec.structs.replace(known, metadata=metadata, status=self.status)


ACTS = st.builds(
    Act, st.sampled_from(["", "status"]), LABELS, FINALIZERS, STATUSES, st.sampled_from([False, False, True])
)


class Twin:
    """A server, and a client in its process."""

    def __init__(self, server: client.Client) -> None:
        self.store = server.store
        self.backend = inprocess.InProcess(server.app.dispatcher)
        self.client = local.LocalClient(self.backend, manager="component")

    def told(self) -> list[Any]:
        """All that happened to claims and pods, but for versions."""
        events = []
        for resource in ("resource.k8s.io/resourceclaims", "pods", "events"):
            with self.store.watch(resource, after=self.store.compacted) as watch:
                events += [(resource, told.change, _unversioned(told.record.data)) for told in watch.ready()]
        return events

    def held(self) -> list[bytes]:
        """What is there now."""
        return [
            _unversioned(stored.data)
            for resource in ("resource.k8s.io/resourceclaims", "pods", "events")
            for stored in self.store.list(resource).records
        ]

    async def current(self) -> Claim:
        return await self.client.get(Claim, "c", namespace="default")

    async def bind(self, bound: pod.Pod, node: str) -> None:
        place = local.Place(
            group="", version="v1", plural="pods", namespace="default", name=bound.metadata.name, subresource="binding"
        )
        query = {"fieldManager": ("component",), "fieldValidation": ("Ignore",)}
        await self.backend.write(local.Write("create", place, bodies.encode(bodies.binding(bound, node)), query))


def _unversioned(data: bytes) -> bytes:
    document = msgspec.json.decode(data)
    del document["metadata"]["resourceVersion"]
    return msgspec.json.encode(document)


async def twins() -> tuple[Twin, Twin]:
    return Twin(await client.start()), Twin(await client.start())


async def outcome(act: Awaitable[Any]) -> str:
    try:
        await act
    except errors.DrachmaError as error:
        return f"{type(error).__name__}: {error}"
    return "done"


def held_alike(run: Callable[[Twin, Twin], Awaitable[None]]) -> None:
    async def both() -> None:
        typed, plain = await twins()
        await run(typed, plain)
        assert typed.told() == plain.told()
        assert typed.held() == plain.held()

    asyncio.run(both())


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(Claim, id="claim"),
        pytest.param(resourceclaimtemplate.ResourceClaimTemplate, id="template"),
        pytest.param(resourceslice.ResourceSlice, id="slice"),
        pytest.param(event.Event, id="event"),
        pytest.param(node.Node, id="node"),
        pytest.param(pod.Pod, id="pod"),
    ],
)
@SETTINGS
@hypothesis.given(data=st.data())
def test_creates_of_any_object(model: type[meta.Object], data: st.DataObject) -> None:
    made: Any = data.draw(values_of(model))
    is_global = model in (resourceslice.ResourceSlice, node.Node)
    metadata = msgspec.structs.replace(made.metadata, name=data.draw(NAMES), namespace="" if is_global else "default")
    made = msgspec.structs.replace(made, metadata=metadata)

    async def run(typed: Twin, plain: Twin) -> None:
        want = await outcome(plain.client.create_document(model, codec.encode(made)))
        assert await outcome(typed.client.create(made)) == want

    held_alike(run)


def new(**metadata: Any) -> Claim:
    made = claim("c").request("gpu", device_class="gpu.example.com").build()
    return msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, **metadata))


@SETTINGS
@hypothesis.given(labels=LABELS, acts=st.lists(ACTS, max_size=4))
def test_updates_of_claims(labels: dict[str, str], acts: Sequence[Act]) -> None:
    async def run(typed: Twin, plain: Twin) -> None:
        made = new(labels=labels)
        want = await outcome(plain.client.create_document(Claim, codec.encode(made)))
        assert await outcome(typed.client.create(made)) == want
        if want != "done":
            return
        for act in acts:
            changed = codec.encode(act.on(await plain.current()))
            want = await outcome(plain.client.update_document(Claim, changed, subresource=act.subresource))
            updating = typed.client.update(act.on(await typed.current()), subresource=act.subresource)
            assert await outcome(updating) == want

    held_alike(run)


@SETTINGS
@hypothesis.given(first=ACTS, second=ACTS, nodes=st.lists(st.sampled_from(["n", "m"]), max_size=2))
def test_changes_together_leave_what_they_leave_one_by_one(first: Act, second: Act, nodes: list[str]) -> None:
    """Or, where one of them is refused, nothing at all; the refusal is that of the first that is."""

    async def run() -> None:
        typed, plain = await twins()
        for twin in (typed, plain):
            await twin.client.create(new())
            await twin.client.create(pod.Pod(metadata=meta.ObjectMeta(name="p", namespace="default"), spec=SPEC))
        before = typed.held()
        known = await typed.current()
        bound = await typed.client.get(pod.Pod, "p", namespace="default")
        changes: list[transactions.Change] = [
            transactions.Update(first.on(known), first.subresource),
            transactions.Update(second.on(known), second.subresource),
            *(transactions.Bind(bound, each) for each in nodes),
        ]
        want, position = await _one_by_one(plain, first, second, nodes)
        if want is None:
            await typed.client.commit(changes)
            assert typed.held() == plain.held()
            return
        with pytest.raises(errors.CommitRefusedError) as caught:
            await typed.client.commit(changes)
        assert (f"{type(caught.value.refusal).__name__}: {caught.value}", caught.value.position) == (want, position)
        assert typed.held() == before

    asyncio.run(run())


SPEC = pod.PodSpec(containers=(pod.Container(name="main", image="pause"),))


async def _one_by_one(plain: Twin, first: Act, second: Act, nodes: list[str]) -> tuple[str | None, int]:
    """How the first change that is refused is, and which it is."""
    for position, act in enumerate((first, second)):
        changed = codec.encode(act.on(await plain.current()))
        said = await outcome(plain.client.update_document(Claim, changed, subresource=act.subresource))
        if said != "done":
            return said, position
    bound = await plain.client.get(pod.Pod, "p", namespace="default")
    for position, each in enumerate(nodes, start=2):
        said = await outcome(plain.bind(bound, each))
        if said != "done":
            return said, position
    return None, 0


@SETTINGS
@hypothesis.given(steps=st.lists(st.tuples(FINALIZERS, st.booleans()), max_size=4), is_deleted=st.booleans())
def test_finalizers(steps: Sequence[tuple[list[str], bool]], is_deleted: bool) -> None:
    async def run(typed: Twin, plain: Twin) -> None:
        for twin in (typed, plain):
            await twin.client.create(new(finalizers=("example.com/first",)))
            if is_deleted:
                await twin.client.delete(Claim, "c", namespace="default")
        stale = await plain.current(), await typed.current()
        for finalizers, is_stale in steps:
            try:
                known, ours = stale if is_stale else (await plain.current(), await typed.current())
            except errors.ObjectNotFoundError:
                return
            patch = patches.merge({"metadata": {"finalizers": finalizers or None}}, patches.unchanged(known))
            want = await outcome(plain.client.patch(Claim, "c", patch=patch, namespace="default"))
            committing = typed.client.commit([transactions.Finalizers(ours, tuple(finalizers))])
            said = await outcome(committing)
            assert said.partition(": ")[2] == want.partition(": ")[2]

    held_alike(run)


STATES = st.builds(
    Act, st.just("status"), st.just({}), FINALIZERS, STATUSES, st.sampled_from([False, False, False, True])
)


@SETTINGS
@hypothesis.given(
    states=st.lists(STATES, min_size=1, max_size=4), is_kept=st.booleans(), deleted=st.none() | st.just(1)
)
def test_states_of_claims(states: Sequence[Act], is_kept: bool, deleted: int | None) -> None:
    """Finalizers and status at once are what they are one after the other, as one version of the claim."""

    async def run(typed: Twin, plain: Twin) -> None:
        for twin in (typed, plain):
            await twin.client.create(new(finalizers=("example.com/first",) if is_kept else ()))
        for position, act in enumerate(states):
            if position == deleted:
                for twin in (typed, plain):
                    await twin.client.delete(Claim, "c", namespace="default")
            try:
                known, ours = await plain.current(), await typed.current()
            except errors.ObjectNotFoundError:
                break
            before = typed.store.revision
            want = await outcome(_finalizers_and_status(plain, act, known))
            state = transactions.StatusChange(act.on(ours), act.status, tuple(act.finalizers))
            said = await outcome(typed.client.commit([state]))
            assert said.partition(": ")[2] == want.partition(": ")[2]
            assert typed.store.revision <= before + 1
            if want != "done":
                assert typed.store.revision == before
                break
            assert typed.held() == plain.held()

    async def both() -> None:
        await run(*await twins())

    asyncio.run(both())


async def _finalizers_and_status(plain: Twin, act: Act, known: Claim) -> None:
    """As a component does it over HTTP: a claim has its finalizer as long as it is allocated."""
    known = act.on(known)

    async def finalize(claim: Claim) -> Claim:
        patch = patches.merge({"metadata": {"finalizers": act.finalizers or None}}, patches.unchanged(claim))
        return await plain.client.patch(Claim, "c", patch=patch, namespace="default")

    async def restate(claim: Claim) -> Claim:
        changed = codec.encode(msgspec.structs.replace(claim, status=act.status))
        await plain.client.update_document(Claim, changed, subresource="status")
        return await plain.current()

    stored = await plain.current()
    is_other = tuple(act.finalizers) != stored.metadata.finalizers
    if act.is_stale:
        await (finalize if is_other and act.finalizers else restate)(known)
    elif not is_other:
        await restate(known)
    elif act.finalizers:
        await restate(await finalize(known))
    else:
        await finalize(await restate(known))


@SETTINGS
@hypothesis.given(finalizers=GOOD_FINALIZERS, is_other=st.booleans(), is_kept=st.booleans())
def test_deletions_together_with_the_last_finalizer(finalizers: list[str], is_other: bool, is_kept: bool) -> None:
    """What is left of a claim that is let go and deleted at once, and what is told of it in the end."""

    async def run() -> None:
        typed, plain = await twins()
        for twin in (typed, plain):
            await twin.client.create(new(finalizers=tuple(finalizers)))
        known, ours = await plain.current(), await typed.current()
        if is_other:
            ours = msgspec.structs.replace(ours, metadata=msgspec.structs.replace(ours.metadata, uid="other"))
        kept = tuple(finalizers) if is_kept else ()
        before = typed.store.revision
        said = await outcome(typed.client.commit([transactions.Finalizers(ours, kept), transactions.Delete(ours)]))
        if is_other:
            assert said != "done"
            assert typed.store.revision == before
            return
        assert said == "done"
        patch = patches.merge({"metadata": {"finalizers": kept or None}}, patches.unchanged(known))
        await plain.client.patch(Claim, "c", patch=patch, namespace="default")
        await plain.client.delete(Claim, "c", namespace="default", preconditions=patches.same(known))
        assert typed.store.revision == before + 1
        assert typed.held() == plain.held()
        assert typed.told()[-1] == plain.told()[-1]

    asyncio.run(run())


@SETTINGS
@hypothesis.given(
    named=st.lists(st.sampled_from(["gpu", "net"]), max_size=2, unique=True),
    names=st.lists(st.sampled_from(["gpu", "net", "odd"]), min_size=1, max_size=3, unique=True),
    claim_name=st.sampled_from(["p-gpu-x", "Not A Name"]),
    is_other=st.sampled_from([False, False, True]),
)
def test_names_of_claims(named: list[str], names: list[str], claim_name: str, is_other: bool) -> None:
    entries = tuple(pod.PodResourceClaim(name=name, resource_claim_template_name="t") for name in ("gpu", "net"))
    spec = msgspec.structs.replace(SPEC, resource_claims=entries)
    statuses = tuple(pod.PodResourceClaimStatus(name=name, resource_claim_name=claim_name) for name in names)
    before = [pod.PodResourceClaimStatus(name=name, resource_claim_name="earlier") for name in named]

    async def run(typed: Twin, plain: Twin) -> None:
        for twin in (typed, plain):
            await twin.client.create(pod.Pod(metadata=meta.ObjectMeta(name="p", namespace="default"), spec=spec))
            if before:
                earlier = patches.strategic({"status": {"resourceClaimStatuses": before}})
                await twin.client.patch(pod.Pod, "p", patch=earlier, namespace="default", subresource="status")
        known = await plain.client.get(pod.Pod, "p", namespace="default")
        if is_other:
            known = msgspec.structs.replace(known, metadata=msgspec.structs.replace(known.metadata, uid="other"))
        patch = patches.strategic({"status": {"resourceClaimStatuses": statuses}}, patches.same(known))
        want = await outcome(plain.client.patch(pod.Pod, "p", patch=patch, namespace="default", subresource="status"))
        said = await outcome(typed.client.commit([naming(known, statuses)]))
        assert said.partition(": ")[2] == want.partition(": ")[2]

    held_alike(run)


def naming(owner: pod.Pod, statuses: tuple[pod.PodResourceClaimStatus, ...]) -> transactions.StatusChange:
    status = pod.PodStatus(resource_claim_statuses=statuses)
    return transactions.StatusChange(owner, status, fields=("resourceClaimStatuses",))


async def test_a_claim_and_its_name_in_the_status_of_its_pod() -> None:
    typed, plain = await twins()
    entry = pod.PodResourceClaim(name="gpu", resource_claim_template_name="t")
    spec = msgspec.structs.replace(SPEC, resource_claims=(entry,))
    for twin in (typed, plain):
        await twin.client.create(pod.Pod(metadata=meta.ObjectMeta(name="p", namespace="default"), spec=spec))
    made = new(name="p-gpu-x")
    names = (pod.PodResourceClaimStatus(name="gpu", resource_claim_name="p-gpu-x"),)
    owner = await typed.client.get(pod.Pod, "p", namespace="default")
    before = typed.store.revision
    created, patched = await typed.client.commit([transactions.Create(made), naming(owner, names)])
    assert [int(each.metadata.resource_version) for each in (created, patched)] == [before + 1, before + 2]
    await plain.client.create_document(Claim, codec.encode(made))
    patch = patches.strategic({"status": {"resourceClaimStatuses": names}})
    await plain.client.patch(pod.Pod, "p", patch=patch, namespace="default", subresource="status")
    assert typed.told() == plain.told()


def test_only_the_client_in_process_offers_it() -> None:
    assert issubclass(local.LocalClient, transactions.Transactions)
    assert not issubclass(http.HttpClient, transactions.Transactions)
