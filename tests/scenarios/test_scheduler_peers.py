"""Several schedulers at once: nothing is given away twice, whatever the interleaving, and everything is scheduled."""

import asyncio
import contextlib
import random
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest

from drachma import errors
from drachma.accounting import ledger
from drachma.api import gates, lease, pod, resourceclaim
from drachma.client import Client, target
from drachma.runtime import Informers, clock
from drachma.scheduler import Settings, profiles
from drachma.scheduler.framework.profile import Entry, Profile
from drachma.scheduler.snapshot import assignment, gangs
from drachma.testing import claim, device_class, node, resource_slice
from drachma.testing import pod as a_pod
from tests.scenarios import schedulers

DRIVER = "gpu.example.com"
GANGS = gates.ALL.switched({gates.Gate.GENERIC_WORKLOAD: True})


class Slow:
    """A client whose calls take a random number of turns, one at a time, so that schedulers interleave in new ways.

    It counts them by verb and kind, and those that are refused because another write came first.
    """

    def __init__(self, client: Client, chance: random.Random) -> None:
        self._client = client
        self._chance = chance
        self.calls: Counter[tuple[str, str]] = Counter()
        self.conflicts = 0
        self.is_answered = asyncio.Event()
        """While this is not set, it hangs."""
        self.is_answered.set()

    def __getattr__(self, name: str) -> Any:
        if name == "commit":
            raise AttributeError(name)
        found = getattr(self._client, name)
        if name not in ("create", "patch", "delete", "get", "bind"):
            return found

        async def slowly(*args: Any, **kwargs: Any) -> Any:
            await self.is_answered.wait()
            for _ in range(self._chance.randrange(8)):
                await asyncio.sleep(0)
            subject = args[0] if isinstance(args[0], type) else type(args[0])
            self.calls[name, subject.__name__ + kwargs.get("subresource", "")] += 1
            try:
                return await found(*args, **kwargs)
            except errors.ObjectConflictError:
                self.conflicts += 1
                raise

        return slowly


class LateClaims(Slow):
    """A slow client that hears of claims later than of anything else."""

    def __init__(self, client: Client, chance: random.Random, *, time: clock.Clock) -> None:
        super().__init__(client, chance)
        self._clock = time

    @contextlib.asynccontextmanager
    async def watch(self, kind: Any, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        """Events as they come; those of claims half a second later."""
        async with self._client.watch(kind, *args, **kwargs) as watch:
            yield _LateWatch(watch, self._clock) if target.of(kind).kind == "ResourceClaim" else watch


class _LateWatch:
    def __init__(self, watch: Any, time: clock.Clock) -> None:
        self._watch = watch
        self._clock = time

    async def batch(self) -> Any:
        events = await self._watch.batch()
        await self._clock.sleep(0.5)
        return events


class Peer:
    """A scheduler with informers of its own, as if in a process of its own."""

    def __init__(self, world: schedulers.SchedulerWorld, label: str, *, seed: int, slow: Slow | None = None) -> None:
        self._world = world
        self._label = label
        self._seed = seed
        self.client = slow or Slow(world.client, random.Random(seed))
        client: Any = self.client
        self._informers = Informers(client, clock=world.clock, rng=random.Random(seed))

    async def start(self, **settings: Any) -> "Peer":
        client: Any = self.client
        await self._informers.__aenter__()
        await self._world.start(
            self._label, seed=self._seed, client=client, informers=self._informers, has_peers=True, **settings
        )
        return self

    async def kill(self) -> None:
        """Ends it as a power cut would."""
        await self._world.kill(self._label)
        await self._informers.__aexit__(None, None, None)

    async def stop(self) -> None:
        """Asks it to end."""
        await self._world.stop(self._label)
        await self._informers.__aexit__(None, None, None)


async def start_peers(world: schedulers.SchedulerWorld, count: int, *, seed: int, **settings: Any) -> list[Peer]:
    return [await Peer(world, f"peer-{number}", seed=seed * 10 + number).start(**settings) for number in range(count)]


async def stop_peers(peers: list[Peer]) -> None:
    for each in peers:
        await each.stop()


async def prepare(world: schedulers.SchedulerWorld, *, nodes: int, gpus: int) -> None:
    await world.create(device_class("gpu", f'device.driver == "{DRIVER}"'))
    for number in range(nodes):
        await world.create(node(f"n{number}"))
        if gpus:
            devices = [f"gpu-{place}" for place in range(gpus)]
            await world.create(resource_slice(f"n{number}", driver=DRIVER).on_node(f"n{number}").devices(*devices))


async def put_pods(world: schedulers.SchedulerWorld, numbers: Iterable[int]) -> None:
    """Pods with a claim each."""
    for number in numbers:
        await world.put(claim(f"c{number}").request("gpu", device_class="gpu"))
        await world.put(a_pod(f"p{number}").container("c", claims=("x",)).claim("x", claim=f"c{number}"))


async def bound_pods(world: schedulers.SchedulerWorld) -> list[pod.Pod]:
    return [each for each in await world.all_of(pod.Pod) if each.spec.node_name]


async def check_devices(world: schedulers.SchedulerWorld, *, count: int) -> None:
    """So many devices are given away, each once, and each to a pod that is bound."""
    claims = await world.all_of(resourceclaim.ResourceClaim)
    held = [
        (result.pool, result.device)
        for each in claims
        if each.status.allocation is not None
        for result in each.status.allocation.devices.results
    ]
    assert len(held) == len(set(held)) == count
    users = {user.uid for each in claims for user in each.status.reserved_for}
    assert users == {each.metadata.uid for each in await bound_pods(world)}
    assert len(users) == count


@pytest.mark.parametrize("seed", range(6))
async def test_devices_are_given_once(seed: int) -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await prepare(world, nodes=3, gpus=4)
        peers = await start_peers(world, 3, seed=seed)
        await put_pods(world, range(14))
        for _ in range(60):
            await world.advance(2)
        await stop_peers(peers)
        await check_devices(world, count=12)


@pytest.mark.parametrize("seed", range(3))
async def test_devices_of_the_network_are_given_once(seed: int) -> None:
    """Everybody wants the first one that is free."""
    async with schedulers.cluster(scheduler=False) as world:
        await prepare(world, nodes=3, gpus=0)
        gpus = [f"gpu-{place}" for place in range(20)]
        await world.create(resource_slice("net", driver=DRIVER).on_all_nodes().devices(*gpus))
        peers = await start_peers(world, 3, seed=seed)
        await put_pods(world, range(22))
        for _ in range(60):
            await world.advance(2)
        await stop_peers(peers)
        await check_devices(world, count=20)


@pytest.mark.parametrize("seed", range(6))
async def test_nodes_are_not_overdrawn(seed: int) -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await prepare(world, nodes=3, gpus=0)
        peers = await start_peers(world, 3, seed=seed)
        for number in range(14):
            await world.put(a_pod(f"p{number}").container("c", requests={"cpu": "1"}))
        for _ in range(60):
            await world.advance(2)
        await stop_peers(peers)
        counts = Counter(each.spec.node_name for each in await world.all_of(pod.Pod))
        assert counts == {"n0": 4, "n1": 4, "n2": 4, "": 2}


class SecondThoughts:
    """Plugin that refuses every pod once, after it was announced and before anything is written for it."""

    name = "SecondThoughts"

    def __init__(self) -> None:
        self.checks: Counter[str] = Counter()

    def still_fits(self, planned: assignment.Assignment, account: ledger.Ledger) -> bool:
        assert planned.pod.metadata.uid not in account.bookings
        self.checks[planned.pod.metadata.name] += 1
        return self.checks[planned.pod.metadata.name] > 1


async def test_plugins_of_a_custom_profile_are_asked_again_between_peers() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await prepare(world, nodes=1, gpus=0)
        default = profiles.default(Settings(), clock=world.clock, rng=random.Random(1))
        plugin = SecondThoughts()
        profile = Profile((*default.entries, Entry(plugin)))
        peers = await start_peers(world, 2, seed=1, plugins=profile)
        for number in range(3):
            await world.put(a_pod(f"p{number}").container("c", requests={"cpu": "100m"}))
        for _ in range(5):
            await world.advance(2)
        await stop_peers(peers)
        assert len(await bound_pods(world)) == 3
        assert min(plugin.checks.values()) >= 2


@pytest.mark.parametrize("seed", range(3))
async def test_one_claim_for_many_pods(seed: int) -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await prepare(world, nodes=2, gpus=1)
        peers = await start_peers(world, 2, seed=seed)
        await world.put(claim("c").request("gpu", device_class="gpu"))
        for number in range(6):
            await world.put(a_pod(f"p{number}").container("c", claims=("x",)).claim("x", claim="c"))
        for _ in range(40):
            await world.advance(2)
        await stop_peers(peers)
        assert len({await world.node_of(f"p{number}") for number in range(6)}) == 1
        assert len(await world.users("c")) == 6


@pytest.mark.parametrize("seed", range(2))
async def test_a_device_is_not_free_while_its_claim_is_seen_late(seed: int) -> None:
    """What was announced, written and bound counts although only the pod of it was seen."""
    async with schedulers.cluster(scheduler=False) as world:
        await prepare(world, nodes=1, gpus=40)
        late = LateClaims(world.client, random.Random(seed), time=world.clock)
        peers = [
            await Peer(world, "late", seed=seed * 10, slow=late).start(),
            await Peer(world, "other", seed=seed * 10 + 1).start(),
        ]
        for first in range(0, 40, 4):
            await put_pods(world, range(first, first + 4))
            await world.advance(0.1)
        for _ in range(300):
            await world.advance(0.1)
        await stop_peers(peers)
        await check_devices(world, count=40)
        assert await world.events("FailedScheduling") == []


# Gangs


async def put_gang(world: schedulers.SchedulerWorld, name: str, size: int) -> None:
    """Pods with a claim each, that go together or not at all."""
    for number in range(size):
        key = f"{name}-{number}"
        await world.put(claim(key).request("gpu", device_class="gpu"))
        made = a_pod(key).container("c", claims=("x",)).claim("x", claim=key)
        await world.put(made.label(gangs.LABEL, name).annotation(gangs.SIZE, str(size)))


def by_gang(bound: Iterable[pod.Pod]) -> Counter[str]:
    return Counter(each.metadata.labels.get(gangs.LABEL, "") for each in bound)


@pytest.mark.parametrize("seed", [0, 1, 2, pytest.param(15, id="15-gang-and-pod-in-step")])
async def test_no_gang_is_half_bound_whoever_places_it(seed: int) -> None:
    """Gangs and single pods of three schedulers want more devices than there are, and some come and go."""
    chance = random.Random(seed)
    async with schedulers.cluster(scheduler=False) as world:
        await prepare(world, nodes=3, gpus=4)
        peers = await start_peers(world, 3, seed=seed, gates=GANGS)
        sizes: dict[str, int] = {}
        for number in range(6):
            sizes[f"g{number}"] = size = chance.randint(2, 4)
            await put_gang(world, f"g{number}", size)
            await put_pods(world, [number])
            await world.advance(chance.choice([0, 0.1, 0.3, 1]))
        gone = chance.choice(sorted(sizes))
        for number in range(sizes.pop(gone)):
            for kind in (pod.Pod, resourceclaim.ResourceClaim):
                name = f"{gone}-{number}"
                await world.client.delete(kind, name, namespace="default", grace_period_seconds=0)
        for _ in range(60):
            await world.advance(2)
        await stop_peers(peers)
        bound = await bound_pods(world)
        await check_devices(world, count=len(bound))
        counts = by_gang(bound)
        assert all(counts[name] in (0, size) for name, size in sizes.items())
        free = 12 - len(bound)
        assert all(size > free for name, size in sizes.items() if not counts[name]), "nobody waits for what is there"


@pytest.mark.parametrize("turns", [5, 40, 120, 300])
async def test_the_gangs_of_a_dead_scheduler_are_taken_over(turns: int) -> None:
    """It dies with gangs in hand, some of whose pods may be bound."""
    async with schedulers.cluster(scheduler=False) as world:
        await prepare(world, nodes=3, gpus=4)
        first, second = await start_peers(world, 2, seed=4, gates=GANGS)
        await world.advance(1)
        for number in range(4):
            await put_gang(world, f"g{number}", 3)
        for _ in range(turns):
            await asyncio.sleep(0)
        await second.kill()
        for _ in range(40):
            await world.advance(1)
        await check_devices(world, count=12)
        await first.stop()


async def test_a_gang_is_announced_in_one_write() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await prepare(world, nodes=2, gpus=4)
        peers = await start_peers(world, 2, seed=1, gates=GANGS)
        await world.advance(1)
        before = sum(peer.client.calls["patch", "Lease"] for peer in peers)
        await put_gang(world, "g", 8)
        await world.advance(1)
        assert len(await bound_pods(world)) == 8
        assert sorted(peer.client.calls["bind", "Pod"] for peer in peers) == [0, 8]
        assert sum(peer.client.calls["patch", "Lease"] for peer in peers) - before <= 4
        await stop_peers(peers)


# What it costs


async def test_work_is_shared_and_nobody_writes_in_vain() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await prepare(world, nodes=20, gpus=4)
        peers = await start_peers(world, 2, seed=1)
        await put_pods(world, range(60))
        for _ in range(10):
            await world.advance(0.5)
        assert len(await bound_pods(world)) == 60
        first, second = (peer.client.calls["bind", "Pod"] for peer in peers)
        assert first + second == 60
        assert min(first, second) > 15, "each has about half of the pods"
        calls = peers[0].client.calls + peers[1].client.calls
        assert sum(peer.client.conflicts for peer in peers) == 0
        assert calls["patch", "Podstatus"] == calls["get", "ResourceClaim"] == calls["get", "Pod"] == 0
        assert calls["patch", "ResourceClaim"] == calls["patch", "ResourceClaimstatus"] == 60, "as for one scheduler"
        assert calls["patch", "Lease"] < 60, "many announcements go into one write"
        await stop_peers(peers)


# Comings and goings


async def test_the_pods_of_a_dead_scheduler_are_taken_over() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await prepare(world, nodes=3, gpus=10)
        first, second = await start_peers(world, 2, seed=4)
        await second.kill()
        await put_pods(world, range(20))
        await world.advance(10)
        bound = len(await bound_pods(world))
        assert 0 < bound < 20, "half of them are left to the dead one, which may only be slow"
        await world.advance(10)
        await check_devices(world, count=20)
        assert len(await world.all_of(lease.Lease, "kube-system")) == 2
        await world.advance(60)
        assert len(await world.all_of(lease.Lease, "kube-system")) == 1, "what it left is cleared away"
        await first.stop()
        assert await world.all_of(lease.Lease, "kube-system") == ()


async def test_the_pods_of_a_scheduler_that_ends_are_taken_over_at_once() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await prepare(world, nodes=3, gpus=10)
        first, second = await start_peers(world, 2, seed=4)
        await second.stop()
        await put_pods(world, range(20))
        await world.advance(2)
        await check_devices(world, count=20)
        await first.stop()


@pytest.mark.parametrize("turns", [0, 5, 20, 60, 150, 400])
async def test_what_a_dead_scheduler_began_is_gone_on_with(turns: int) -> None:
    """It dies with pods in hand, some of whose claims are written."""
    async with schedulers.cluster(scheduler=False) as world:
        await prepare(world, nodes=3, gpus=10)
        first, second = await start_peers(world, 2, seed=4)
        await world.advance(1)
        await put_pods(world, range(20))
        for _ in range(turns):
            await asyncio.sleep(0)
        await second.kill()
        for _ in range(40):
            await world.advance(1)
        await check_devices(world, count=20)
        await first.stop()


async def test_a_scheduler_that_was_taken_for_dead_binds_nothing() -> None:
    """It hangs with pods in hand until others have taken over, and then goes on as if nothing had happened."""
    async with schedulers.cluster(scheduler=False) as world:
        await prepare(world, nodes=3, gpus=10)
        first, second = await start_peers(world, 2, seed=4)
        await world.advance(1)
        await put_pods(world, range(20))
        for _ in range(60):
            await asyncio.sleep(0)
        assert second.client.calls["patch", "Lease"] > 0
        second.client.is_answered.clear()
        bound = second.client.calls["bind", "Pod"]
        await world.advance(30)
        await check_devices(world, count=20)
        second.client.is_answered.set()
        await world.advance(30)
        assert second.client.calls["bind", "Pod"] == bound
        await check_devices(world, count=20)
        await stop_peers([first, second])


async def test_a_scheduler_that_comes_gets_its_share_of_what_waits() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await prepare(world, nodes=0, gpus=0)
        first = await Peer(world, "first", seed=1).start()
        await put_pods(world, range(20))
        await world.advance(5)
        second = await Peer(world, "second", seed=2).start()
        await prepare_gpus(world)
        await world.advance(15)
        await check_devices(world, count=20)
        assert min(peer.client.calls["bind", "Pod"] for peer in (first, second)) > 3
        await stop_peers([first, second])


async def prepare_gpus(world: schedulers.SchedulerWorld) -> None:
    gpus = [f"gpu-{place}" for place in range(20)]
    await world.create(node("n0"), resource_slice("n0", driver=DRIVER).on_node("n0").devices(*gpus))
