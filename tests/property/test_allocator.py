"""The allocator against brute force: same feasibility, same first solution, same first error; and its invariants."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import HealthCheck, assume, given, settings

from drachma import allocator, errors
from drachma.allocator import allocated
from tests.property import allocator_oracle, allocator_worlds
from tests.property.allocator_worlds import World

_RELAXED = settings(
    max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


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


def _allocator(world: World, state: allocator.AllocatedState | None = None) -> allocator.Allocator:
    numbers = itertools.count()
    return allocator.Allocator(
        allocator.Catalog(world.slices),
        classes=allocator.Classes(world.classes),
        allocated=_state(world) if state is None else state,
        compiler=allocator_worlds.TinyCompiler(),
        features=world.features,
        share_ids=lambda: f"new-{next(numbers)}",
    )


def _answer(world: World) -> Any:
    try:
        outcome = _allocator(world).allocate(allocator.Node("n"), world.claims)
    except errors.AllocationError as error:
        return str(error)
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


def _brute_force(world: World) -> Any:
    oracle = allocator_oracle.Oracle(
        world.slices,
        world.classes,
        world.claims,
        taken=set(world.taken),
        consumed={key: {"memory": memory * 10**9} for key, memory in world.consumed.items()},
        features=world.features,
        matches=allocator_worlds.matches,
        derive=allocator_worlds.derive,
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
