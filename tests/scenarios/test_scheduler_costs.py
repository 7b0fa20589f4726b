"""Pods whose devices take long to choose: they are scheduled, and the event loop serves others meanwhile."""

import asyncio
import threading
from typing import Any

import pytest

from drachma.scheduler import cycle
from drachma.testing import claim, device_class, node, pod, resource_slice
from tests.scenarios import schedulers

NUMBERS = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
COSTLY = f"{NUMBERS}.all(a, {NUMBERS}.all(b, {NUMBERS}.all(c, {NUMBERS}.all(d, a + b + c + d > 0))))"


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The threads in which decisions came to an end."""
    ends: list[int] = []
    decide = cycle.Cycle.decide

    def note(*arguments: Any, **options: Any) -> Any:
        decision = decide(*arguments, **options)
        ends.append(threading.get_ident())
        return decision

    monkeypatch.setattr(cycle.Cycle, "decide", note)
    return ends


async def bound(world: schedulers.SchedulerWorld, name: str) -> str:
    """The node of a pod, once it has one."""
    async with asyncio.timeout(60):
        while not (node_name := await world.node_of(name)):
            # Threads have no part in the world's own time.
            await asyncio.sleep(0.001)
            await world.settle()
    return node_name


async def test_a_costly_decision_is_made_in_a_thread(threads: list[int]) -> None:
    async with schedulers.cluster() as world:
        slices = resource_slice("s", driver="gpu.example.com", pool="n").on_node("n").devices("a", "b")
        wanted = claim("c").request("gpu", device_class="gpu", select=COSTLY)
        await world.create(node("n"), slices, device_class("gpu"), wanted)
        await world.create(pod("p").container("c", claims=("x",)).claim("x", claim="c"))
        assert await bound(world, "p") == "n"
        assert await world.devices("c") == ["n/a"]
        assert threads
        assert threading.get_ident() not in threads


async def test_others_are_scheduled_on_the_loop(threads: list[int]) -> None:
    async with schedulers.cluster() as world:
        await world.create(node("n"), pod("p").container("c"))
        assert await world.node_of("p") == "n"
        assert set(threads) == {threading.get_ident()}
