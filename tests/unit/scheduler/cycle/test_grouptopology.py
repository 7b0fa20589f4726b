"""The topology domain of a PodGroup, and the order of the groups of a CompositePodGroup."""

import pytest

from drachma.api import compositepodgroup, gates, meta, pod, podgroup
from drachma.scheduler.cycle import gangsearch, units
from drachma.scheduler.snapshot import podinfo
from drachma.testing import node
from drachma.testing import pod as a_pod
from tests.unit.scheduler.worlds import World

GATES = gates.ALL.switched(
    {
        gates.Gate.GENERIC_WORKLOAD: True,
        gates.Gate.TOPOLOGY_AWARE_WORKLOADS: True,
        gates.Gate.COMPOSITE_POD_GROUP: True,
    }
)
RACK = "example.com/rack"


class GroupWorld(World):
    """Nodes in racks, and groups of pods that need one cpu and 1Gi each."""

    def __init__(self) -> None:
        super().__init__(enabled=GATES)
        self.members: list[podinfo.PodInfo] = []

    def machine(
        self, name: str, rack: str, *, cpu: int, memory: int = 100, used: int = 0, used_memory: int = 0
    ) -> None:
        room = {"cpu": str(cpu), "memory": f"{memory}Gi", "pods": "99"}
        self.put_node(node(name, labels={RACK: rack}, allocatable=room))
        requests = {"cpu": str(used), "memory": f"{used_memory}Gi"}
        self.snapshot.add_pod(a_pod(f"on-{name}").uid(name).on_node(name).container("c", requests=requests).build())

    def group(self, name: str, *, pods: int, least: int, rack: bool = True, parent: str | None = None) -> None:
        policy = podgroup.PodGroupSchedulingPolicy(gang=podgroup.GangSchedulingPolicy(min_count=least))
        topology = (podgroup.TopologyConstraint(key=RACK),) if rack else ()
        spec = podgroup.PodGroupSpec(
            scheduling_policy=policy,
            scheduling_constraints=podgroup.SchedulingConstraints(topology=topology),
            parent_composite_pod_group_name=parent,
        )
        metadata = meta.ObjectMeta(name=name, namespace="default", uid=name)
        self.snapshot.gangs.put_group(podgroup.PodGroup(metadata=metadata, spec=spec))
        for number in range(pods):
            member = a_pod(f"{name}-{number}").uid(f"{name}-{number}")
            member = member.container("c", requests={"cpu": "1", "memory": "1Gi"})
            built = member.spec(scheduling_group=pod.PodSchedulingGroup(pod_group_name=name), priority=0).build()
            self.snapshot.gangs.put_pod(built)
            self.members.append(podinfo.PodInfo(built))

    def nodes(self) -> dict[str, str]:
        """Return the node of every pod that is placed."""
        decider = units.Units(self.cycle, self.profile, gates=GATES, gang_steps=1000)
        unit = decider.unit(self.members[0], self.snapshot)._replace(members=self.members)
        decision = decider.decide(unit, self.snapshot)
        assert isinstance(decision, gangsearch.Together), decision
        return {each.info.pod.metadata.name: each.assignment.node for each in decision.placements}

    def racks(self) -> set[str]:
        return {name.partition("-")[0] for name in self.nodes().values()}


@pytest.mark.parametrize(
    ("first", "second", "want"),
    [
        pytest.param({"cpu": 10, "used": 2}, {"cpu": 10, "used": 6}, "b", id="fuller-by-cpu"),
        pytest.param({"cpu": 10, "used_memory": 60}, {"cpu": 10, "used": 5}, "a", id="memory-counts-as-much"),
        # 2 of 2 pods and (40 + 2) / 2 against 1 of 2 pods and (90 + 90) / 2: 121 against 140.
        pytest.param(
            {"cpu": 10, "used": 2}, {"cpu": 10, "used": 9, "used_memory": 89}, "b", id="fuller-with-less-pods"
        ),
        pytest.param({"cpu": 10, "used": 2}, {"cpu": 10, "used": 9}, "a", id="more-pods"),
        pytest.param({"cpu": 10}, {"cpu": 10}, "a", id="the-first-of-equals"),
    ],
)
def test_the_domain_with_the_best_score_is_chosen(first: dict[str, int], second: dict[str, int], want: str) -> None:
    world = GroupWorld()
    world.machine("b-0", "b", **second)
    world.machine("a-0", "a", **first)
    world.group("g", pods=2, least=1)
    assert world.racks() == {want}


def test_the_groups_of_a_composite_are_placed_in_the_order_of_their_names() -> None:
    world = GroupWorld()
    world.machine("a-0", "a", cpu=2)
    world.machine("b-0", "b", cpu=1, memory=50, used_memory=40)
    policy = compositepodgroup.CompositePodGroupSchedulingPolicy(
        gang=compositepodgroup.CompositeGangSchedulingPolicy(min_group_count=1)
    )
    metadata = meta.ObjectMeta(name="all", namespace="default", uid="all")
    spec = compositepodgroup.CompositePodGroupSpec(scheduling_policy=policy)
    world.snapshot.gangs.put_composite(compositepodgroup.CompositePodGroup(metadata=metadata, spec=spec))
    for name in ("late", "early"):
        world.group(name, pods=2, least=2, parent="all")
    assert world.nodes() == {"early-0": "a-0", "early-1": "a-0"}
