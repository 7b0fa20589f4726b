"""Publishing, whatever pools a driver wants one after the other: it ends, and nobody ever sees a mixture."""

from collections.abc import Iterator, Sequence

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from drachma.api import meta, resourceslice
from drachma.driver.publishing import layout, plan

IDENTITY = plan.Identity("d.example.com", layout.Owner(name="worker", uid="u"))

contents = st.lists(st.lists(st.sampled_from("abcdef"), unique=True, max_size=3), max_size=4)
histories = st.lists(contents, min_size=1, max_size=5)

Stored = dict[str, resourceslice.ResourceSlice]


def _layout(devices: Sequence[Sequence[str]]) -> layout.Layout:
    return layout.Layout(
        slices=tuple(
            # The same device twice in a pool is not for plans to refuse.
            layout.SliceContent(devices=tuple(resourceslice.Device(name=f"{name}{index}") for name in names))
            for index, names in enumerate(devices)
        )
    )


def _plan(wanted: layout.Layout | None, stored: Stored) -> plan.Plan:
    return plan.plan(IDENTITY, "pool", layout=wanted, present=list(stored.values()))


def _steps(todo: plan.Plan, stored: Stored) -> Iterator[None]:
    """Does what is planned, one write after the other."""
    for gone in todo.removals:
        del stored[gone.metadata.name]
        yield
    for write in todo.updates:
        stored[write.slice.metadata.name] = write.slice
        yield
    for write in todo.creations:
        assert (write.slice.spec.driver, write.slice.spec.node_name) == (IDENTITY.driver, "worker")
        assert [(each.kind, each.uid) for each in write.slice.metadata.owner_references] == [("Node", "u")]
        name = f"{write.slice.metadata.generate_name}{len(stored)}{write.slice.spec.pool.generation}"
        stored[name] = structs.replace(write.slice, metadata=meta.ObjectMeta(name=name))
        yield


def _visible(stored: Stored) -> list[list[str]] | None:
    """The devices of the pool as the allocator sees them; None while it is incomplete."""
    newest = max((each.spec.pool.generation for each in stored.values()), default=0)
    current = sorted(
        (each for each in stored.values() if each.spec.pool.generation == newest), key=lambda each: each.metadata.name
    )
    if any(each.spec.pool.resource_slice_count != len(current) for each in current):
        return None
    return [[device.name for device in each.spec.devices] for each in current]


def _devices(wanted: layout.Layout) -> list[list[str]]:
    return [[device.name for device in content.devices] for content in wanted.slices]


@given(histories)
def test_every_moment_shows_the_old_pool_the_new_one_or_an_incomplete_one(history: list[list[list[str]]]) -> None:
    stored: Stored = {}
    before: list[list[str]] = []
    for wanted in map(_layout, history):
        for _ in _steps(_plan(wanted, stored), stored):
            visible = _visible(stored)
            assert visible in (None, [], before, _devices(wanted))
        assert _visible(stored) == _devices(wanted)
        assert _plan(wanted, stored).is_empty, "what was written is what is wanted"
        before = _devices(wanted)


@given(histories, st.integers(min_value=0, max_value=6))
def test_being_interrupted_at_any_moment_does_no_harm(history: list[list[list[str]]], moment: int) -> None:
    stored: Stored = {}
    for wanted in map(_layout, history):
        for number, _ in enumerate(_steps(_plan(wanted, stored), stored)):
            if number == moment:
                break
        for _ in _steps(_plan(wanted, stored), stored):
            pass
        assert _visible(stored) == _devices(wanted)


@given(histories, st.data())
def test_slices_that_others_remove_come_back(history: list[list[list[str]]], data: st.DataObject) -> None:
    stored: Stored = {}
    for wanted in map(_layout, history):
        for _ in _steps(_plan(wanted, stored), stored):
            pass
        for name in data.draw(st.sets(st.sampled_from(sorted(stored)))) if stored else ():
            del stored[name]
        for _ in _steps(_plan(wanted, stored), stored):
            pass
        assert _visible(stored) == _devices(wanted)


@given(contents, contents)
def test_a_pool_that_is_no_longer_wanted_goes(first: list[list[str]], second: list[list[str]]) -> None:
    stored: Stored = {}
    for wanted in (_layout(first), _layout(second), None):
        for _ in _steps(_plan(wanted, stored), stored):
            pass
    assert stored == {}


def test_slices_that_are_right_are_not_written_again_for_others_that_are_refused() -> None:
    wanted = _layout([["a"], ["b"], ["c"]])
    stored: Stored = {}
    for _ in _steps(_plan(wanted, stored), stored):
        pass
    del stored[max(stored)]
    present = list(stored.values())
    again = plan.plan(IDENTITY, "pool", layout=wanted, present=present)
    assert (len(again.updates), len(again.creations)) == (2, 1), "as upstream: all slices, with another generation"
    stubborn = plan.plan(IDENTITY, "pool", layout=wanted, present=present, completes=True)
    assert (len(stubborn.updates), len(stubborn.creations)) == (0, 1)
