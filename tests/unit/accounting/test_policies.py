"""Accounting policies: additions of claims to requests of containers."""

import pytest

from drachma.accounting import policies
from drachma.accounting.policies import Policy
from drachma.testing import pod as a_pod

UNIT = 10**9


def share(
    claim: str, policy: Policy, units: int, containers: tuple[str, ...] = ("a",), *, driver: str = "d"
) -> policies.Share:
    return policies.Share(claim, driver, "memory", policy, units * UNIT, containers)


POD = a_pod("p").container("a", requests={"memory": "3"}).container("b", requests={"memory": "1"}).build()


@pytest.mark.parametrize(
    ("stated", "of_class", "want"),
    [
        pytest.param("Max", "AddPerClaim", Policy.MAX, id="the-devices-own"),
        pytest.param(None, "ConsumeFrom", Policy.CONSUME_FROM, id="of-the-class"),
        pytest.param(None, None, "s: neither the device nor its class has an accounting policy", id="none"),
        pytest.param("Min", None, 's: unknown accounting policy "Min"', id="unknown"),
    ],
)
def test_policy(stated: str | None, of_class: str | None, want: Policy | str) -> None:
    assert policies.policy(stated, of_class, subject="s") == want


@pytest.mark.parametrize(
    ("shares", "want"),
    [
        pytest.param([share("c", Policy.ADD_PER_REFERENCE, 2, ("a", "b"))], {"c": 4}, id="added-per-container"),
        pytest.param([share("c", Policy.ADD_PER_REFERENCE, 2, ())], {"c": 0}, id="nobody-refers-to-it"),
        pytest.param([share("c", Policy.MAX, 5)], {"c": 2}, id="larger-than-the-request"),
        pytest.param([share("c", Policy.MAX, 3)], {}, id="not-larger-than-the-request"),
        pytest.param([share("c", Policy.MAX, 5, ("a", "b"))], {"c": 2 + 4}, id="larger-in-both-containers"),
        pytest.param(
            [share("c", Policy.MAX, 2), share("d", Policy.MAX, 2)], {"c": 1}, id="several-of-one-driver-together"
        ),
    ],
)
def test_what_claims_add(shares: list[policies.Share], want: dict[str, int]) -> None:
    settled = policies.settle(POD, shares)
    assert settled.added == {claim: {"memory": units * UNIT} for claim, units in want.items()}
    assert (settled.pools, settled.drawn) == ((), {})


def test_an_amount_that_counts_once_per_claim_is_a_pool_for_all_its_pods() -> None:
    settled = policies.settle(POD, [share("c", Policy.ADD_PER_CLAIM, 2, ("a", "b"))])
    assert settled.added == {"c": {"memory": 2 * UNIT}}
    assert settled.drawn == {"memory": 2 * UNIT}, "the node provides it through the pool"
    assert settled.pools == (policies.PoolUse("c/once", held=(("memory", 2),), taken=()),)


def test_requests_come_out_of_a_pool() -> None:
    settled = policies.settle(POD, [share("c", Policy.CONSUME_FROM, 8, ("a", "b"))])
    assert settled.added == {}
    assert settled.pools == (policies.PoolUse("c", held=(("memory", 8),), taken=(("memory", 4),)),)
    assert settled.drawn == {"memory": 4 * UNIT}


def test_a_pool_that_no_container_uses_is_held_all_the_same() -> None:
    settled = policies.settle(POD, [share("c", Policy.CONSUME_FROM, 8, ())])
    assert settled.pools == (policies.PoolUse("c", held=(("memory", 8),), taken=()),)
    assert settled.drawn == {}


@pytest.mark.parametrize(
    ("shares", "want"),
    [
        pytest.param([share("c", Policy.MAX, 1), share("d", Policy.MAX, 1)], "", id="one-driver"),
        pytest.param([share("c", Policy.MAX, 1), share("d", Policy.ADD_PER_CLAIM, 1, driver="e")], "", id="adding"),
        pytest.param(
            [share("c", Policy.MAX, 1, ("a",)), share("d", Policy.CONSUME_FROM, 1, ("b",))], "", id="two-containers"
        ),
        pytest.param(
            [share("c", Policy.MAX, 1), share("d", Policy.CONSUME_FROM, 1)],
            "container a, resource memory: claims with accounting policies Max and ConsumeFrom cannot be combined",
            id="max-and-consume-from",
        ),
        pytest.param(
            [share("c", Policy.MAX, 1, driver="y"), share("d", Policy.MAX, 1, driver="x")],
            "container a, resource memory: claims with accounting policy Max must be of one driver, not of x and y",
            id="two-drivers",
        ),
    ],
)
def test_policies_that_do_not_go_together(shares: list[policies.Share], want: str) -> None:
    assert policies.problem(shares) == want
