"""Devices of claims: seen, assumed and in flight, counted exactly once."""

from typing import Any

from msgspec import structs

from drachma.allocator import AllocatedState, DeviceID
from drachma.api import meta, resourceclaim
from drachma.claims import wellknown
from drachma.scheduler.snapshot import claimtracker
from drachma.testing import claim

DEVICE = DeviceID("d", "pool", "x")


def made(version: int, *, allocated: bool = False, uid: str = "u") -> resourceclaim.ResourceClaim:
    built = claim("c").uid(uid)
    if allocated:
        built = built.allocated(("r", "d", "pool", "x"))
    stored = built.build()
    return structs.replace(stored, metadata=structs.replace(stored.metadata, resource_version=str(version)))


def result() -> resourceclaim.AllocationResult:
    allocation = made(1, allocated=True).status.allocation
    assert allocation is not None
    return allocation


class World:
    def __init__(self) -> None:
        self.state = AllocatedState(consumable_capacity=True)
        self.touched: list[Any] = []
        self.claims = claimtracker.ClaimTracker(self.state, lambda pools, _places: self.touched.append(pools))

    def owners(self) -> tuple[str, ...]:
        return self.state.owners(DEVICE)


def test_in_flight_until_it_is_written() -> None:
    world = World()
    world.claims.observe(made(1))
    world.claims.reserve(made(1).metadata, result())
    assert (world.owners(), world.claims.pending("u")) == (("default/c",), result())
    # The finalizer comes first, and does not show the allocation.
    world.claims.observe(made(2))
    assert world.owners() == ("default/c",)
    world.claims.observe(made(3, allocated=True))
    world.claims.settle("u")
    assert (world.owners(), world.claims.pending("u")) == (("default/c",), None)
    assert len(world.touched) == 1


def test_given_up() -> None:
    world = World()
    world.claims.observe(made(1))
    world.claims.reserve(made(1).metadata, result())
    world.claims.settle("u")
    assert world.owners() == ()
    assert world.touched == [{DEVICE.pool_id}, {DEVICE.pool_id}]


def test_what_was_written_is_not_undone_by_old_news() -> None:
    world = World()
    world.claims.observe(made(3, allocated=True))
    world.claims.observe(made(2))
    assert world.owners() == ("default/c",)
    world.claims.observe(made(4))
    assert world.owners() == ()


def test_a_claim_made_anew_is_another_one() -> None:
    world = World()
    world.claims.observe(made(5, allocated=True))
    world.claims.observe(made(9, uid="other"))
    assert world.owners() == ()
    world.claims.remove(made(5, allocated=True))
    assert world.claims.get("default", "c") is not None


def test_gone_while_in_flight() -> None:
    world = World()
    world.claims.observe(made(1))
    world.claims.reserve(made(1).metadata, result())
    world.claims.remove(made(1))
    assert world.owners() == ("default/c",), "its writer has not given up yet"
    world.claims.settle("u")
    assert world.owners() == ()


def test_when_an_allocation_came() -> None:
    world = World()
    world.claims.observe(made(1))
    world.claims.observe(made(7, allocated=True))
    world.claims.observe(made(9, allocated=True))
    assert world.claims.allocated_at("default", "c") == 7
    unknown = World()
    unknown.claims.observe(made(7, allocated=True))
    assert unknown.claims.allocated_at("default", "c") == 0, "it was there before anybody looked"
    skipped = World()
    skipped.claims.observe(made(1))
    skipped.claims.observe(made(7, allocated=True), is_exact=False)
    assert skipped.claims.allocated_at("default", "c") == 0


def test_special_claims_are_found_by_their_pod() -> None:
    world = World()
    special = (
        claim("s").uid("s").owner("Pod", "p", uid="pod").annotation(wellknown.EXTENDED_RESOURCE_ANNOTATION, "true")
    )
    world.claims.observe(special.build())
    assert world.claims.special_claim("pod") is not None
    world.claims.remove(special.build())
    assert world.claims.special_claim("pod") is None


def test_watchers_hear_of_changes_until_they_stop() -> None:
    world = World()
    heard: list[int] = []
    stop = world.claims.watch("u", lambda: heard.append(1))
    world.claims.observe(made(1))
    world.claims.observe(made(2))
    stop()
    world.claims.observe(made(3))
    assert len(heard) == 2


def test_claims_that_have_no_name_yet_hold_their_devices_side_by_side() -> None:
    """Claims for extended resources share one name until they are written."""
    world = World()
    unnamed = [meta.ObjectMeta(namespace="default", name="<extended-resources>", uid=uid) for uid in ("u1", "u2")]
    other = claim("c").allocated(("r", "d", "pool", "y")).build().status.allocation
    assert other is not None
    world.claims.reserve(unnamed[0], result())
    world.claims.reserve(unnamed[1], other)
    assert [len(world.state.owners(DeviceID("d", "pool", name))) for name in "xy"] == [1, 1]
    world.claims.settle("u1")
    assert [len(world.state.owners(DeviceID("d", "pool", name))) for name in "xy"] == [0, 1]
