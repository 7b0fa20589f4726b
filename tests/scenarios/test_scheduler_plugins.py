"""A plugin that is not in the product, in a running scheduler: licences of a server that pods have to have.

It takes part from the queue to binding, and neither cycle nor queue nor binder know of it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from drachma.api import node as nodes
from drachma.api import pod
from drachma.scheduler import Settings, profiles
from drachma.scheduler.framework import bindingwork, cyclestate, handle, hints, plugin, verdict
from drachma.scheduler.framework.profile import Entry, Profile
from drachma.scheduler.snapshot import Snapshot, assignment
from drachma.testing import node
from drachma.testing import pod as a_pod
from tests.scenarios import schedulers


class Licences:
    """Nodes with the label ``licence``, and a server that has to hand one out before a pod is bound."""

    name = "Licences"

    def __init__(self) -> None:
        self.left = 1
        self.taken: list[str] = []
        self.returned: list[str] = []

    def hints(self, _snapshot: Snapshot) -> Sequence[hints.Hint]:
        return (hints.Hint(hints.Resource.NODE, hints.Action.ADD | hints.Action.UPDATE_NODE_LABEL, self._helps),)

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> plugin.Filtered:
        licensed = cycle.snapshot.nodes.properties.classes(
            self.name, lambda info: "licence" in info.node.metadata.labels, among=alive
        )
        return plugin.split(alive, licensed.get(True, 0), rejection=verdict.Rejection(self.name, ("no licence",)))

    def pre_bind(
        self, _cycle: cyclestate.CycleState, planned: assignment.Assignment, *, handle: handle.Handle
    ) -> bindingwork.BindingWork:
        return Licence(self, planned.pod.metadata.name)

    def _helps(self, _waiting: pod.Pod, _old: Any, new: nodes.Node) -> bool:
        return "licence" in new.metadata.labels


class Licence(bindingwork.BindingWork):
    """The licence of one pod."""

    def __init__(self, server: Licences, user: str) -> None:
        self._server = server
        self._user = user

    async def write(self) -> None:
        if not self._server.left:
            raise verdict.AbortError("the licence server has none left")
        self._server.left -= 1
        self._server.taken.append(self._user)

    @property
    def is_clean(self) -> bool:
        return False

    async def undo(self) -> None:
        self._server.returned.append(self._user)


def with_licences(world: schedulers.SchedulerWorld, licences: Licences) -> Profile:
    default = profiles.default(Settings(), clock=world.clock, rng=random.Random(1))
    return Profile((*default.entries, Entry(licences)))


async def test_a_plugin_rejects_nodes_and_is_woken_by_its_own_hints() -> None:
    async with schedulers.cluster(scheduler=False) as world:
        await world.start(plugins=with_licences(world, Licences()))
        await world.create(node("n1"), a_pod("p"))
        assert (await world.why("p")).startswith("0/1 nodes are available: 1 no licence.")
        await world.create(node("n2"))
        assert await world.node_of("p") == ""
        await world.create(node("n3", labels={"licence": "yes"}))
        await world.advance(2)
        assert await world.node_of("p") == "n3"


async def test_what_a_plugin_writes_before_binding_is_taken_back_where_it_fails() -> None:
    licences = Licences()
    async with schedulers.cluster(scheduler=False) as world:
        scheduler = await world.start(plugins=with_licences(world, licences))
        await world.create(node("n1", labels={"licence": "yes"}, allocatable={"cpu": "1", "pods": "9"}))
        await world.create(a_pod("first").container("c", requests={"cpu": "400m"}))
        await world.create(a_pod("second").container("c", requests={"cpu": "400m"}))
        assert (await world.node_of("first"), await world.node_of("second")) == ("n1", "")
        assert (licences.taken, licences.returned) == (["first"], ["second"])
        assert await world.why("second") == ('running PreBind plugin "Licences": the licence server has none left')
        info = scheduler.snapshot.nodes.find("n1")
        assert info is not None
        assert info.ledger.requested["cpu"] == 400
        licences.left = 1
        await world.advance(3)
        assert await world.node_of("second") == "n1"
