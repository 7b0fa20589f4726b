"""Scores by the use of resources, with the figures that upstream's tests have."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drachma.accounting import ledger
from drachma.api import gates
from drachma.scheduler.framework import cyclestate, resourcescoring
from drachma.scheduler.framework.resourcescoring import ScoredResource, ShapePoint, Strategy, StrategyType, Usage
from drachma.scheduler.plugins import balancedallocation, noderesourcesfit
from drachma.scheduler.snapshot import Snapshot, podinfo
from drachma.testing import claim, device, device_class, node, resource_slice
from drachma.testing import pod as a_pod

GPU = "example.com/gpu"
DRIVER = "gpu.example.com"
GPUS_ALONE = (ScoredResource(GPU),)
ALL_THREE = (*resourcescoring.CPU_AND_MEMORY, ScoredResource(GPU))
WITHOUT_EXTENDED = gates.Gates(gates.ALL.enabled - {gates.Gate.EXTENDED_RESOURCE})


def a_snapshot(*selectors: str, enabled: gates.Gates = gates.ALL, **devices: int) -> Snapshot:
    """Return nodes ``a`` and ``b``, with the class of an extended resource, and so many devices each."""
    snapshot = Snapshot(enabled)
    for name in ("a", "b"):
        snapshot.add_node(node(name, allocatable={"cpu": "4", "memory": "4Gi", "pods": "10"}).build())
    snapshot.devices.put_class(device_class("gpu", *selectors).extended_resource(GPU).build())
    for name, number in devices.items():
        put_devices(snapshot, name, number)
    return snapshot


def put_devices(snapshot: Snapshot, name: str, number: int) -> None:
    devices = [device(f"gpu-{each}").attributes(index=each) for each in range(number)]
    snapshot.devices.put_slice(resource_slice(name, driver=DRIVER).on_node(name).devices(*devices).build())


def fit_scores(
    snapshot: Snapshot, strategy: Strategy, requests: Mapping[str, str], enabled: gates.Gates = gates.ALL
) -> dict[str, int]:
    cycle = cyclestate.CycleState(podinfo.PodInfo(a_pod("p").container("c", requests=requests).build()), snapshot)
    plugin = noderesourcesfit.NodeResourcesFit(enabled, strategy=strategy)
    plugin.pre_filter(cycle)
    passing, _ = plugin.filter(cycle, 0b11)
    scores = plugin.score(cycle, passing)
    return {name: score for score, nodes in scores.items() for place, name in enumerate("ab") if nodes >> place & 1}


@pytest.mark.parametrize(
    ("type_of_strategy", "want"),
    [
        # As upstream's test: (3 - 1) * 100 / 3, and (2 - 1) * 100 / 2.
        pytest.param(StrategyType.LEAST_ALLOCATED, {"a": 66, "b": 50}, id="least"),
        pytest.param(StrategyType.MOST_ALLOCATED, {"a": 33, "b": 50}, id="most"),
    ],
)
def test_devices_are_the_amounts_of_an_extended_resource(type_of_strategy: Any, want: dict[str, int]) -> None:
    strategy = Strategy(type_of_strategy, GPUS_ALONE)
    assert fit_scores(a_snapshot(a=3, b=2), strategy, {GPU: "1"}) == want


def test_allocated_devices_count_as_used() -> None:
    snapshot = a_snapshot(a=3, b=2)
    strategy = Strategy(resources=GPUS_ALONE)
    assert fit_scores(snapshot, strategy, {GPU: "1"}) == {"a": 66, "b": 50}
    held = claim("held").request("r", device_class="gpu").allocated(("r", DRIVER, "a", "gpu-1"))
    snapshot.devices.claims.observe(held.build())
    assert fit_scores(snapshot, strategy, {GPU: "1"}) == {"a": 33, "b": 50}


def test_only_devices_of_the_class_count() -> None:
    selector = f'device.attributes["{DRIVER}"].index < 2'
    assert fit_scores(a_snapshot(selector, a=4, b=2), Strategy(resources=GPUS_ALONE), {GPU: "1"}) == {"a": 50, "b": 50}


def test_a_selector_that_fails_leaves_the_resource_out() -> None:
    selector = f'device.attributes["{DRIVER}"].absent == 2'
    assert fit_scores(a_snapshot(selector, a=4, b=2), Strategy(resources=GPUS_ALONE), {GPU: "1"}) == {"a": 0, "b": 0}


def test_new_slices_change_the_scores() -> None:
    snapshot = a_snapshot(a=2, b=2)
    strategy = Strategy(resources=GPUS_ALONE)
    assert fit_scores(snapshot, strategy, {GPU: "1"}) == {"a": 50, "b": 50}
    put_devices(snapshot, "b", 4)
    assert fit_scores(snapshot, strategy, {GPU: "1"}) == {"a": 50, "b": 75}


def test_a_device_plugin_comes_before_devices_of_claims() -> None:
    snapshot = a_snapshot(a=3, b=2)
    snapshot.add_node(node("a", allocatable={"cpu": "4", "memory": "4Gi", "pods": "10", GPU: "10"}).build())
    assert fit_scores(snapshot, Strategy(resources=GPUS_ALONE), {GPU: "1"}) == {"a": 90, "b": 50}


def test_without_the_gate_devices_have_no_score() -> None:
    plugin = balancedallocation.NodeResourcesBalancedAllocation(WITHOUT_EXTENDED, resources=GPUS_ALONE)
    waiting = podinfo.PodInfo(a_pod("p").container("c", requests={GPU: "1"}).build())
    snapshot = a_snapshot(enabled=WITHOUT_EXTENDED, a=3, b=2)
    assert plugin.score(cyclestate.CycleState(waiting, snapshot), 0b11) == {75: 0b11}
    assert fit_scores(snapshot, Strategy(resources=GPUS_ALONE), {GPU: "1"}, WITHOUT_EXTENDED) == {}


def test_weights() -> None:
    resources = (ScoredResource("cpu", 1), ScoredResource(GPU, 3))
    # (cpu 75 * 1 + gpu 66 * 3) / 4 and (75 + 50 * 3) / 4
    assert fit_scores(a_snapshot(a=3, b=2), Strategy(resources=resources), {"cpu": "1", GPU: "1"}) == {"a": 68, "b": 56}


def test_a_resource_that_a_pod_does_not_request_is_left_out() -> None:
    assert fit_scores(a_snapshot(a=3, b=2), Strategy(resources=ALL_THREE), {"cpu": "2", "memory": "2Gi"}) == {
        "a": 50,
        "b": 50,
    }


def test_balance_with_devices_as_in_upstreams_test() -> None:
    snapshot = Snapshot(gates.ALL)
    for name, used in (("a", {"cpu": "3"}), ("b", {"cpu": "3", "memory": "5000"})):
        snapshot.add_node(node(name, allocatable={"cpu": "3500m", "memory": "40000", "pods": "9"}).build())
        snapshot.add_pod(a_pod(f"on-{name}").uid(name).on_node(name).container("c", requests=used).build())
    snapshot.devices.put_class(device_class("gpu").extended_resource(GPU).build())
    put_devices(snapshot, "a", 8)
    waiting = podinfo.PodInfo(a_pod("p").container("c", requests={GPU: "1"}).build())
    plugin = balancedallocation.NodeResourcesBalancedAllocation(gates.ALL, resources=ALL_THREE)
    assert plugin.score(cyclestate.CycleState(waiting, snapshot), 0b11) == {76: 0b01, 75: 0b10}


def test_balance_with_devices_of_a_class_with_selectors() -> None:
    snapshot = a_snapshot(f'device.driver == "{DRIVER}"', a=2)
    waiting = podinfo.PodInfo(a_pod("p").container("c", requests={GPU: "1", "cpu": "1"}).build())
    resources = (ScoredResource("cpu"), ScoredResource(GPU))
    plugin = balancedallocation.NodeResourcesBalancedAllocation(gates.ALL, resources=resources)
    # On the node with devices, shares of 1/4 and 1/2 deviate by 1/8: 50 + (50 + 87 - 100) / 2.
    assert plugin.score(cyclestate.CycleState(waiting, snapshot), 0b11) == {68: 0b01, 75: 0b10}


@pytest.mark.parametrize(
    ("shape", "requested", "want"),
    [
        pytest.param((ShapePoint(0, 0), ShapePoint(100, 10)), 30, 30, id="packs"),
        pytest.param((ShapePoint(0, 10), ShapePoint(100, 0)), 30, 70, id="spreads"),
        pytest.param((ShapePoint(0, 10), ShapePoint(70, 3)), 33, 67, id="rounds-towards-zero"),
        pytest.param((ShapePoint(40, 5), ShapePoint(60, 10)), 10, 50, id="before-the-first-point"),
        pytest.param((ShapePoint(40, 5), ShapePoint(60, 10)), 90, 100, id="after-the-last-point"),
        pytest.param((ShapePoint(0, 0), ShapePoint(100, 10)), 130, 100, id="overdrawn"),
    ],
)
def test_a_broken_line(shape: tuple[ShapePoint, ...], requested: int, want: int) -> None:
    strategy = Strategy(StrategyType.REQUESTED_TO_CAPACITY_RATIO, GPUS_ALONE, shape)
    assert strategy.score([Usage(requested, 0, 100)]) == want


def test_a_score_of_zero_has_no_weight_on_a_broken_line() -> None:
    strategy = Strategy(
        StrategyType.REQUESTED_TO_CAPACITY_RATIO,
        resourcescoring.CPU_AND_MEMORY,
        (ShapePoint(0, 0), ShapePoint(100, 10)),
    )
    assert strategy.score([Usage(0, 0, 100), Usage(55, 0, 100)]) == 55


@given(
    *(st.integers(0, 20_000) for _ in range(4)),
    st.integers(0, 5000),
    st.integers(0, 5000),
)
def test_the_default_strategy_gives_the_score_of_the_fit(
    cpu: int, memory: int, used_cpu: int, used_memory: int, more_cpu: int, more_memory: int
) -> None:
    """Nodes give the score of the default strategy together with their fit, computed separately for speed."""
    account = ledger.Ledger()
    account.measure(
        node("n", allocatable={"pods": "9", "cpu": f"{used_cpu + more_cpu + cpu}m", "memory": str(memory + 1)}).build()
    )
    account.scored_cpu, account.scored_memory = used_cpu, used_memory
    demand = ledger.Demand((), more_cpu, more_memory, ())
    question = noderesourcesfit.FitQuestion(demand)
    allocatable = account.allocatable
    usages = [
        Usage(used_cpu + more_cpu, used_cpu, allocatable["cpu"]),
        Usage(used_memory + more_memory, used_memory, allocatable["memory"]),
    ]
    assert question.ask(account).score == Strategy().score(usages)
