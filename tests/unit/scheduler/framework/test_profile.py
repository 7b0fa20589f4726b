"""Profiles: one order for all decisions, and plugins that need a module and one line."""

from __future__ import annotations

import random

import pytest
from msgspec import structs

from drachma.api import gates, pod
from drachma.scheduler import cycle, profiles, settings
from drachma.scheduler.cycle.decision import Decision, Placed, Unfit
from drachma.scheduler.framework import cyclestate, hints, plugin, verdict
from drachma.scheduler.framework.eviction import Eviction
from drachma.scheduler.framework.profile import Entry, Profile
from drachma.scheduler.snapshot import Snapshot, podinfo
from drachma.testing import node
from drachma.testing import pod as a_pod
from drachma.testing.manualclock import ManualClock
from tests.unit.scheduler.framework.spreading import SpreadOverZones


class Named:
    """Plugin that does nothing."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def name(self) -> str:
        return self._name


class Choosy(Named):
    """Plugin that requires nodes by name."""

    def __init__(self, name: str, *nodes: str) -> None:
        super().__init__(name)
        self._nodes = frozenset(nodes)

    def pre_filter(self, _cycle: cyclestate.CycleState) -> plugin.PreFilterResult:
        return plugin.PreFilterResult(self._nodes)


class Rejecting(Named):
    """Plugin that rejects every node, or only those of a set."""

    def __init__(self, name: str, nodes: int = -1) -> None:
        super().__init__(name)
        self._nodes = nodes

    def filter(self, _cycle: cyclestate.CycleState, alive: int) -> plugin.Filtered:
        return plugin.split(alive, ~self._nodes, rejection=verdict.Rejection(self.name, (f"{self.name} said no",)))


class World:
    """Cluster and profile."""

    def __init__(self, *entries: Entry) -> None:
        self.chance = random.Random(1)
        self.default = profiles.default(settings.Settings(), clock=ManualClock(), rng=self.chance)
        self.profile = Profile((*self.default.entries, *entries))
        self.cycle = cycle.Cycle(self.profile, rng=self.chance, monotonic=lambda: 0.0)
        self.snapshot = Snapshot(gates.ALL)
        for number, zone in enumerate("xxy"):
            made = node(f"n{number}", labels={"zone": zone}, allocatable={"cpu": "2", "memory": "8Gi", "pods": "9"})
            self.snapshot.add_node(made.build())

    def decide(self, name: str, *, app: str = "", cpu: str = "0", priority: int = 0) -> Decision:
        return self.cycle.decide(waiting(name, app=app, cpu=cpu, priority=priority), self.snapshot)


def waiting(name: str, *, app: str = "", cpu: str = "0", priority: int = 0) -> podinfo.PodInfo:
    made = a_pod(name).uid(name).container("c", requests={"cpu": cpu}).spec(priority=priority).build()
    labels = {"app": app} if app else {}
    return podinfo.PodInfo(structs.replace(made, metadata=structs.replace(made.metadata, labels=labels)))


def on_node(info: podinfo.PodInfo, name: str) -> pod.Pod:
    return structs.replace(info.pod, spec=structs.replace(info.pod.spec, node_name=name))


def message(decided: Decision) -> str:
    assert isinstance(decided, Unfit)
    return decided.diagnosis.message()


def test_the_first_plugin_that_says_no_is_the_one_that_counts() -> None:
    world = World(Entry(Rejecting("First", 0b001)), Entry(Rejecting("Second")))
    assert message(world.decide("p")) == "0/3 nodes are available: 1 First said no, 2 Second said no."


def test_plugins_that_name_nodes_have_to_agree() -> None:
    world = World(Entry(Choosy("First", "n0", "n1")), Entry(Choosy("Second", "n1", "n2")))
    decided = world.decide("p")
    assert isinstance(decided, Placed)
    assert decided.node == "n1"
    world = World(Entry(Choosy("First", "n0")), Entry(Choosy("Second", "n1")))
    assert message(world.decide("p")) == (
        "0/3 nodes are available: node(s) didn't satisfy plugin(s) [First Second] simultaneously."
    )
    world = World(Entry(Choosy("First", "n0", "gone")), Entry(Rejecting("Second")))
    assert message(world.decide("p")) == (
        "0/3 nodes are available: 1 Second said no, 2 node(s) didn't satisfy plugin(s) [First]."
    )


def test_a_plugin_is_in_a_profile_once() -> None:
    with pytest.raises(ValueError, match="every plugin once"):
        Profile([Entry(Named("A")), Entry(Named("A"))])


def test_any_change_may_help_where_a_plugin_does_not_say() -> None:
    world = World(Entry(Rejecting("Mute")), Entry(Named("Harmless")))
    listeners = world.profile.hints(world.snapshot)
    assert {hint.resource for hint in listeners["Mute"]} == set(hints.Resource)
    assert all(hints.Action.UPDATE_NODE_TAINT in hint.actions for hint in listeners["Mute"])
    assert "Harmless" not in listeners


# A plugin that was not there: see spreading.py


def test_a_new_plugin_filters_and_scores() -> None:
    world = World(Entry(SpreadOverZones(), weight=2))
    zones = []
    for number in range(4):
        decided = world.decide(f"p{number}", app="web")
        assert isinstance(decided, Placed)
        world.snapshot.bind(decided.assignment)
        zones.append({"n0": "x", "n1": "x", "n2": "y"}[decided.node])
    assert sorted(zones) == ["x", "x", "y", "y"]
    assert zones[0] != zones[1]
    free = world.decide("other", app="db")
    assert isinstance(free, Placed)
    assert free.feasible == 3


def test_a_new_plugin_takes_part_in_dry_runs() -> None:
    """Evicting a pod of the same kind makes room in its zone, which only the new plugin knows."""
    world = World(Entry(SpreadOverZones()))
    for name in ("n0", "n1"):
        world.snapshot.add_pod(on_node(waiting(f"important-{name}", cpu="2", priority=100), name))
    world.snapshot.add_pod(on_node(waiting("web-0", app="web"), "n2"))
    decided = world.decide("web-1", app="web", cpu="1", priority=10)
    assert isinstance(decided, Unfit)
    assert message(decided) == (
        "0/3 nodes are available: 1 node(s) didn't match pod topology spread constraints, 2 Insufficient cpu."
    )
    tried = world.profile.post_filter(decided.cycle, decided.diagnosis)
    (eviction,) = tried.remedies
    assert isinstance(eviction, Eviction)
    assert (eviction.node, [victim.metadata.name for victim in eviction.victims]) == ("n2", ["web-0"])
    assert world.snapshot.nodes.node_of("web-0") == "n2"


def test_a_new_plugin_gives_way_to_nominated_pods() -> None:
    world = World(Entry(SpreadOverZones()))
    nominated = waiting("first", app="web", priority=10)
    world.snapshot.nominations.put(nominated, "n2")
    decided = world.decide("second", app="web")
    assert isinstance(decided, Placed)
    assert decided.node in ("n0", "n1")
