"""Preemption that frees devices, against trying every set of victims."""

import itertools

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from drachma.api import gates, meta, pod, poddisruptionbudget, resourceclaim
from drachma.claims import reservation
from drachma.scheduler.cycle.decision import Placed, Unfit
from drachma.scheduler.framework import eviction
from drachma.scheduler.snapshot import podinfo
from drachma.testing import claim, device, node, resource_slice
from drachma.testing import pod as a_pod
from tests.unit.scheduler.worlds import DRIVER, World

GATES = gates.ALL.switched({gates.Gate.DEVICE_PREEMPTION: True})
RESIDENTS = st.lists(
    st.tuples(
        st.integers(0, 3),  # priority
        st.sampled_from([0, 1, 1, 2]),  # devices
        st.booleans(),  # shares the claim of the pod before
        st.booleans(),  # is in the budget
    ),
    max_size=5,
)
MANY_RESIDENTS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from([0, 1, 2]), st.just(False), st.booleans()), min_size=9, max_size=12
)
_PRIORITY = 2


@settings(max_examples=120, deadline=None)
@given(residents=RESIDENTS, needed=st.integers(1, 3), free=st.integers(0, 1), allowed=st.integers(0, 2))
@example(  # two pods of a lower priority instead of one
    residents=[(1, 2, False, False), (0, 1, False, False), (0, 1, False, False)], needed=2, free=0, allowed=0
)
@example(  # one pod instead of two of its priority
    residents=[(0, 1, False, False), (0, 1, False, False), (0, 2, False, False)], needed=2, free=0, allowed=0
)
def test_the_fewest_and_least_important_pods_are_evicted(
    residents: list[tuple[int, int, bool, bool]], needed: int, free: int, allowed: int
) -> None:
    victims, holders = _preempt(residents, needed, free, allowed)
    if needed <= free:
        assert victims is None
        return
    best = _best(residents, holders, needed - free, allowed)
    if best is None:
        assert victims is None
        return
    assert victims is not None
    assert _helps(victims, holders, needed - free)
    assert _rank(victims, residents) == best
    assert not any(_helps(victims - {name}, holders, needed - free) for name in victims)
    assert sum(residents[int(name[1:])][3] for name in victims) <= allowed


@settings(max_examples=25, deadline=None)
@given(residents=MANY_RESIDENTS, needed=st.integers(1, 6), allowed=st.integers(0, 3))
@example(residents=[(0, 0, False, True), (1, 2, False, True), *([(0, 0, False, False)] * 7)], needed=2, allowed=1)
def test_of_many_candidates_none_is_evicted_in_vain(
    residents: list[tuple[int, int, bool, bool]], needed: int, allowed: int
) -> None:
    victims, holders = _preempt(residents, needed, 0, allowed)
    kept = sorted((count for _, count, _, is_kept in residents if is_kept), reverse=True)
    others = sum(count for _, count, _, is_kept in residents if not is_kept)
    assert (victims is not None) == (others + sum(kept[:allowed]) >= needed)
    if victims is not None:
        assert _helps(victims, holders, needed)
        assert not any(_helps(victims - {name}, holders, needed) for name in victims)
        assert sum(residents[int(name[1:])][3] for name in victims) <= allowed


def _preempt(
    residents: list[tuple[int, int, bool, bool]], needed: int, free: int, allowed: int
) -> tuple[set[str] | None, list[tuple[set[str], int]]]:
    """Return the victims of a pod that needs devices, or None, and the users of each claim with its devices."""
    world = World(enabled=GATES)
    world.put_class(f'device.driver == "{DRIVER}"')
    world.put_node(node("n0", allocatable={"cpu": "64", "memory": "8Gi", "pods": "99"}))
    holders = _put_residents(world, residents)
    taken = sum(count for _, count in holders)
    devices = [device(f"d{number}") for number in range(taken + free)]
    if devices:
        world.put_slice(resource_slice("s", driver=DRIVER, pool="n0").on_node("n0").devices(*devices))
    _put_budget(world, allowed)
    world.claim(claim("new").uid("new").request("r", device_class="gpu", mode="ExactCount", count=needed))
    preemptor = a_pod("new").uid("new").claim("x", claim="new").spec(priority=_PRIORITY).build()
    decided = world.decide(podinfo.PodInfo(preemptor))
    assert isinstance(decided, Placed) == (needed <= free)
    if isinstance(decided, Placed):
        return None, holders
    assert isinstance(decided, Unfit)
    result = world.profile.post_filter(decided.cycle, decided.diagnosis)
    evictions = [each for each in result.remedies if isinstance(each, eviction.Eviction)]
    return {each.metadata.name for each in evictions[0].victims} if evictions else None, holders


def _put_residents(world: World, residents: list[tuple[int, int, bool, bool]]) -> list[tuple[set[str], int]]:
    """Pods with their claims; the users of each claim and the number of its devices."""
    holders: list[tuple[set[str], int]] = []
    claims: list[resourceclaim.ResourceClaim] = []
    place = 0
    for number, (priority, count, is_shared, is_kept) in enumerate(residents):
        name = f"r{number}"
        resident = a_pod(name).uid(name).on_node("n0").spec(priority=priority)
        if is_kept:
            resident = resident.label("app", "kept")
        if is_shared and claims:
            holders[-1][0].add(name)
            resident = resident.claim("x", claim=claims[-1].metadata.name)
        elif count:
            made = claim(f"c{number}").uid(f"c{number}")
            made = made.request("r", device_class="gpu", mode="ExactCount", count=count)
            results = [
                resourceclaim.DeviceRequestAllocationResult(
                    request="r", driver=DRIVER, pool="n0", device=f"d{place + each}"
                )
                for each in range(count)
            ]
            place += count
            allocation = resourceclaim.AllocationResult(
                devices=resourceclaim.DeviceAllocationResult(results=tuple(results))
            )
            stored = made.build()
            claims.append(structs.replace(stored, status=structs.replace(stored.status, allocation=allocation)))
            holders.append(({name}, count))
            resident = resident.claim("x", claim=f"c{number}")
        built = resident.build()
        world.snapshot.add_pod(built)
        if (is_shared and claims) or count:
            _reserve(claims, built)
    for each in claims:
        world.snapshot.claims.observe(each)
    return holders


def _reserve(claims: list[resourceclaim.ResourceClaim], user: pod.Pod) -> None:
    status = claims[-1].status
    reserved = (*status.reserved_for, reservation.consumer(user))
    claims[-1] = structs.replace(claims[-1], status=structs.replace(status, reserved_for=reserved))


def _put_budget(world: World, allowed: int) -> None:
    world.snapshot.budgets.put(
        poddisruptionbudget.PodDisruptionBudget(
            metadata=meta.ObjectMeta(name="b", namespace="default"),
            spec=poddisruptionbudget.PodDisruptionBudgetSpec(selector=meta.LabelSelector(match_labels={"app": "kept"})),
            status=poddisruptionbudget.PodDisruptionBudgetStatus(disruptions_allowed=allowed),
        )
    )


def _helps(victims: set[str], holders: list[tuple[set[str], int]], lacking: int) -> bool:
    return sum(count for users, count in holders if users <= victims) >= lacking


def _rank(victims: set[str], residents: list[tuple[int, int, bool, bool]]) -> tuple[int, int, int]:
    priorities = [residents[int(name[1:])][0] for name in victims]
    return max(priorities), len(priorities), sum(priorities)


def _best(
    residents: list[tuple[int, int, bool, bool]], holders: list[tuple[set[str], int]], lacking: int, allowed: int
) -> tuple[int, int, int] | None:
    """The rank of the best set of victims, of all sets that help within the budget."""
    names = [f"r{number}" for number, each in enumerate(residents) if each[0] < _PRIORITY]
    sets = (set(chosen) for size in range(1, len(names) + 1) for chosen in itertools.combinations(names, size))
    ranks = [
        _rank(chosen, residents)
        for chosen in sets
        if _helps(chosen, holders, lacking) and sum(residents[int(name[1:])][3] for name in chosen) <= allowed
    ]
    return min(ranks, default=None)
