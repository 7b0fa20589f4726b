from collections import Counter

import pytest

from drachma.api import lease, meta, pod
from drachma.scheduler.peering import membership
from drachma.scheduler.snapshot import gangs
from drachma.testing import manualclock
from drachma.testing import pod as a_pod


def member(name: str, *, scheduler: str = "s", seconds: int = 15) -> lease.Lease:
    metadata = meta.ObjectMeta(name=name, annotations={membership.SCHEDULER_ANNOTATION: scheduler})
    return lease.Lease(metadata=metadata, spec=lease.LeaseSpec(lease_duration_seconds=seconds))


def members(*names: str, own: str = "a") -> membership.Membership:
    time = manualclock.ManualClock()
    made = membership.Membership(own, scheduler="s", monotonic=time.monotonic, has_gangs=True)
    for name in names:
        made.heard(member(name))
    return made


def a_waiting_pod(number: int, *claims: str) -> pod.Pod:
    made = a_pod(f"p{number}").uid(f"uid-{number}").container("c")
    for claim in claims:
        made = made.claim(claim, claim=claim)
    return made.build()


PODS = [a_waiting_pod(number) for number in range(300)]


def owners(*names: str) -> dict[str, str]:
    """Return the scheduler of each pod, as these schedulers see it; exactly one is responsible."""
    views = {name: members(*names, own=name) for name in names}
    found = {}
    for each in PODS:
        (found[each.metadata.uid],) = [name for name, view in views.items() if view.is_responsible(each)]
    return found


def test_one_alone_looks_after_everything() -> None:
    assert all(map(members().is_responsible, PODS))


def test_several_share_about_evenly() -> None:
    counts = Counter(owners("a", "b", "c").values())
    assert min(counts.values()) > 60


def test_who_comes_moves_pods_only_to_itself() -> None:
    before, after = owners("a", "b"), owners("a", "b", "c")
    moved = {after[uid] for uid in before if before[uid] != after[uid]}
    assert moved == {"c"}


def test_schedulers_of_another_name_have_no_part_in_pods_but_in_nodes() -> None:
    found = members()
    assert not found.heard(member("other", scheduler="t"))
    assert all(map(found.is_responsible, PODS))
    assert not all(found.is_home(f"n{number}") for number in range(20))


@pytest.mark.parametrize("own", ["a", "b", "c"])
def test_pods_of_one_claim_are_looked_after_together(own: str) -> None:
    found = members("a", "b", "c", own=own)
    assert len({found.is_responsible(a_waiting_pod(number, "shared")) for number in range(20)}) == 1


@pytest.mark.parametrize("own", ["a", "b", "c"])
def test_pods_of_one_gang_are_looked_after_together(own: str) -> None:
    """That holds whatever claims some of them share with other pods."""
    found = members("a", "b", "c", own=own)
    gang = [
        a_pod(f"p{number}").uid(f"p{number}").label(gangs.LABEL, "g").claim("x", claim=f"c{number}").build()
        for number in range(20)
    ]
    assert len(set(map(found.is_responsible, gang))) == 1


async def test_who_is_silent_is_dead() -> None:
    clock = manualclock.ManualClock()
    found = membership.Membership("a", scheduler="s", monotonic=clock.monotonic)
    assert found.heard(member("b"))
    assert not found.heard(member("b")), "renewed, not new"
    await clock.advance(14)
    assert found.silent() == []
    found.heard(member("c"))
    await clock.advance(1)
    assert found.silent() == ["b"]
    assert found.silent() == [], "it is said once"
    assert found.heard(member("b")), "it was not dead after all"
    assert found.gone("c")
    assert not found.gone("c")


async def test_this_one_is_never_dead_to_itself() -> None:
    clock = manualclock.ManualClock()
    found = membership.Membership("a", scheduler="s", monotonic=clock.monotonic)
    found.heard(member("a"))
    await clock.advance(100)
    assert found.silent() == []
