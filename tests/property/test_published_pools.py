"""A running driver whose devices change at any time: every reader sees one of its states, or knows to wait."""

import asyncio
import random
from collections.abc import Iterable, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from drachma import driver
from drachma.api import resourceslice
from drachma.client import Change, Client
from drachma.driver.instance import ControllerInstance
from drachma.process import embedded
from drachma.runtime import Surroundings
from drachma.store import memory
from drachma.testing import manualclock

State = tuple[int, int]
"""How many devices a pool has, and which edition of them it is."""

Slices = dict[str, resourceslice.ResourceSlice]

states = st.tuples(st.sampled_from([0, 1, 128, 129]), st.integers(min_value=0, max_value=2))
turns = st.integers(min_value=0, max_value=40)
"""How many turns others have before the next change: it may come while slices are being written."""

histories = st.lists(st.tuples(states, turns), min_size=1, max_size=6)


class Changing(driver.Driver):
    """Devices whose attribute tells of which edition they are."""

    name = "d.example.com"

    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state

    async def network_pools(self) -> Iterable[driver.Pool]:
        count, edition = self.state
        devices = [driver.device(f"d-{number}").attributes(edition=edition) for number in range(count)]
        return [driver.pool("pool", devices).on_all_nodes()]


def _shown(slices: Slices) -> State | None:
    """The pool as an allocator sees it; None while it is incomplete."""
    newest = max((each.spec.pool.generation for each in slices.values()), default=0)
    current = [each for each in slices.values() if each.spec.pool.generation == newest]
    if not current or any(each.spec.pool.resource_slice_count != len(current) for each in current):
        return None
    devices = [device for each in current for device in each.spec.devices]
    assert len({device.name for device in devices}) == len(devices), "no device is there twice"
    editions = {device.attributes["edition"].int_value for device in devices}
    assert len(editions) <= 1, "nobody sees a mixture"
    return len(devices), int(editions.pop() or 0) if editions else 0


async def _watch(client: Client, seen: list[State | None]) -> None:
    """Notes what a reader sees after every single change."""
    slices: Slices = {}
    beginning = (await client.list(resourceslice.ResourceSlice)).resource_version
    async with client.watch(resourceslice.ResourceSlice, resource_version=beginning) as watch:
        while True:
            for event in await watch.batch():
                if event.change is Change.DELETED:
                    slices.pop(event.object.metadata.name, None)
                elif event.change in (Change.ADDED, Change.MODIFIED):
                    slices[event.object.metadata.name] = event.object
                seen.append(_shown(slices))


async def _live(history: Sequence[tuple[State, int]]) -> list[State | None]:
    time = manualclock.ManualClock()
    seen: list[State | None] = []
    async with embedded.server(memory.MemoryStore(), time=time, chance=random.Random(1)) as server:
        watcher = asyncio.create_task(_watch(server.client, seen))
        await manualclock.settle()
        around = Surroundings(server.client, time=time, chance=random.Random(1))
        made = Changing(history[0][0])
        instance = ControllerInstance(made, around)
        async with around.informers:
            running = asyncio.create_task(instance.run())
            try:
                for state, others in history:
                    made.state = state
                    made.changed()
                    for _ in range(others):
                        await asyncio.sleep(0)
                while not instance.is_ready:
                    await time.advance(1.0)
                await manualclock.settle()
                assert not watcher.done(), watcher.exception()
            finally:
                for task in (running, watcher):
                    task.cancel()
                await asyncio.gather(running, watcher, return_exceptions=True)
    return seen


@settings(max_examples=20)
@given(histories)
def test_every_reader_sees_one_of_the_states_at_every_moment(history: list[tuple[State, int]]) -> None:
    seen = asyncio.run(_live(history))
    # A pool without devices has no edition.
    wanted = [(count, edition if count else 0) for (count, edition), _ in history]
    assert {each for each in seen if each is not None} <= set(wanted)
    assert seen[-1] == wanted[-1]
