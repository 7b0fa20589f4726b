"""The allocator as its callers see it; what it chooses is the business of the conformance and property tests."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest

from drachma import allocator, errors
from drachma.allocator import selectors
from drachma.api import nodeselector, resourceclaim, resourceslice
from drachma.testing import claim, device, device_class, resource_slice, subrequest

_NODE = allocator.Node("n")
_ROOT = "resource.kubernetes.io/pcieRoot"


def _built(*slices: resourceslice.ResourceSlice, state: allocator.AllocatedState | None = None) -> allocator.Allocator:
    features = allocator.Features.parse_names(["all"])
    numbers = itertools.count(1)
    classes = [device_class("any").build(), device_class("gpu", 'device.driver == "gpu"').build()]
    return allocator.Allocator(
        allocator.Catalog(slices),
        classes=allocator.Classes(classes),
        allocated=state or allocator.AllocatedState(consumable_capacity=True),
        compiler=selectors.SelectorCompiler(features),
        features=features,
        share_ids=lambda: f"share-{next(numbers)}",
    )


def _devices(count: int, *, driver: str = "gpu", roots: int = 1) -> resourceslice.ResourceSlice:
    entries = [device(f"d{number:02}").attribute(_ROOT, number % roots) for number in range(count)]
    return resource_slice(driver, driver=driver).on_node("n").devices(*entries).build()


def _one_each(requests: int, *constraint: str) -> resourceclaim.ResourceClaim:
    built = claim("c")
    for number in range(requests):
        built = built.request(f"r{number:02}", device_class="any", count=1, mode="ExactCount")
    for attribute in constraint:
        built = built.match_attribute(attribute)
    return built.build()


def _chosen(outcome: allocator.Outcome) -> list[list[str]]:
    assert isinstance(outcome, allocator.Allocated), outcome
    return [[str(entry.device) for entry in result.devices.results] for result in outcome.results]


def test_one_result_for_each_claim() -> None:
    claims = [claim(name).request("r", device_class="gpu", count=2, mode="ExactCount").build() for name in ("a", "b")]
    assert _chosen(_built(_devices(5)).allocate(_NODE, claims)) == [["d00", "d01"], ["d02", "d03"]]


def test_nothing_to_allocate_is_allocated() -> None:
    assert _built().allocate(_NODE, []) == allocator.Allocated(())
    outcome = _built().allocate(_NODE, [claim("empty").build()])
    assert outcome == allocator.Allocated((resourceclaim.AllocationResult(),))


def test_what_does_not_fit_is_a_value() -> None:
    assert isinstance(_built(_devices(1)).allocate(_NODE, [_one_each(2)]), allocator.DoesNotFit)


def test_what_is_allocated_is_not_given_again() -> None:
    state = allocator.AllocatedState(consumable_capacity=True)
    built = _built(_devices(2), state=state)
    for name, want in (("a", ["d00"]), ("b", ["d01"])):
        wanted = claim(name).request("r", device_class="gpu", count=1, mode="ExactCount").build()
        outcome = built.allocate(_NODE, [wanted])
        assert _chosen(outcome) == [want]
        assert isinstance(outcome, allocator.Allocated)
        state.put_allocation(wanted.metadata, outcome.results[0])
    assert isinstance(built.allocate(_NODE, [_one_each(1)]), allocator.DoesNotFit)


def test_every_share_has_an_id_of_its_own() -> None:
    shared = resource_slice("s", driver="gpu").on_node("n").devices(device("d").shared().capacity("m", 4, default=1))
    outcome = _built(shared.build()).allocate(_NODE, [_one_each(2)])
    assert isinstance(outcome, allocator.Allocated)
    results = outcome.results[0].devices.results
    assert [entry.share_id for entry in results] == ["share-1", "share-2"]
    assert [str(entry.consumed_capacity["m"]) for entry in results] == ["1", "1"]


def test_steps_run_out_with_gave_up() -> None:
    outcome = _built(_devices(9)).allocate(_NODE, [_one_each(9)], limits=allocator.Limits(steps=5))
    assert outcome == allocator.GaveUp("5 steps were not enough", steps=5)


def test_a_deadline_ends_any_search() -> None:
    # Bin packing: 21 requests for shares of 10 devices, which nearly fit.
    chance = random.Random(4)
    entries = [device(f"d{number}").shared().capacity("m", chance.randint(20, 40)) for number in range(10)]
    wanted = claim("c")
    for number in range(21):
        amount = {"m": chance.randint(9, 17)}
        wanted = wanted.request(f"r{number}", device_class="gpu", count=1, mode="ExactCount", capacity=amount)
    published = resource_slice("s", driver="gpu").on_node("n").devices(*entries).build()
    ticks = itertools.count()
    limits = allocator.Limits(deadline=40.0, clock=lambda: float(next(ticks)))
    outcome = _built(published).allocate(_NODE, [wanted.build()], limits=limits)
    assert isinstance(outcome, allocator.GaveUp)
    assert outcome.reason.startswith("the deadline passed after")


@pytest.mark.parametrize(
    ("slices", "claims", "most"),
    [
        pytest.param([_devices(11)], [_one_each(12)], 11, id="one-request-too-many"),
        pytest.param([_devices(32, roots=8)], [_one_each(5, _ROOT)], 80, id="no-group-is-large-enough"),
        pytest.param(
            [_devices(31)],
            [
                claim(f"c{number}").request("r", device_class="gpu", count=4, mode="ExactCount").build()
                for number in range(8)
            ],
            31,
            id="one-device-short-for-eight-claims",
        ),
        pytest.param(
            [
                resource_slice("s", driver="gpu")
                .on_node("n")
                .devices(*(device(f"d{n}").shared().capacity("m", 1) for n in range(11)))
                .build()
            ],
            [_one_each(12)],
            100,
            id="one-share-too-many",
        ),
    ],
)
def test_what_explodes_upstream_takes_few_steps(
    slices: Sequence[resourceslice.ResourceSlice], claims: Sequence[resourceclaim.ResourceClaim], most: int
) -> None:
    built = _built(*slices)
    built.allocate(_NODE, claims)
    outcome = built.allocate(_NODE, claims)
    assert isinstance(outcome, allocator.DoesNotFit)
    assert outcome.steps <= most


def test_different_devices_for_different_requests_are_found_without_trying_all() -> None:
    """Request n wants one of the first n+1 devices, the widest first: only one assignment works."""
    built = claim("c")
    for number in reversed(range(14)):
        select = f'device.attributes["gpu"].index <= {number}'
        built = built.request(f"r{number:02}", device_class="gpu", count=1, mode="ExactCount", select=select)
    entries = [device(f"d{number:02}").attributes(index=number) for number in range(14)]
    published = resource_slice("s", driver="gpu").on_node("n").devices(*entries).build()
    allocate = _built(published)
    allocate.allocate(_NODE, [built.build()])
    outcome = allocate.allocate(_NODE, [built.build()])
    assert _chosen(outcome) == [[f"d{number:02}" for number in reversed(range(14))]]
    assert outcome.steps < 500


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        pytest.param(
            claim("c").request("r", device_class="nope", count=1, mode="ExactCount").build(),
            "claim default/c, request r: could not retrieve device class nope: "
            'deviceclass.resource.k8s.io "nope" not found',
            id="unknown-class",
        ),
        pytest.param(
            resourceclaim.ResourceClaim(
                metadata=claim("c").build().metadata,
                spec=resourceclaim.ResourceClaimSpec(
                    devices=resourceclaim.DeviceClaim(requests=(resourceclaim.DeviceRequest(name="r"),))
                ),
            ),
            "claim default/c, request r: missing device class name (unsupported request type?)",
            id="unknown-request-type",
        ),
        pytest.param(
            claim("c").request("r", device_class="any", count=1, mode="Some").build(),
            "claim default/c, request r: unsupported count mode Some",
            id="unknown-mode",
        ),
        pytest.param(
            claim("c").first_available("r", subrequest("s", "any", count=33, mode="ExactCount")).build(),
            "claim default/c: number of requested devices 33 exceeds the claim limit of 32",
            id="too-many-devices",
        ),
    ],
)
def test_bad_input_is_an_error(wanted: resourceclaim.ResourceClaim, message: str) -> None:
    with pytest.raises(errors.AllocationError) as caught:
        _built(_devices(2)).allocate(_NODE, [wanted])
    assert str(caught.value) == message


def test_an_invalid_pool_is_an_error_of_the_node_only_if_nothing_fits() -> None:
    twice = resource_slice("twice", driver="other").on_node("n").devices("a", "a").build()
    built = _built(_devices(1), twice)
    assert _chosen(built.allocate(_NODE, [_one_each(1)])) == [["d00"]]
    with pytest.raises(errors.InvalidPoolError, match=r"^invalid resource pools were encountered$"):
        built.allocate(_NODE, [_one_each(2)])


def test_a_selector_that_fails_on_a_device_that_is_not_reached_is_no_error() -> None:
    select = 'device.attributes["gpu"].model == "a"'
    wanted = claim("c").request("r", device_class="gpu", count=1, mode="ExactCount", select=select).build()
    good, bad = device("d0").attributes(model="a"), device("d1")
    reached = resource_slice("s", driver="gpu").on_node("n").devices(good, bad).build()
    assert _chosen(_built(reached).allocate(_NODE, [wanted])) == [["d0"]]
    first = resource_slice("s", driver="gpu").on_node("n").devices(bad, good).build()
    with pytest.raises(errors.AllocationError) as caught:
        _built(first).allocate(_NODE, [wanted])
    assert str(caught.value) == (
        "claim default/c: selector #0 on device gpu/s/d1: CEL runtime error: no such key: model. consider using CEL "
        "optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields"
    )


def _zone(*zones: str) -> nodeselector.NodeSelector:
    requirement = nodeselector.NodeSelectorRequirement(key="zone", operator="In", values=zones)
    term = nodeselector.NodeSelectorTerm(match_expressions=(requirement,))
    return nodeselector.NodeSelector(node_selector_terms=(term,))


def test_the_node_selectors_of_all_devices_apply_each_once() -> None:
    slices = [
        resource_slice(f"s{number}", driver="gpu").on_nodes(_zone(*zones)).devices("a").build()
        for number, zones in enumerate((("x", "y"), ("y", "x"), ("x",)))
    ]
    outcome = _built(*slices).allocate(allocator.Node("n", {"zone": "x"}), [_one_each(3)])
    assert isinstance(outcome, allocator.Allocated)
    selector = outcome.results[0].node_selector
    assert selector is not None
    assert [entry.values for entry in selector.node_selector_terms[0].match_expressions] == [("x", "y"), ("x",)]


def test_a_node_selector_of_several_terms_is_refused() -> None:
    two = nodeselector.NodeSelector(
        node_selector_terms=(*_zone("x").node_selector_terms, *_zone("y").node_selector_terms)
    )
    published = resource_slice("s", driver="gpu").on_nodes(two).devices("a").build()
    with pytest.raises(errors.AllocationError) as caught:
        _built(published).allocate(allocator.Node("n", {"zone": "x"}), [_one_each(1)])
    assert str(caught.value) == ("create NodeSelector for claim c: unsupported ResourceSlice.NodeSelector with 2 terms")


def test_devices_for_all_nodes_need_no_node_selector() -> None:
    published = resource_slice("s", driver="gpu").on_all_nodes().devices("a").build()
    outcome = _built(published).allocate(_NODE, [_one_each(1)])
    assert isinstance(outcome, allocator.Allocated)
    assert outcome.results[0].node_selector is None


def test_a_class_that_changes_is_noticed() -> None:
    built = _built(_devices(1))
    wanted = claim("c").request("r", device_class="gpu", count=1, mode="ExactCount").build()
    assert _chosen(built.allocate(_NODE, [wanted])) == [["d00"]]
    built.classes.put(device_class("gpu", 'device.driver == "other"').build())
    assert isinstance(built.allocate(_NODE, [wanted]), allocator.DoesNotFit)
