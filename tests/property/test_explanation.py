"""Explanations of random worlds against brute force: conflicts are minimal, and nothing usable is called unusable."""

from __future__ import annotations

from hypothesis import HealthCheck, assume, given, settings

from drachma import allocator, errors
from drachma.allocator import allocated, budget, explanation
from drachma.allocator.explanation import conflict, report, trial, wish
from drachma.api import resourceclaim
from drachma.claims import identity
from tests.property import allocator_oracle, allocator_worlds
from tests.property.allocator_worlds import World

_RELAXED = settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
_NODE = allocator.Node("n")


def _id(text: str) -> allocator.DeviceID:
    return allocator.DeviceID(*text.split("/"))


def _allocator(world: World) -> allocator.Allocator:
    state = allocator.AllocatedState(consumable_capacity=True)
    for text in sorted(world.taken):
        state.hold(allocated.Holding(_id(text)))
    for number, (text, memory) in enumerate(world.consumed.items()):
        state.hold(allocated.Holding(_id(text), f"share-{number}", {"memory": allocator_worlds.amount(memory)}))
    return allocator.Allocator(
        allocator.Catalog(world.slices),
        classes=allocator.Classes(world.classes),
        allocated=state,
        compiler=allocator_worlds.TinyCompiler(),
        features=world.features,
        share_ids=lambda: "share",
    )


def _fits(world: World, claims: tuple[resourceclaim.ResourceClaim, ...]) -> bool:
    """What brute force says."""
    oracle = allocator_oracle.Oracle(
        world.slices,
        world.classes,
        claims,
        taken=set(world.taken),
        consumed={key: {"memory": memory * 10**9} for key, memory in world.consumed.items()},
        features=world.features,
        matches=allocator_worlds.matches,
        derive=allocator_worlds.derive,
    )
    try:
        return oracle.allocate() is not None
    except allocator_oracle.TooLargeError:
        assume(False)
    except errors.AllocationError:
        assume(False)
    raise AssertionError("assume does not return")


@_RELAXED
@given(allocator_worlds.worlds(failing=False))
def test_without_any_part_of_a_minimal_conflict_the_rest_fits(world: World) -> None:
    claims = tuple(world.claims)
    assume(not _fits(world, claims))
    trials = trial.Trials(_allocator(world), _NODE, limits=budget.Limits(steps=100_000))
    parts, is_minimal = conflict.find(claims, trials)
    everything = {*wish.requests(claims), *wish.constraints(claims), *wish.selectors(claims)}
    others = everything - set(parts)
    assert not _fits(world, wish.without(claims, others))
    if is_minimal:
        assert all(_fits(world, wish.without(claims, {*others, part})) for part in parts)


@_RELAXED
@given(allocator_worlds.worlds())
def test_what_is_allocated_is_called_usable_and_all_devices_are_accounted_for(world: World) -> None:
    over = _allocator(world)
    found = explanation.Explainer(over).explain(_NODE, world.claims)
    ways = [[way for entry in claim.requests for way in entry.alternatives] for claim in found.claims]
    for way in (way for claim in ways for way in claim):
        assert len(way.usable) + sum(entry.count for entry in way.obstacles) == way.considered
    if found.outcome is report.Outcome.FITS:
        outcome = over.allocate(_NODE, world.claims)
        assert isinstance(outcome, allocator.Allocated)
        for claim, result in zip(ways, outcome.results, strict=True):
            usable = {(way.name, device) for way in claim for device in way.usable}
            assert {
                (entry.request, f"{entry.driver}/{entry.pool}/{entry.device}") for entry in result.devices.results
            } <= usable


@_RELAXED
@given(allocator_worlds.worlds(failing=False))
def test_proposed_counts_fit_and_more_does_not(world: World) -> None:
    claims = tuple(world.claims)
    found = explanation.Explainer(_allocator(world)).explain(_NODE, claims)
    for change in found.changes:
        if change.kind is report.ChangeKind.LOWER_COUNT:
            spot = _spot(claims, change)
            assert _fits(world, wish.change_count(claims, spot, int(change.after)))
            if int(change.after) + 1 < int(change.before):
                assert not _fits(world, wish.change_count(claims, spot, int(change.after) + 1))


def _spot(claims: wish.Claims, change: report.Change) -> wish.Spot:
    return next(
        spot
        for spot in wish.spots(claims)
        if (identity.label(claims[spot.claim].metadata), wish.name_of(claims, spot)) == (change.subject, change.request)
    )
