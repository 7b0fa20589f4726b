import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from typing import Any

from drachma import errors
from drachma.api import lease
from drachma.scheduler.peering import announcements, membership, peerlease
from tests.unit.controllers import worlds


class Server:
    """Server that counts writes of leases, and refuses them on demand."""

    def __init__(self) -> None:
        self.writes = 0
        self.is_down = False

    def before(self, verb: str, kind: Any, *_: Any, **__: Any) -> None:
        if self.is_down:
            raise errors.UnreachableError("nobody there")
        if verb in ("patch", "create_document") and kind is lease.Lease:
            self.writes += 1


class Bench:
    """Lease that is renewed, and its cluster."""

    def __init__(self, world: worlds.World, server: Server, held: peerlease.PeerLease) -> None:
        self.world = world
        self.server = server
        self.lease = held

    async def written(self) -> dict[str, bytes]:
        (found,) = await self.world.all_of(lease.Lease, peerlease.NAMESPACE)
        return announcements.split(found.metadata.annotations[peerlease.ANNOTATION])


@contextlib.asynccontextmanager
async def kept() -> AsyncIterator[Bench]:
    server = Server()
    async with worlds.world(wrap=worlds.meddling(server.before)) as world:
        client = world.surroundings.client
        held = peerlease.PeerLease(client, scheduler="s", clock=world.clock, rng=random.Random(1))
        running = asyncio.create_task(held.run())
        await world.advance(1)
        try:
            yield Bench(world, server, held)
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running


def announcement(number: int) -> announcements.Announcement:
    return announcements.Announcement(namespace="default", name=f"p{number}", node="n1")


async def test_it_is_made_and_renewed() -> None:
    async with kept() as bench:
        (found,) = (await bench.world.client.list(lease.Lease, peerlease.SELECTION)).items
        assert found.metadata.name == bench.lease.name
        assert found.metadata.annotations[membership.SCHEDULER_ANNOTATION] == "s"
        await bench.world.advance(5)
        (renewed,) = (await bench.world.client.list(lease.Lease, peerlease.SELECTION)).items
        assert renewed.spec.renew_time != found.spec.renew_time
        assert bench.lease.is_current


async def test_it_is_deleted_in_the_end() -> None:
    server = Server()
    async with worlds.world(wrap=worlds.meddling(server.before)) as world:
        client = world.surroundings.client
        held = peerlease.PeerLease(client, scheduler="s", clock=world.clock, rng=random.Random(1))
        running = asyncio.create_task(held.run())
        await world.advance(1)
        assert len((await world.client.list(lease.Lease, peerlease.SELECTION)).items) == 1
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert (await world.client.list(lease.Lease, peerlease.SELECTION)).items == ()


async def test_many_announcements_go_into_few_writes() -> None:
    async with kept() as bench:
        before = bench.server.writes
        tasks = [asyncio.create_task(bench.lease.announce({f"uid-{n}": announcement(n)})) for n in range(50)]
        await bench.world.advance(0.5)
        versions = {task.result() for task in tasks}
        (found,) = await bench.world.all_of(lease.Lease, peerlease.NAMESPACE)
        assert max(versions) == int(found.metadata.resource_version)
        assert bench.server.writes - before <= 2
        assert len(await bench.written()) == 50


async def test_what_is_taken_back_is_said_for_a_while() -> None:
    async with kept() as bench:
        announced = asyncio.create_task(bench.lease.announce({"uid": announcement(1)}))
        await bench.world.advance(1)
        assert announced.done()
        bench.lease.take_back("uid")
        await bench.world.advance(1)
        assert await bench.written() == {"uid": announcements.TAKEN_BACK}
        await bench.world.advance(10)
        assert await bench.written() == {}
        bench.lease.take_back("uid")
        await bench.world.advance(1)
        assert await bench.written() == {}, "there was nothing to take back"


async def test_what_is_done_just_disappears() -> None:
    async with kept() as bench:
        announced = asyncio.create_task(bench.lease.announce({"uid": announcement(1)}))
        await bench.world.advance(1)
        assert announced.done()
        bench.lease.drop("uid")
        await bench.world.advance(3)
        assert await bench.written() == {}


async def test_who_cannot_renew_is_not_current_and_goes_on_afterwards() -> None:
    async with kept() as bench:
        bench.server.is_down = True
        announced = asyncio.create_task(bench.lease.announce({"uid": announcement(1)}))
        await bench.world.advance(5)
        assert not announced.done()
        assert bench.lease.is_current
        await bench.world.advance(10)
        assert not bench.lease.is_current
        bench.server.is_down = False
        await bench.world.advance(2)
        assert announced.done()
        assert bench.lease.is_current
        assert list(await bench.written()) == ["uid"]


async def test_a_lease_that_others_deleted_is_made_again() -> None:
    async with kept() as bench:
        await bench.world.client.delete(lease.Lease, bench.lease.name, namespace=peerlease.NAMESPACE)
        await bench.world.advance(3)
        assert await bench.written() == {}
