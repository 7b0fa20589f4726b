"""Claims and binding in one commit, where the scheduler is in the server's process and alone."""

from typing import Any

import pytest

from drachma.api import event, meta, namespace, pod, resourceclaim
from drachma.client import local, patches, transactions
from drachma.testing import claim, device, device_class, node, resource_slice
from drachma.testing import pod as a_pod
from tests.scenarios import schedulers

DRIVER = "gpu.example.com"
Claim = resourceclaim.ResourceClaim


async def prepared(world: schedulers.SchedulerWorld, *claims: str) -> None:
    devices = [device(f"gpu-{number}") for number in range(4)]
    await world.create(
        node("n1"),
        resource_slice("slice-n1", driver=DRIVER, pool="n1").on_node("n1").devices(*devices),
        device_class("gpu", f'device.driver == "{DRIVER}"'),
    )
    for name in claims:
        await world.create(claim(name).request("r", device_class="gpu"))


def user(*claims: str) -> Any:
    made = a_pod("p").container("c", claims=tuple(f"x-{name}" for name in claims))
    for name in claims:
        made = made.claim(f"x-{name}", claim=name)
    return made


async def test_the_event_is_in_it() -> None:
    async with schedulers.cluster() as world:
        await prepared(world, "c")
        await world.create(user("c"))
        told = await world.client.list(event.Event)
        assert [each.message for each in told.items] == ["Successfully assigned default/p to n1"]
        assert int(told.items[0].metadata.resource_version) == (await versions(world, "c"))[-1] + 1


async def test_an_event_that_is_refused_keeps_no_pod_from_its_node() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await world.create(node("n1"))
        await world.client.create(namespace.Namespace(metadata=meta.ObjectMeta(name="going")))
        client = await meddled(world)

        async def terminate() -> None:
            await world.client.delete(namespace.Namespace, "going")

        client.first = terminate
        await world.create(a_pod("p", namespace="going").container("c"))
        await world.settle()
        assert client.commits == 2
        bound = await world.client.get(pod.Pod, "p", namespace="going")
        assert bound.spec.node_name == "n1"


async def versions(world: schedulers.SchedulerWorld, *claims: str) -> list[int]:
    objects = [await world.claim(name) for name in claims]
    return [int(each.metadata.resource_version) for each in (*objects, await world.pod("p"))]


@pytest.mark.parametrize(
    "claims", [pytest.param(("c",), id="one-claim"), pytest.param(("c", "d", "e"), id="several-claims")]
)
async def test_claims_and_binding_are_one_commit(claims: tuple[str, ...]) -> None:
    async with schedulers.cluster() as world:
        await prepared(world, *claims)
        before = (await world.client.list(Claim)).resource_version
        async with world.client.watch(Claim, resource_version=before) as watch:
            await world.create(user(*claims))
            events = await watch.batch()
        # Finalizer, allocation and reservation of each are one version.
        assert [event.object.metadata.name for event in events] == list(claims)
        for event in events:
            assert event.object.metadata.finalizers == ("resource.kubernetes.io/delete-protection",)
            assert event.object.status.allocation is not None
            assert [each.name for each in event.object.status.reserved_for] == ["p"]
        found = await versions(world, *claims)
        assert found == [*range(found[0], found[0] + len(claims) + 1)]
        assert await world.node_of("p") == "n1"


class Meddling:
    """A client whose next commit comes too late: something else is written first."""

    def __init__(self, client: local.LocalClient) -> None:
        self._client = client
        self.first: Any = None
        self.commits = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def commit(self, changes: list[transactions.Change]) -> Any:
        first, self.first = self.first, None
        if first is not None and any(isinstance(change, transactions.Bind) for change in changes):
            await first()
        self.commits += 1
        return await self._client.commit(changes)


async def meddled(world: schedulers.SchedulerWorld) -> Meddling:
    client: Any = Meddling(world.client)  # type: ignore[arg-type]
    await world.start(client=client)
    assert isinstance(client, Meddling)
    return client


async def test_a_claim_that_changed_meanwhile_is_written_in_steps() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await prepared(world, "c")
        client = await meddled(world)

        async def label() -> None:
            change = patches.merge({"metadata": {"labels": {"some": "news"}}})
            await world.client.patch(Claim, "c", namespace="default", patch=change)

        client.first = label
        await world.create(user("c"))
        await world.advance(1)
        assert client.commits == 1
        assert await world.node_of("p") == "n1"
        bound = await world.claim("c")
        assert (bound.metadata.labels, await world.users("c")) == ({"some": "news"}, ["p"])


async def test_a_pod_that_cannot_be_bound_leaves_nothing_behind() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await prepared(world, "c")
        client = await meddled(world)

        async def bind() -> None:
            await world.client.bind(await world.client.get(pod.Pod, "p", namespace="default"), node="elsewhere")

        before = await world.claim("c")
        client.first = bind
        await world.create(user("c"))
        await world.settle()
        assert client.commits == 1
        assert await world.node_of("p") == "elsewhere"
        assert await world.claim("c") == before
        # The claim is free for others; then the first pod gets it, too, as one that runs without.
        await world.create(a_pod("q").container("c", claims=("x",)).claim("x", claim="c"))
        await world.advance(1)
        assert await world.node_of("q") == "n1"
        assert sorted(await world.users("c")) == ["p", "q"]
