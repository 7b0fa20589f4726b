"""Which devices are twins, which counters are scarce, and what can be known before searching."""

from __future__ import annotations

from drachma import allocator
from drachma.allocator import budget, outlook, problem, scarcity, selectors, symmetry
from drachma.api import resourceclaim, resourceslice
from drachma.testing import DeviceBuilder, claim, device, device_class, resource_slice
from drachma.testing.claims import ClaimBuilder

_SPENT = budget.Budget(budget.Limits())


def _problem(
    slices: list[resourceslice.ResourceSlice],
    *claims: resourceclaim.ResourceClaim,
    state: allocator.AllocatedState | None = None,
) -> problem.Problem:
    features = allocator.Features.parse_names(["all"])
    built = allocator.Allocator(
        allocator.Catalog(slices),
        classes=allocator.Classes([device_class("any").build()]),
        allocated=state or allocator.AllocatedState(consumable_capacity=True),
        compiler=selectors.SelectorCompiler(features),
        features=features,
        share_ids=lambda: "share",
    )
    return built.problem(allocator.Node("n"), claims, budget=_SPENT)


def _slice(*devices: DeviceBuilder, slices: int = 1) -> resourceslice.ResourceSlice:
    return resource_slice("s", driver="d", pool="p", slices=slices).on_node("n").devices(*devices).build()


def _request(name: str = "c", *, count: int = 1, mode: str = "ExactCount", select: str = "") -> ClaimBuilder:
    return claim(name).request("r", device_class="any", count=count, mode=mode, select=select or ())


def _twins(stated: problem.Problem) -> dict[int, int]:
    found = outlook.Outlook(stated)
    return symmetry.twins(stated, found.candidates, draws=found.scarcity.draws, budget=_SPENT)


def test_devices_that_nothing_tells_apart_are_twins() -> None:
    devices = [device(f"d{number}").attributes(model="a", uuid=f"u{number}") for number in range(3)]
    assert _twins(_problem([_slice(*devices)], _request().build())) == {0: 0b111, 1: 0b111, 2: 0b111}


def test_a_selector_tells_devices_apart() -> None:
    devices = [device(f"d{number}").attributes(model="ab"[number % 2]) for number in range(4)]
    stated = _problem(
        [_slice(*devices)], _request("c").build(), _request("e", select='device.attributes["d"].model == "a"').build()
    )
    assert _twins(stated) == {0: 0b0101, 2: 0b0101, 1: 0b1010, 3: 0b1010}


def test_the_attribute_of_a_constraint_tells_devices_apart() -> None:
    devices = [device(f"d{number}").attribute("x.example.com/root", number // 2) for number in range(4)]
    stated = _problem([_slice(*devices)], _request(count=2).match_attribute("x.example.com/root").build())
    assert _twins(stated) == {0: 0b0011, 1: 0b0011, 2: 0b1100, 3: 0b1100}


def test_a_device_that_is_taken_is_nobody_s_twin() -> None:
    state = allocator.AllocatedState(consumable_capacity=True)
    state.put_claim(claim("other").allocated(("r", "d", "p", "d1")).build())
    stated = _problem([_slice(device("d0"), device("d1"), device("d2"))], _request().build(), state=state)
    assert _twins(stated) == {0: 0b101, 2: 0b101}


def test_what_all_wants_under_a_constraint_has_no_twins() -> None:
    devices = [device(f"d{number}").attribute("x.example.com/root", 1) for number in range(3)]
    stated = _problem([_slice(*devices)], _request(mode="All").match_attribute("x.example.com/root").build())
    assert _twins(stated) == {}
    assert outlook.Outlook(stated).quiet == [False]


def _partitions(**limits: int) -> list[resourceslice.ResourceSlice]:
    """Four devices that draw 1 from a counter each of their own and 2 from a common one."""
    counters = resource_slice("c", driver="d", pool="p", slices=2).on_node("n")
    own = {f"own{number}": 1 for number in range(4)}
    devices = [device(f"d{number}").consumes("s", common=2, **{f"own{number}": 1}) for number in range(4)]
    return [counters.counters("s", **own, **limits).build(), _slice(*devices, slices=2)]


def test_counters_that_last_for_all_are_forgotten() -> None:
    plenty, scarce = (_problem(_partitions(common=limit), _request().build()) for limit in (8, 7))
    assert scarcity.scarce_draws(plenty, [plenty.levels[0].options[0]]) == {}
    draws = scarcity.scarce_draws(scarce, [scarce.levels[0].options[0]])
    assert {amount for entry in draws.values() for _, amount in entry} == {2 * 10**9}
    assert _twins(scarce) == dict.fromkeys(range(4), 0b1111)


def test_the_least_that_can_be_drawn_is_a_bound() -> None:
    fits, too_much = (_problem(_partitions(common=7), _request(count=count).build()) for count in (3, 4))
    assert not outlook.Outlook(fits).hopeless
    assert outlook.Outlook(too_much).hopeless


def test_values_on_which_not_all_agree_are_not_worth_trying() -> None:
    gpus = [device(f"g{number}").attributes(kind="gpu").attribute("x.example.com/root", number) for number in range(3)]
    nic = device("n0").attributes(kind="nic").attribute("x.example.com/root", 2)
    pair = claim("c").match_attribute("x.example.com/root")
    for kind in ("gpu", "nic"):
        select = f'device.attributes["d"].kind == "{kind}"'
        pair = pair.request(kind, device_class="any", count=1, mode="ExactCount", select=select)
    stated = _problem([_slice(*gpus, nic)], pair.build())
    found = outlook.Outlook(stated)
    assert [found.candidates[level.options[0]] for level in stated.levels] == [0b0100, 0b1000]


def _pairs(claims: int, *, gpus: list[int], nics: list[int]) -> problem.Problem:
    """Claims for a GPU and a NIC on the same root; the lists have the root of each device."""
    devices = [device(f"g{n:02}").attributes(kind="gpu").attribute("x.example.com/root", r) for n, r in enumerate(gpus)]
    devices += [
        device(f"n{n:02}").attributes(kind="nic").attribute("x.example.com/root", r) for n, r in enumerate(nics)
    ]
    wanted = []
    for number in range(claims):
        pair = claim(f"c{number}").match_attribute("x.example.com/root")
        for kind in ("gpu", "nic"):
            select = f'device.attributes["d"].kind == "{kind}"'
            pair = pair.request(kind, device_class="any", count=1, mode="ExactCount", select=select)
        wanted.append(pair.build())
    return _problem([_slice(*devices)], *wanted)


def test_claims_that_are_alike_are_counted_by_what_they_must_agree_on() -> None:
    # Enough GPUs and NICs for three, but on root 0 there is one GPU for two NICs.
    too_many = _pairs(3, gpus=[0, 1, 1], nics=[0, 0, 1])
    assert outlook.Outlook(too_many).hopeless
    enough = _pairs(2, gpus=[0, 1, 1], nics=[0, 0, 1])
    found = outlook.Outlook(enough)
    assert not found.hopeless
    # The pair on root 1 is gone, and one claim is left for root 0.
    assert found.promising(enough.levels[1].options[0], 0, more=0, in_use=0b100010, constraint_state=(2,))
    assert not found.promising(enough.levels[1].options[0], 0, more=0, in_use=0b100011, constraint_state=(2,))


def test_too_few_different_values_are_hopeless() -> None:
    devices = [device(f"d{number}").attribute("x.example.com/root", number % 2) for number in range(6)]
    wanted = _request(count=3).distinct_attribute("x.example.com/root").build()
    assert outlook.Outlook(_problem([_slice(*devices)], wanted)).hopeless


def test_an_error_in_reach_makes_no_level_before_it_quiet() -> None:
    devices = [device("d0").attributes(model="a"), device("d1")]
    loud = _request("e", select='device.attributes["d"].model == "a"').build()
    stated = _problem([_slice(*devices)], _request("c").build(), loud, _request("f").build())
    assert outlook.Outlook(stated).quiet == [False, False, True]
