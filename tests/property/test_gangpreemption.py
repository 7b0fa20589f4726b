"""Preemption for gangs: room is found exactly where evicting all who may go would make it, and nobody goes in vain."""

from hypothesis import given, settings
from hypothesis import strategies as st

from drachma.api import meta, pod, poddisruptionbudget, podgroup
from drachma.scheduler.cycle import gangpreemption, gangsearch
from drachma.scheduler.cycle.decision import Placed
from drachma.scheduler.framework import eviction
from drachma.scheduler.snapshot import Snapshot, gangs
from drachma.testing import pod as a_pod
from tests.property.gangworlds import NODES, PODS, a_world, fits_some_way, gang_of, seen
from tests.unit.scheduler.worlds import World

_PRIORITY = 5
_RESIDENTS = st.lists(
    st.tuples(
        st.integers(0, 2),  # node
        st.sampled_from([1, 2]),  # cpu
        st.sampled_from([0, 3, 5, 9]),  # priority
        st.sampled_from(["", "", "group"]),
    ),
    max_size=5,
)


def put_residents(world: World, residents: list[tuple[int, int, int, str]], *, together: bool) -> dict[str, pod.Pod]:
    """Pods on nodes, by uid; those of the one group have its priority."""
    mode = podgroup.DisruptionMode(all=podgroup.AllDisruptionMode()) if together else None
    spec = podgroup.PodGroupSpec(disruption_mode=mode, priority=3)
    world.snapshot.gangs.put_group(
        podgroup.PodGroup(metadata=meta.ObjectMeta(name="group", namespace="default"), spec=spec)
    )
    made: dict[str, pod.Pod] = {}
    for number, (place, cpu, priority, group) in enumerate(residents):
        each = a_pod(f"r{number}").uid(f"r{number}").label("app", "kept").container("c", requests={"cpu": str(cpu)})
        each = each.on_node(f"n{place % len(world.snapshot.nodes)}").spec(priority=3 if group else priority)
        if group:
            each = each.spec(scheduling_group=pod.PodSchedulingGroup(pod_group_name=group))
        made[f"r{number}"] = built = each.build()
        world.snapshot.add_pod(built)
        world.snapshot.gangs.put_pod(built)
    return made


def goes_to(world: World, snapshot: Snapshot, placements: tuple[Placed, ...]) -> bool:
    """Whether the pods fit on the very nodes that they were given."""
    fork = snapshot.fork()
    for placed in placements:
        node = fork.nodes.find(placed.node)
        assert node is not None
        decided = world.cycle.decide(placed.info, fork, excluded=fork.nodes.all_nodes & ~node.bit)
        if not isinstance(decided, Placed):
            return False
        fork.commit(decided.assignment)
    return True


@settings(max_examples=60)
@given(NODES, PODS, _RESIDENTS, st.booleans(), st.integers(0, 2))
def test_all_of_a_gang_or_nobody(
    nodes: list[tuple[int, tuple[str, ...]]],
    pods: list[tuple[int, str]],
    residents: list[tuple[int, int, int, str]],
    together: bool,
    allowed: int,
) -> None:
    world = a_world(nodes)
    snapshot = world.snapshot
    there = put_residents(world, residents, together=together)
    budget = poddisruptionbudget.PodDisruptionBudget(
        metadata=meta.ObjectMeta(name="kept", namespace="default"),
        spec=poddisruptionbudget.PodDisruptionBudgetSpec(selector=meta.LabelSelector(match_labels={"app": "kept"})),
        status=poddisruptionbudget.PodDisruptionBudgetStatus(disruptions_allowed=allowed),
    )
    snapshot.budgets.put(budget)
    members = gang_of(world, pods, priority=_PRIORITY)
    needed = len(members)
    gang = gangs.Gang(gangs.GangKey("default", gangs.Source.LABEL, "g"), needed, {})
    before = seen(world)
    tried = gangpreemption.preempt(
        world.cycle,
        snapshot,
        members,
        gang=gang,
        preemptor=eviction.Preemptor("gang", "g"),
        search=lambda fork: gangsearch.search(world.cycle, fork, members, needed=needed, steps=100_000),
        describe=lambda short: str(short.placed),
    )
    assert seen(world) == before
    lesser = {uid for uid, each in there.items() if (each.spec.priority or 0) < _PRIORITY}
    emptied = snapshot.fork()
    for uid in lesser:
        emptied.remove_pod(uid)
    could_be = bool(lesser) and fits_some_way(world, members, needed, emptied)
    assert isinstance(tried, gangpreemption.Room) == could_be
    if isinstance(tried, gangpreemption.NoRoom):
        return
    gone = {victim.metadata.uid for victim in tried.eviction.victims}
    assert gone <= lesser
    assert len(tried.nodes) == needed
    assert tried.eviction.violations <= max(len(lesser) - allowed, 0)
    group = {uid for uid in lesser if there[uid].spec.scheduling_group is not None}
    units = [{uid} for uid in gone - group] if together else [{uid} for uid in gone]
    if together and gone & group:
        assert group <= gone
        units.append(group)
    after = snapshot.fork()
    for uid in gone:
        after.remove_pod(uid)
    assert goes_to(world, after, tried.placements)
    # Nobody goes in vain: with any one of them back, the pods do not fit where they go.
    for unit in units:
        back = after.fork()
        for uid in unit:
            back.add_pod(there[uid])
        assert not goes_to(world, back, tried.placements)
