"""Units of scheduling: when a gang is tried, what is decided about it, and what may help it."""

from drachma.api import gates, pod
from drachma.scheduler.cycle import gangsearch, units
from drachma.scheduler.framework import eviction
from drachma.scheduler.snapshot import gangs, podinfo
from drachma.testing import node
from drachma.testing import pod as a_pod
from tests.unit.scheduler.worlds import World

GANGS = gates.ALL.switched({gates.Gate.GENERIC_WORKLOAD: True})


class UnitWorld(World):
    """Cluster in which units can be decided."""

    def __init__(self, *cpus: str, has_gangs: bool = True) -> None:
        super().__init__(enabled=GANGS)
        enabled = gates.ALL.switched({"GenericWorkload": has_gangs})
        self.units = units.Units(self.cycle, self.profile, gates=enabled, gang_steps=100)
        for number, cpu in enumerate(cpus):
            self.put_node(node(f"n{number}", allocatable={"cpu": cpu, "memory": "8Gi", "pods": "110"}))

    def unit(self, *members: pod.Pod) -> units.Unit:
        """Return the unit of waiting pods, which the snapshot counts as members of their gang."""
        for each in members:
            self.snapshot.gangs.put_pod(each)
        unit = self.units.unit(podinfo.PodInfo(members[0]), self.snapshot)
        return unit._replace(members=[podinfo.PodInfo(each) for each in members])


def a_member(name: str, *, cpu: str = "1", size: str = "2", priority: int = 0) -> pod.Pod:
    made = a_pod(name).uid(name).container("c", requests={"cpu": cpu}).spec(priority=priority)
    return made.label(gangs.LABEL, "g").annotation(gangs.SIZE, size).build()


def test_a_pod_without_a_gang_is_a_unit_by_itself() -> None:
    world = UnitWorld("1")
    unit = world.unit(a_pod("p").uid("p").container("c", requests={"cpu": "1"}).build())
    assert (unit.gang, unit.needed, unit.preemptor) == (None, 1, eviction.Preemptor("pod", "p"))
    decision = world.units.decide(unit, world.snapshot)
    assert isinstance(decision, gangsearch.Together)
    assert [placed.node for placed in decision.placements] == ["n0"]


def test_without_the_feature_members_are_units_by_themselves() -> None:
    assert UnitWorld("1", has_gangs=False).unit(a_member("a")).gang is None


def test_the_last_missing_member_of_a_gang_is_a_unit_by_itself() -> None:
    world = UnitWorld("4")
    bound = a_member("a")
    world.snapshot.gangs.put_pod(bound)
    world.snapshot.add_pod(a_pod("a").uid("a").on_node("n0").build())
    assert world.unit(a_member("b")).gang is None


def test_a_gang_that_is_not_defined_is_gated() -> None:
    world = UnitWorld("1")
    unit = world.unit(a_member("a", size="many"))
    decision = world.units.decide(unit, world.snapshot)
    assert isinstance(decision, units.Gated)
    assert not decision.is_brief
    assert "expected the number of pods of the gang" in decision.message


def test_a_gang_with_too_few_waiting_pods_is_gated_briefly() -> None:
    world = UnitWorld("4")
    unit = world.unit(a_member("a", size="3"), a_member("b", size="3"))
    assert world.units.decide(unit, world.snapshot) == units.Gated(
        "minCount (3) cannot be satisfied: gang default/g: 1 more pods have to be schedulable", is_brief=True
    )


def test_decisions_about_a_gang_are_about_the_snapshot_itself() -> None:
    world = UnitWorld("2")
    decision = world.units.decide(world.unit(a_member("a"), a_member("b")), world.snapshot)
    assert isinstance(decision, gangsearch.Together)
    assert all(placed.cycle.snapshot is world.snapshot for placed in decision.placements)


def test_preemption_relieves_a_gang_as_a_whole() -> None:
    world = UnitWorld("2")
    world.snapshot.add_pod(a_pod("lesser").uid("lesser").container("c", requests={"cpu": "2"}).on_node("n0").build())
    unit = world.unit(a_member("a", priority=1), a_member("b", priority=1))
    short = world.units.decide(unit, world.snapshot)
    assert isinstance(short, gangsearch.Short)
    assert units.describe(unit, short).startswith("minCount (2) cannot be satisfied: 0 scheduled, 2 missing; ")
    relief = world.units.relieve(unit, short, world.snapshot)
    assert relief.has_room
    assert relief.nodes == {"a": "n0", "b": "n0"}
    (proposed,) = relief.remedies
    assert proposed.title == "preemption for gang default/g"
    assert [victim.metadata.name for victim in proposed.victims] == ["lesser"]


def test_a_gang_waits_for_evictions_under_way() -> None:
    world = UnitWorld("1")
    unit = world.unit(a_member("a", priority=1), a_member("b", priority=1))
    short = world.units.decide(unit, world.snapshot)
    assert isinstance(short, gangsearch.Short)
    relief = world.units.relieve(unit, short, world.snapshot, is_evicting=True)
    assert relief == units.Relief("pod group preemption: ongoing preemption on nominated nodes")
