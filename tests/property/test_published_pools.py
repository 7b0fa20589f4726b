"""A running driver whose devices change at any time: every reader sees one of its states, or knows to wait."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from drachma import driver
from drachma.api import resourceslice
from drachma.client import Change, Client
from drachma.driver.instance import ControllerInstance
from drachma.process import embedded
from drachma.runtime import Surroundings
from drachma.store import memory
from drachma.testing import manualclock
from drachma.validation import limits

State = tuple[int, int]
"""How many devices a pool has, and which edition of them it is."""

States = dict[str, State]
"""All pools of a driver by name."""

Slices = dict[str, resourceslice.ResourceSlice]
Seen = dict[str, list[State | None]]
"""What a reader saw of each pool, moment by moment; None while it is incomplete or not there."""

SLICE_DEVICES = 2
READY_SECONDS = 20
MOST_EVENTS = 200
"""Many times what all changes of a history can take: a driver that writes more will not stop by itself."""

states = st.dictionaries(
    st.sampled_from(["p", "q"]),
    st.tuples(st.sampled_from([0, 1, 3, 4, 5]), st.integers(min_value=0, max_value=1)),
)
PHASES = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
"""Without what Hypothesis does to explain failures: that takes longer than to find and shrink them."""

AT_REST = 500
turns = st.one_of(st.just(AT_REST), st.integers(min_value=0, max_value=40))
"""How many turns others have before the next change: it may come while slices are being written."""

histories = st.lists(st.tuples(states, turns), min_size=1, max_size=4)


@pytest.fixture(scope="module", autouse=True)
def small_slices() -> Iterator[None]:
    """Slices hold few devices: then a handful makes several of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "SLICE_DEVICES", SLICE_DEVICES)
        yield


class Changing(driver.Driver):
    """Devices whose attribute tells of which edition they are."""

    name = "d.example.com"

    def __init__(self, states: States) -> None:
        super().__init__()
        self.states = states

    async def network_pools(self) -> Iterable[driver.Pool]:
        return [
            driver.pool(
                name, [driver.device(f"d-{number}").attributes(edition=edition) for number in range(count)]
            ).on_all_nodes()
            for name, (count, edition) in self.states.items()
        ]


def _shown(slices: Iterable[resourceslice.ResourceSlice]) -> State | None:
    """A pool as an allocator sees it."""
    newest = max((each.spec.pool.generation for each in slices), default=0)
    current = [each for each in slices if each.spec.pool.generation == newest]
    if not current or any(each.spec.pool.resource_slice_count != len(current) for each in current):
        return None
    devices = [device for each in current for device in each.spec.devices]
    assert len({device.name for device in devices}) == len(devices), "a device is there twice"
    editions = {device.attributes["edition"].int_value for device in devices}
    assert len(editions) <= 1, "a mixture of editions is seen"
    return len(devices), int(editions.pop() or 0) if editions else 0


async def _watch(client: Client, seen: Seen) -> None:
    """Notes what a reader sees after every single change."""
    pools: dict[str, Slices] = defaultdict(dict)
    beginning = (await client.list(resourceslice.ResourceSlice)).resource_version
    async with client.watch(resourceslice.ResourceSlice, resource_version=beginning) as watch:
        while True:
            for event in await watch.batch():
                name, pool = event.object.metadata.name, event.object.spec.pool.name
                if event.change is Change.DELETED:
                    pools[pool].pop(name, None)
                elif event.change in (Change.ADDED, Change.MODIFIED):
                    pools[pool][name] = event.object
                seen[pool].append(_shown(list(pools[pool].values())))
                assert sum(map(len, seen.values())) < MOST_EVENTS, "slices are written for ever"


async def _live(history: Sequence[tuple[States, int]], seen: Seen) -> set[str]:
    """Lets a driver have one state after the other; the pools that have slices in the end."""
    time = manualclock.ManualClock()
    async with embedded.server(memory.MemoryStore(), time=time, rng=random.Random(1)) as server:
        around = Surroundings(server.client, clock=time, rng=random.Random(1))
        made = Changing(history[0][0])
        instance = ControllerInstance(made, around)
        async with around.informers, asyncio.TaskGroup() as group:
            # Whichever of these fails ends the rest too, a driver that does not rest among them.
            watching = group.create_task(_watch(server.client, seen))
            await manualclock.settle()
            running = group.create_task(instance.run())
            for states, others in history:
                made.states = states
                made.changed()
                for _ in range(others):
                    await asyncio.sleep(0)
            for _ in range(READY_SECONDS):
                await time.advance(1.0)
                if instance.is_ready:
                    break
            await manualclock.settle()
            assert instance.is_ready, "slices are not what they shall be"
            running.cancel()
            watching.cancel()
        left = await server.client.list(resourceslice.ResourceSlice)
    return {each.spec.pool.name for each in left.items}


@settings(max_examples=30, phases=PHASES)
@example([({"p": (3, 0)}, AT_REST), ({"p": (3, 1)}, AT_REST)])
@example([({"p": (5, 0)}, AT_REST), ({"p": (1, 0)}, AT_REST)])
@example([({"p": (3, 0), "q": (1, 0)}, AT_REST), ({"q": (1, 0)}, AT_REST)])
@given(histories)
def test_every_reader_sees_one_of_the_states_at_every_moment(history: list[tuple[States, int]]) -> None:
    seen: Seen = defaultdict(list)
    left = asyncio.run(_live(history, seen))
    # A pool without devices has no edition.
    wanted = [
        {name: (count, edition if count else 0) for name, (count, edition) in states.items()} for states, _ in history
    ]
    for pool, moments in seen.items():
        assert set(moments) - {None} <= {states[pool] for states in wanted if pool in states}
        assert moments[-1] == wanted[-1].get(pool)
    assert left == wanted[-1].keys()
