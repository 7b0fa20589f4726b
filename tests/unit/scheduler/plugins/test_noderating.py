"""Packing policies as a plugin of the scheduler: the nodes that pods get."""

import pytest

from drachma import allocator, testing
from drachma.api import meta
from drachma.cli import options
from drachma.scheduler import Settings
from drachma.scheduler.packing.policies import POLICIES
from drachma.simulate import ClusterState, Simulation
from tests.unit.simulate import objects, placements

PACKERS = ("best-fit", "dot-product", "gpu-packing", "drachma")


def cluster(policy: str, *more: meta.Object) -> Simulation:
    templates = [objects.template("one"), objects.template("two", 2), objects.template("four", 4)]
    nodes = [made for name in ("n1", "n2", "n3") for made in objects.gpu_node(name, 4)]
    state = ClusterState.of([objects.CLASS, *templates, *nodes, *more])
    return Simulation(state, settings=Settings(policy=allocator.NodePacking(policy)), seed=1)


def place(simulation: Simulation, name: str, gpus: str = "one") -> str:
    simulation.add([objects.gpu_pod(name, gpus)])
    (placed,) = simulation.schedule().placements
    return placed.node


@pytest.mark.parametrize("policy", PACKERS)
def test_packers_leave_whole_nodes(policy: str) -> None:
    simulation = cluster(policy)
    assert len({place(simulation, f"p{number}") for number in range(4)}) == 1
    assert place(simulation, "large", "four") != place(simulation, "small")
    preference = allocator.NodePacking(policy)
    assert placements.idle_machines(preference) == "4 of 8"


def test_fgd_learns_that_whole_nodes_are_requested() -> None:
    simulation = cluster("fgd")
    large, small = place(simulation, "large", "four"), place(simulation, "small")
    assert large != small
    assert [place(simulation, f"p{number}") for number in range(3)] == [small] * 3


def test_clustering_keeps_requests_of_a_size_together() -> None:
    simulation = cluster("gpu-clustering")
    ones, twos = place(simulation, "a"), place(simulation, "b", "two")
    assert ones != twos
    assert place(simulation, "c") == ones
    assert place(simulation, "d", "two") == twos


def test_random_uses_any_node() -> None:
    nodes = set()
    for seed in range(20):
        simulation = cluster("random").fork(seed=seed)
        nodes.add(place(simulation, "p"))
    assert nodes == {"n1", "n2", "n3"}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_never_decides_whether_a_pod_fits(policy: str) -> None:
    simulation = cluster(policy)
    simulation.add([objects.gpu_pod(f"p{number}", "four") for number in range(4)])
    simulation.add([objects.cpu_pod("cpu")])
    schedule = simulation.schedule()
    assert len(schedule.placements) == 4
    assert len(schedule.waiting) == 1


def test_shares_fill_a_device_before_the_next() -> None:
    device = testing.device("gpu").shared().capacity("memory", "80Gi")
    nodes: list[meta.Object] = []
    for name in ("n1", "n2"):
        devices = testing.resource_slice(name, driver=objects.DRIVER, pool=name).on_node(name).devices(device)
        nodes += [testing.node(name, allocatable=objects.CPU).build(), devices.build()]
    template = testing.claim_template("share").request(
        "gpu", device_class=objects.DRIVER, count=1, mode="ExactCount", capacity={"memory": "20Gi"}
    )
    for policy in ("best-fit", "drachma"):
        state = ClusterState.of([objects.CLASS, template.build(), *nodes])
        simulation = Simulation(state, settings=Settings(policy=allocator.NodePacking(policy)))
        got = [place(simulation, f"p{number}", "share") for number in range(8)]
        assert [got.count(name) for name in sorted(set(got))] == [4, 4]
        assert len(set(got[:4])) == 1, policy


def test_the_option_names_every_policy() -> None:
    for name in POLICIES:
        assert options.policy(name) == allocator.NodePacking(name)
