"""The allocator against brute force: same feasibility, same first solution, same first error; and its invariants."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable
from random import Random
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from drachma import allocator, errors
from drachma.allocator import allocated, capacity, noderoom, pool
from drachma.api import codec, resourceclaim, resourceslice
from tests.property import allocator_oracle, allocator_worlds
from tests.property.allocator_worlds import World

_RELAXED = settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


_NO_LIMITS = allocator.Limits()
_POLICIES: list[allocator.Preference] = [
    allocator.Policy.PACK,
    allocator.Policy.SPREAD,
    allocator.Policy.WHOLE_PARTITIONS,
    allocator.OneDomain(f"{allocator_worlds.DRIVERS[0]}/b"),
]


def _id(text: str) -> allocator.DeviceID:
    return allocator.DeviceID(*text.split("/"))


def _state(world: World) -> allocator.AllocatedState:
    state = allocator.AllocatedState(consumable_capacity=True)
    for text in sorted(world.taken):
        state.hold(allocated.Holding(_id(text)))
    for number, (text, memory) in enumerate(world.consumed.items()):
        share = {"memory": allocator_worlds.amount(memory)}
        state.hold(allocated.Holding(_id(text), f"share-{number}", share))
    return state


def _allocator(
    world: World, state: allocator.AllocatedState | None = None, *, catalog: allocator.Catalog | None = None
) -> allocator.Allocator:
    numbers = itertools.count()
    return allocator.Allocator(
        allocator.Catalog(world.slices) if catalog is None else catalog,
        classes=allocator.Classes(world.classes),
        allocated=_state(world) if state is None else state,
        compiler=allocator_worlds.TinyCompiler(),
        features=world.features,
        share_ids=lambda: f"new-{next(numbers)}",
    )


def _answer(
    world: World,
    built: allocator.Allocator | None = None,
    *,
    limits: allocator.Limits = _NO_LIMITS,
    room: int | None = None,
) -> Any:
    node_room = None
    if room is not None:
        node_room = noderoom.NodeRoom((("cpu", room),), lambda _, device, __: {"cpu": allocator_oracle.need(device)})
    try:
        outcome = (built or _allocator(world)).allocate(
            allocator.Node("n"), world.claims, limits=limits, room=node_room
        )
    except errors.AllocationError as error:
        return str(error)
    return _devices(outcome)


def _devices(outcome: allocator.Outcome) -> Any:
    match outcome:
        case allocator.Allocated(results):
            return [
                [(entry.request, entry.driver, entry.pool, entry.device) for entry in result.devices.results]
                for result in results
            ]
        case allocator.DoesNotFit():
            return None
        case allocator.GaveUp():
            return outcome


def _results(world: World) -> tuple[resourceclaim.AllocationResult, ...]:
    """The results of an allocation; the example is not looked at where it does not fit."""
    try:
        outcome = _allocator(world).allocate(allocator.Node("n"), world.claims)
    except errors.AllocationError:
        assume(False)
    assume(isinstance(outcome, allocator.Allocated))
    return outcome.results if isinstance(outcome, allocator.Allocated) else ()


def _all_devices(world: World) -> list[tuple[allocator.DeviceID, resourceslice.Device]]:
    return [
        (allocator.DeviceID(entry.spec.driver, entry.spec.pool.name, device.name), device)
        for entry in world.slices
        for device in entry.spec.devices
    ]


def _shared(world: World) -> set[str]:
    return {str(name) for name, device in _all_devices(world) if device.allow_multiple_allocations}


def _seen(state: allocator.AllocatedState, block: pool.Block) -> Any:
    counters = state.counters_left(block), state.groups_left(block)
    return state.taken(block), state.partly_used(block), counters


def _shuffled(published: resourceslice.ResourceSlice, chance: Random) -> resourceslice.ResourceSlice:
    """The same slice, with the entries of all its maps in another order."""

    def shuffle(value: Any) -> Any:
        if isinstance(value, dict):
            items = [(key, shuffle(item)) for key, item in value.items()]
            chance.shuffle(items)
            return dict(items)
        return [shuffle(item) for item in value] if isinstance(value, list) else value

    found = codec.decode(shuffle(codec.encode(published)))
    assert isinstance(found, resourceslice.ResourceSlice)
    return found


def _brute_force(world: World, *, room: int | None = None) -> Any:
    oracle = allocator_oracle.Oracle(
        world.slices,
        world.classes,
        world.claims,
        taken=set(world.taken),
        consumed={key: {"memory": memory * 10**9} for key, memory in world.consumed.items()},
        features=world.features,
        matches=allocator_worlds.matches,
        derive=allocator_worlds.derive,
        room=room,
    )
    try:
        return oracle.allocate()
    except allocator_oracle.TooLargeError:
        assume(False)
    except errors.AllocationError as error:
        return str(error)


@_RELAXED
@given(allocator_worlds.worlds(special=False, failing=False))
def test_plain_worlds_get_the_answer_of_brute_force(world: World) -> None:
    assert _answer(world) == _brute_force(world)


@_RELAXED
@given(allocator_worlds.worlds(failing=False))
def test_worlds_with_all_features_get_the_answer_of_brute_force(world: World) -> None:
    assert _answer(world) == _brute_force(world)


@_RELAXED
@given(allocator_worlds.worlds())
def test_worlds_with_errors_get_the_answer_of_brute_force(world: World) -> None:
    assert _answer(world) == _brute_force(world)


@_RELAXED
@given(allocator_worlds.worlds(failing=False), st.integers(0, 12))
def test_a_room_on_the_node_gets_the_answer_of_brute_force(world: World, room: int) -> None:
    assert _answer(world, room=room) == _brute_force(world, room=room)


@_RELAXED
@given(allocator_worlds.worlds(failing=False), st.integers(0, 30))
def test_giving_up_is_never_a_wrong_answer(world: World, steps: int) -> None:
    found = _answer(world, limits=allocator.Limits(steps=steps))
    assert isinstance(found, allocator.GaveUp) or found == _answer(world)


@_RELAXED
@given(allocator_worlds.worlds(failing=False, requests=2, most=1))
def test_an_exclusive_device_is_never_given_twice(world: World) -> None:
    given_away = {*world.taken}
    shared = _shared(world)
    for result in _results(world):
        for entry in result.devices.results:
            name = f"{entry.driver}/{entry.pool}/{entry.device}"
            if not entry.admin_access and name not in shared:
                assert name not in given_away
            if not entry.admin_access:
                given_away |= {name} - shared


@_RELAXED
@given(allocator_worlds.worlds(failing=False, requests=2, most=1))
def test_counters_and_capacities_never_go_negative(world: World) -> None:
    state = _state(world)
    built = _allocator(world, state)
    view = built.catalog.view(allocator.Node("n"), world.features)
    before = [min(state.counters_left(block)) for block in view.blocks if block.counters and block.counters.limits]
    try:
        outcome = built.allocate(allocator.Node("n"), world.claims)
    except errors.AllocationError:
        assume(False)
    assume(isinstance(outcome, allocator.Allocated))
    assert isinstance(outcome, allocator.Allocated)
    for claim, result in zip(world.claims, outcome.results, strict=True):
        state.put_allocation(claim.metadata, result)
    after = [min(state.counters_left(block)) for block in view.blocks if block.counters and block.counters.limits]
    # What is overdrawn already cannot be helped; nothing more is drawn from it.
    assert all(new >= 0 or new == old for old, new in zip(before, after, strict=True))
    for name, device in _all_devices(world):
        consumed = state.consumed(name).get("memory")
        if consumed is not None:
            assert consumed <= capacity.value_of(device.capacity["memory"])


@_RELAXED
@given(allocator_worlds.worlds())
def test_inputs_are_never_modified(world: World) -> None:
    objects = (*world.slices, *world.classes, *world.claims)
    before = [codec.encode_json(entry) for entry in objects]
    _answer(world)
    assert [codec.encode_json(entry) for entry in objects] == before


@_RELAXED
@given(allocator_worlds.worlds(), st.randoms(use_true_random=False))
def test_the_answer_does_not_depend_on_the_order_of_dictionaries_and_lists(world: World, chance: Random) -> None:
    slices = [_shuffled(published, chance) for published in world.slices]
    chance.shuffle(slices)
    assert _answer(world._replace(slices=tuple(slices))) == _answer(world)


@_RELAXED
@given(allocator_worlds.worlds(failing=False, requests=2, most=1))
def test_allocating_and_releasing_restores_the_state(world: World) -> None:
    state = _state(world)
    view = _allocator(world, state).catalog.view(allocator.Node("n"), world.features)
    before = [_seen(state, block) for block in view.blocks]
    for claim, result in zip(world.claims, _results(world), strict=False):
        state.put_allocation(claim.metadata, result)
    for claim in world.claims:
        state.remove_claim(claim.metadata)
    assert [_seen(state, block) for block in view.blocks] == before
    assert all(state.consumed(device) == _state(world).consumed(device) for device, _ in _all_devices(world))


@_RELAXED
@given(allocator_worlds.worlds(), allocator_worlds.worlds(), st.randoms(use_true_random=False))
def test_a_catalog_changed_step_by_step_is_as_good_as_a_new_one(world: World, other: World, chance: Random) -> None:
    changes: list[Callable[[], None]] = []
    catalog = allocator.Catalog(other.slices)
    built = _allocator(world, catalog=catalog)
    changes += [functools.partial(catalog.remove, str(entry.metadata.name)) for entry in other.slices]
    changes += [functools.partial(catalog.put, entry) for entry in world.slices]
    chance.shuffle(changes)
    for change in changes:
        change()
        with contextlib.suppress(errors.AllocationError):
            built.allocate(allocator.Node("n"), world.claims)
    for entry in world.slices:
        catalog.put(entry)
    assert _answer(world, built) == _answer(world)


@_RELAXED
@given(allocator_worlds.worlds(failing=False), st.sampled_from(_POLICIES))
def test_a_policy_never_changes_whether_claims_fit(world: World, policy: allocator.Preference) -> None:
    fits = _answer(world)
    # Where "All" breaks a constraint, the way there decides whether that is an error or no solution.
    assume(not isinstance(fits, str))
    try:
        outcome = _allocator(world).allocate(allocator.Node("n"), world.claims, policy=policy)
    except errors.AllocationError:
        assume(False)
    assert (fits is None) is isinstance(outcome, allocator.DoesNotFit)
