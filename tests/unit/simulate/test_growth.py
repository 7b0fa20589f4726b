"""Plans for growth."""

import pytest

from drachma import testing
from drachma.api import gates, meta
from drachma.scheduler import Settings
from drachma.simulate import ClusterState, NodeGroup, Simulation
from drachma.simulate.growth import Objective, Plan, Planner
from tests.unit.simulate import objects

COMMON = (objects.CLASS, objects.template("one"), objects.template("two", 2))


def plan(*given: meta.Object, groups: list[NodeGroup], objective: Objective = Objective.NODES, **maxima: int) -> Plan:
    cluster = Simulation(ClusterState.of([*COMMON, *given]))
    return Planner(cluster, groups, objective=objective, maxima=maxima).plan()


def test_nothing_is_bought_for_what_fits() -> None:
    made = plan(*objects.gpu_node("n1", 2), objects.gpu_pod("a"), groups=[objects.gpu_group("gpu", 4)])
    assert made == Plan({}, {"default/a": "n1"}, {}, 0.0)


def test_from_zero() -> None:
    pods = [objects.gpu_pod(f"p{number}") for number in range(6)]
    made = plan(*pods, groups=[objects.gpu_group("gpu", 4)])
    assert (dict(made.grow), sorted(set(made.placed.values()))) == ({"gpu": 2}, ["gpu-new-1", "gpu-new-2"])
    assert len(made.placed) == 6


def test_several_groups_at_once() -> None:
    pods = [objects.gpu_pod("g"), objects.cpu_pod("c1", "8"), objects.cpu_pod("c2", "8")]
    groups = [objects.gpu_group("gpu", 1, price=10), objects.cpu_group("cpu")]
    made = plan(*pods, groups=groups, objective=Objective.PRICE)
    assert dict(made.grow) == {"gpu": 1, "cpu": 2}
    assert made.price == 12


@pytest.mark.parametrize(
    ("objective", "grow"),
    [
        pytest.param(Objective.NODES, {"big": 1}, id="few-nodes"),
        pytest.param(Objective.PRICE, {"small": 4}, id="little-money"),
    ],
)
def test_objectives(objective: Objective, grow: dict[str, int]) -> None:
    pods = [objects.gpu_pod(f"p{number}") for number in range(4)]
    groups = [objects.gpu_group("small", 1, price=1), objects.gpu_group("big", 8, price=5)]
    assert dict(plan(*pods, groups=groups, objective=objective).grow) == grow


def test_a_mixture_may_be_cheapest() -> None:
    pods = [objects.gpu_pod(f"p{number}", "two") for number in range(5)]
    groups = [objects.gpu_group("small", 2, price=3), objects.gpu_group("big", 8, price=10)]
    made = plan(*pods, groups=groups, objective=Objective.PRICE)
    assert (dict(made.grow), made.price) == ({"small": 1, "big": 1}, 13)


def test_limits_leave_pods_waiting() -> None:
    pods = [objects.gpu_pod(f"p{number}") for number in range(3)]
    made = plan(*pods, groups=[objects.gpu_group("gpu", 1, most=5)], gpu=2)
    assert dict(made.grow) == {"gpu": 2}
    assert made.pending == {
        "default/p2": "0/2 nodes are available: 2 cannot allocate all claims. "
        "Node groups that cannot grow further: gpu."
    }


def test_what_no_group_helps_is_said() -> None:
    made = plan(objects.gpu_pod("a", "two"), groups=[objects.gpu_group("gpu", 1), objects.cpu_group("cpu")])
    assert (dict(made.grow), dict(made.placed)) == ({}, {})
    assert made.pending == {
        "default/a": "no nodes available to schedule pods. "
        "Node group gpu does not help: 0/1 nodes are available: 1 cannot allocate all claims. "
        "Node group cpu does not help: 0/1 nodes are available: 1 cannot allocate all claims."
    }


def test_groups_grow_to_their_minimum_and_count_their_members() -> None:
    group = NodeGroup(name="cpu", node=testing.node("t", allocatable=objects.CPU).build(), min=3, labels={"pool": "x"})
    there = testing.node("n1", labels={"pool": "x"}, allocatable=objects.CPU).build()
    assert dict(plan(there, groups=[group]).grow) == {"cpu": 2}


def test_a_worse_alternative_that_is_there_is_taken() -> None:
    listed = (
        testing.claim_template("listed")
        .first_available(
            "gpu",
            testing.subrequest("best", objects.DRIVER, count=2, mode="ExactCount"),
            testing.subrequest("good", objects.DRIVER, count=1, mode="ExactCount"),
        )
        .build()
    )
    pods = [objects.gpu_pod("a", "listed")]
    made = plan(*objects.gpu_node("n1", 1), listed, *pods, groups=[objects.gpu_group("gpu", 2)])
    assert (dict(made.grow), dict(made.placed)) == ({}, {"default/a": "n1"})


@pytest.mark.parametrize(
    ("most", "grow", "promised"),
    [pytest.param(2, {"gpu": 2}, 8, id="whole"), pytest.param(1, {}, 0, id="not-at-all")],
)
def test_a_gang_is_promised_whole_or_not_at_all(most: int, grow: dict[str, int], promised: int) -> None:
    gang = [objects.gang_pod(f"p{number}", "g", 8) for number in range(8)]
    enabled = gates.ALL.switched({gates.Gate.GENERIC_WORKLOAD: True})
    cluster = Simulation(ClusterState.of([*COMMON, *gang]), settings=Settings(gates=enabled))
    made = Planner(cluster, [objects.gpu_group("gpu", 4, most=most)]).plan()
    assert (dict(made.grow), len(made.placed), len(made.pending)) == (grow, promised, 8 - promised)
    assert all("minCount (8) cannot be satisfied" in reason for reason in made.pending.values())


def test_nothing_is_bought_for_a_part_of_a_gang() -> None:
    gang = [objects.gang_pod("a", "g", 3), objects.gang_pod("b", "g", 3)]
    huge = objects.gang_pod("c", "g", 3, cpu="100")
    enabled = gates.ALL.switched({gates.Gate.GENERIC_WORKLOAD: True})
    cluster = Simulation(ClusterState.of([*COMMON, *gang, huge]), settings=Settings(gates=enabled))
    made = Planner(cluster, [objects.gpu_group("gpu", 1)]).plan()
    assert (dict(made.grow), set(made.pending)) == ({}, {"default/a", "default/b", "default/c"})


FAST = testing.device_class("fast", f'device.attributes["{objects.DRIVER}"].model == "fast"').build()
SLOW = testing.device_class("slow", f'device.attributes["{objects.DRIVER}"].model == "slow"').build()
FAST_OR_SLOW = (
    testing.claim_template("listed")
    .first_available(
        "gpu",
        testing.subrequest("best", "fast", count=1, mode="ExactCount"),
        testing.subrequest("good", "slow", count=1, mode="ExactCount"),
    )
    .build()
)


def model_group(model: str, *, price: float = 1.0) -> NodeGroup:
    devices = [testing.device(f"gpu-{number}").attributes(model=model) for number in range(2)]
    published = testing.resource_slice("template-gpus", driver=objects.DRIVER, pool="template").on_node("template")
    node = testing.node("template", allocatable=objects.CPU).build()
    return NodeGroup(name=model, node=node, slices=(published.devices(*devices).build(),), price=price)


@pytest.mark.parametrize(
    ("prices", "objective", "grow"),
    [
        pytest.param((1, 1), Objective.NODES, {"fast": 2}, id="preference-decides-between-equal-plans"),
        pytest.param((1, 1), Objective.PRICE, {"fast": 2}, id="and-between-equal-prices"),
        pytest.param((3, 1), Objective.PRICE, {"slow": 2}, id="price-comes-first"),
        pytest.param((3, 1), Objective.NODES, {"slow": 2}, id="price-decides-between-equal-numbers-of-nodes"),
        pytest.param((3, 1), Objective.PREFERENCE, {"fast": 2}, id="preference-comes-first"),
    ],
)
@pytest.mark.parametrize("order", [1, -1], ids=["fast-first", "slow-first"])
def test_preferred_alternatives(
    prices: tuple[float, float], objective: Objective, grow: dict[str, int], order: int
) -> None:
    groups = [model_group("fast", price=prices[0]), model_group("slow", price=prices[1])][::order]
    pods = [objects.gpu_pod(f"p{number}", "listed") for number in range(3)]
    made = plan(FAST, SLOW, FAST_OR_SLOW, *pods, groups=groups, objective=objective)
    assert (dict(made.grow), len(made.placed)) == (grow, 3)


def test_exhausted_network_devices_are_named_and_not_the_cpu_of_full_nodes() -> None:
    """Every pod needs a node of its own, and one of two devices that all nodes share."""
    shared = testing.resource_slice("net", driver=objects.DRIVER, pool="net").on_all_nodes().devices("nic-0", "nic-1")
    pods = [objects.gpu_pod(f"p{number}", cpu="8") for number in range(3)]
    made = plan(shared.build(), *pods, groups=[objects.cpu_group("cpu")])
    assert (dict(made.grow), len(made.placed)) == ({"cpu": 2}, 2)
    [reason] = made.pending.values()
    assert "One more node of group cpu does not help: cannot allocate all claims" in reason
    assert f"request gpu wants 1 of class {objects.DRIVER}: 2 of 2" in reason
