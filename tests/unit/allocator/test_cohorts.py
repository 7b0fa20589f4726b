"""Cohorts of claims that are alike."""

from drachma import allocator
from drachma.allocator import budget, cohorts, problem, selectors
from drachma.api import resourceclaim
from drachma.testing import claim, device, device_class, resource_slice

_ROOT = "resource.kubernetes.io/pcieRoot"


def _problem(*, claims: int, devices: int) -> problem.Problem:
    """Return the problem of claims for two devices each that agree on a root, of which there are two."""
    entries = [device(f"d{number}").attribute(_ROOT, number % 2) for number in range(devices)]
    features = allocator.Features.parse_names(["all"])
    built = allocator.Allocator(
        allocator.Catalog([resource_slice("gpu", driver="gpu").on_node("n").devices(*entries).build()]),
        classes=allocator.Classes([device_class("any").build()]),
        allocated=allocator.AllocatedState(consumable_capacity=True),
        compiler=selectors.SelectorCompiler(features),
        features=features,
        share_ids=lambda: "share",
    )
    return built.problem(
        allocator.Node("n"), [_pair(f"c{n}") for n in range(claims)], budget=budget.Budget(budget.Limits())
    )


def _pair(name: str) -> resourceclaim.ResourceClaim:
    built = claim(name)
    for request in ("a", "b"):
        built = built.request(request, device_class="any", count=1, mode="ExactCount")
    return built.match_attribute(_ROOT).build()


def _candidates(of: problem.Problem) -> dict[problem.Option, int]:
    return {option: option.candidates for level in of.levels for option in level.options}


def test_claims_that_are_alike_need_devices_for_all() -> None:
    enough, scarce = _problem(claims=2, devices=4), _problem(claims=3, devices=5)
    assert cohorts.Cohorts(enough, _candidates(enough)).can_agree(0, 0)
    assert not cohorts.Cohorts(scarce, _candidates(scarce)).can_agree(0, 0)


def test_a_claim_of_its_own_costs_nothing() -> None:
    """Devices may have thousands of values, so they are only counted for claims that are alike."""
    single = _problem(claims=1, devices=4)
    assert cohorts.Cohorts(single, _candidates(single)).can_agree(0, 0)
    assert all(check.occurrences._index is None for option in _candidates(single) for check in option.checks)
