"""Steps of a rollout: never too many pods, never too few that are available, and it ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drachma.api.deployment import DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment
from drachma.controllers.deployment import rollout
from drachma.controllers.deployment.rollout import Bounds, Size


def _spec(replicas: int | None, surge: int | str | None, unavailable: int | str | None) -> DeploymentSpec:
    rolling = RollingUpdateDeployment(max_surge=surge, max_unavailable=unavailable)
    return DeploymentSpec(replicas=replicas, strategy=DeploymentStrategy(type=rollout.ROLLING, rolling_update=rolling))


_RECREATE = DeploymentSpec(replicas=3, strategy=DeploymentStrategy(type="Recreate"))


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(_spec(10, "25%", "25%"), Bounds(10, 3, 2), id="shares"),
        pytest.param(_spec(10, 1, 0), Bounds(10, 1, 0), id="numbers"),
        pytest.param(_spec(10, 0, 0), Bounds(10, 0, 1), id="not-both-nothing"),
        pytest.param(_spec(1, "25%", "25%"), Bounds(1, 1, 0), id="one-pod"),
        pytest.param(_spec(None, 0, 5), Bounds(1, 0, 1), id="no-more-missing-than-wanted"),
        pytest.param(
            DeploymentSpec(replicas=3, strategy=DeploymentStrategy(type="Recreate")), Bounds(3, 0, 0), id="recreate"
        ),
    ],
)
def test_bounds(spec: DeploymentSpec, want: Bounds) -> None:
    assert rollout.bounds(spec) == want


def test_pods_that_are_not_available_go_first() -> None:
    old = [Size("a", 3, 0), Size("b", 7, 7)]
    assert rollout.shrink(Bounds(10, 2, 2), Size("new", 2, 0), old) == {"a": 1}


@given(
    replicas=st.integers(0, 20),
    surge=st.integers(0, 5),
    unavailable=st.integers(0, 5),
    before=st.lists(st.integers(0, 12), min_size=1, max_size=3),
    choices=st.lists(st.integers(0, 5), min_size=200, max_size=200),
)
def test_a_rollout_keeps_its_bounds_and_ends(
    replicas: int, surge: int, unavailable: int, before: list[int], choices: list[int]
) -> None:
    bounds = Bounds(replicas, surge, min(max(unavailable, 1 if not surge else 0), replicas))
    sizes = {f"old-{number}": size for number, size in enumerate(before)} | {"new": 0}
    available = {**sizes, "new": 0}
    total_before = sum(before)
    for choice in choices:
        members = {name: Size(name, sizes[name], min(available[name], sizes[name])) for name in sizes}
        new, old = members["new"], [each for name, each in members.items() if name != "new"]
        grown = rollout.grow(bounds, new, old)
        if grown != new.replicas:
            sizes["new"] = grown
        else:
            least = min(sum(each.available for each in members.values()), bounds.least_available)
            sizes.update(rollout.shrink(bounds, new, old))
            # What is not available goes first in each set, so what is left of it is.
            assert sum(min(available[name], sizes[name]) for name in sizes) >= least
        assert sum(sizes.values()) <= max(total_before, bounds.most)
        for name in sizes:
            available[name] = min(available[name], sizes[name])
        # Some pods of the new set become available.
        available["new"] = min(sizes["new"], available["new"] + choice % 3)
    assert sizes["new"] == replicas or available["new"] < sizes["new"] or sum(choices) == 0
    if all(choice % 3 for choice in choices):
        assert sizes == dict.fromkeys(sizes, 0) | {"new": replicas}


@given(
    most=st.integers(1, 30),
    parts=st.lists(st.integers(1, 10), min_size=2, max_size=4),
)
def test_what_is_added_or_taken_is_shared_out(most: int, parts: list[int]) -> None:
    total = sum(parts)
    sets = [Size(f"s{number}", part, part, total) for number, part in enumerate(parts)]
    bounds = Bounds(most, 0, 1)
    sizes = {each.name: each.replicas for each in sets} | rollout.share_out(bounds, sets)
    assert sum(sizes.values()) == most
    assert all(size >= 0 for size in sizes.values())
    direction = most - total
    assert all((sizes[each.name] - each.replicas) * direction >= 0 for each in sets)
