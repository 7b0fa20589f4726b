"""The autoscaler as a component: looks at the cluster, plans, asks its provider for nodes, and lets nodes go.

Each round takes the cluster as the informers have it, with the nodes that are on their way as if they were there, and
plans for the pods that the scheduler says fit nowhere. Once a planned node is there, it is nominated for its pods, so
that nobody else takes their place. Nodes of groups that nobody has needed for a while, and whose pods fit elsewhere,
are cordoned, emptied by evictions that heed disruption budgets, and given back, one after the other.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import node as nodes
from drachma.api import pod, resourceslice
from drachma.claims import conditions, podstate, wellknown
from drachma.client import patches
from drachma.runtime import Surroundings, events
from drachma.scheduler import Settings as SchedulerSettings
from drachma.simulate import nodegroup, shrinkage, simulation
from drachma.simulate.autoscaler import groupledger
from drachma.simulate.autoscaler.provider import Provider, ProviderError
from drachma.simulate.clusterstate import KINDS, ClusterState
from drachma.simulate.growth import Objective, Plan, Planner
from drachma.simulate.simulation import Simulation

_log = logging.getLogger(__name__)

NAME: Final = "autoscaler"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What can be set; times are in seconds."""

    objective: Objective = Objective.NODES
    interval: float = 10.0
    """Between two rounds."""
    most_new: int = 100
    """Nodes that are asked for in one round at most."""
    pauses: groupledger.Pauses = groupledger.Pauses()
    unneeded: float = 600.0
    """How long nobody must have needed a node before it goes."""
    cooldown: float = 600.0
    """After growing, before any node goes."""
    shrinks: bool = True


class Autoscaler:
    """Grows and shrinks the groups of one cluster."""

    name: Final = NAME

    def __init__(
        self,
        surroundings: Surroundings,
        groups: Sequence[nodegroup.NodeGroup],
        provider: Provider,
        *,
        chosen: Settings | None = None,
    ) -> None:
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._gates: Final = surroundings.gates
        self._caches: Final[list[Any]] = [surroundings.informers.of(kind).cache for kind in KINDS]
        self._recorder: Final = surroundings.recorder(NAME)
        self._groups: Final = {group.name: group for group in groups}
        self._provider: Final = provider
        self._settings: Final = chosen or Settings()
        self._ledger: Final = groupledger.GroupLedger(self._settings.pauses)
        self._planned: dict[str, str] = {}
        self._said: dict[str, str] = {}
        self._unneeded_since: dict[str, float] = {}
        self._leaving: set[str] = set()
        self._grown = float("-inf")

    async def run(self) -> None:
        """Rounds until cancelled; one that fails is told and followed by the next."""
        while True:
            try:
                await self.round()
            except errors.DrachmaError as error:
                _log.warning("a round failed: %s", error)
            await self._clock.sleep(self._settings.interval)

    async def round(self) -> None:
        """Looks once, and does what there is to be done."""
        now = self._clock.monotonic()
        state = ClusterState.of(each for cache in self._caches for each in cache)
        there = {str(each.metadata.name): each for each in state.all(nodes.Node)}
        self._see_arrivals({name: each for name, each in there.items() if self._is_complete(each, state)})
        for late in self._ledger.expire(now):
            _log.warning("node %s of group %s has not come", late.name, late.group)
        await self._nominate(state, there)
        await self._grow(state, now)
        if self._settings.shrinks:
            await self._shrink(state, there, now)

    # Growing

    def _see_arrivals(self, there: Mapping[str, nodes.Node]) -> None:
        """Nodes that were asked for and are there; where a provider has names of its own, any of the group will do."""
        for expected in self._ledger.upcoming:
            if expected.name in there:
                self._ledger.arrive(expected.name)
        if self._provider.keeps_names:
            return
        known = set(self._planned.values()) & set(there)
        for expected in self._ledger.upcoming:
            group = self._groups[expected.group]
            came = next((name for name, each in there.items() if name not in known and self._is_new(group, each)), None)
            if came is not None:
                known.add(came)
                self._ledger.arrive(expected.name)
                self._planned = {
                    uid: came if planned == expected.name else planned for uid, planned in self._planned.items()
                }

    def _is_complete(self, member: nodes.Node, state: ClusterState) -> bool:
        """Whether all drivers that its group has have said what is on a node: before that, it is as if on its way."""
        group = self._group_of(member)
        wanted = set() if group is None else {each.spec.driver for each in group.slices}
        name = str(member.metadata.name)
        there = {each.spec.driver for each in state.all(resourceslice.ResourceSlice) if each.spec.node_name == name}
        return wanted <= there

    def _is_new(self, group: nodegroup.NodeGroup, member: nodes.Node) -> bool:
        return group.has(member) and str(member.metadata.name) not in self._unneeded_since

    async def _grow(self, state: ClusterState, now: float) -> None:
        waiting = [each for each in state.all(pod.Pod) if _is_unschedulable(each)]
        self._said = {
            uid: text for uid, text in self._said.items() if any(each.metadata.uid == uid for each in waiting)
        }
        if not waiting and all(group.min == 0 for group in self._groups.values()):
            return
        others = (each for each in state.objects if not isinstance(each, pod.Pod) or each.spec.node_name)
        cluster = Simulation(ClusterState.of([*others, *waiting]), chosen=SchedulerSettings(gates=self._gates))
        for expected in self._ledger.upcoming:
            cluster.add(self._groups[expected.group].make(expected.name))
        plan = Planner(
            cluster, tuple(self._groups.values()), objective=self._settings.objective, maxima=self._maxima(cluster, now)
        ).plan()
        await self._carry_out(plan, waiting, now)

    def _maxima(self, cluster: Simulation, now: float) -> dict[str, int]:
        """Groups that are left alone may not grow, and none by more than a round may."""
        maxima = {}
        for group in self._groups.values():
            have = sum(group.has(each.node) for each in cluster.snapshot.nodes)
            room = 0 if self._ledger.is_left_alone(group.name, now=now) else self._settings.most_new
            maxima[group.name] = min(group.max, have + room)
        return maxima

    async def _carry_out(self, plan: Plan, waiting: list[pod.Pod], now: float) -> None:
        asked: set[str] = set()
        for name, new in plan.nodes.items():
            group = self._groups[name]
            try:
                await self._provider.grow(group, new)
            except ProviderError as error:
                seconds = self._ledger.fail(name, now=now)
                _log.warning("group %s cannot grow, and is left alone for %g seconds: %s", name, seconds, error)
                continue
            _log.info("group %s grows by %d", name, len(new))
            self._grown = now
            asked.update(new)
            for node in new:
                self._ledger.ask(node, group=name, now=now)
        expected = {each.name for each in self._ledger.upcoming}
        for each in waiting:
            title = simulation.title(each)
            target = plan.placed.get(title, "")
            if target in expected:
                self._planned[each.metadata.uid] = target
            if target in asked:
                grown = ", ".join(f"{name} by {len(new)}" for name, new in plan.nodes.items())
                self._say(each, "TriggeredScaleUp", f"node groups grow: {grown}", events.NORMAL)
            elif title in plan.pending:
                self._say(each, "NotTriggerScaleUp", plan.pending[title], events.NORMAL)

    def _say(self, about: pod.Pod, reason: str, text: str, kind: events.Type) -> None:
        """Has an event recorded, unless the same was said about the pod before."""
        if self._said.get(about.metadata.uid) != f"{reason}: {text}":
            self._said[about.metadata.uid] = f"{reason}: {text}"
            self._recorder.record(about, type=kind, reason=reason, message=text)

    async def _nominate(self, state: ClusterState, there: Mapping[str, nodes.Node]) -> None:
        """Keeps nodes that have come for the pods that they were asked for."""
        pods = {each.metadata.uid: each for each in state.all(pod.Pod)}
        for uid, node in list(self._planned.items()):
            waiting = pods.get(uid)
            if waiting is None or waiting.spec.node_name:
                del self._planned[uid]
            elif node in there:
                del self._planned[uid]
                patch = patches.merge({"status": {"nominatedNodeName": node}}, patches.same(waiting))
                try:
                    await self._client.patch(
                        pod.Pod,
                        waiting.metadata.name,
                        patch=patch,
                        namespace=waiting.metadata.namespace,
                        subresource="status",
                    )
                except errors.RefusedError as error:
                    _log.debug("pod %s: %s", simulation.title(waiting), error)

    # Shrinking

    async def _shrink(self, state: ClusterState, there: Mapping[str, nodes.Node], now: float) -> None:
        if self._leaving:
            await self._let_go(state, there)
            return
        is_quiet = now - self._grown >= self._settings.cooldown and not self._ledger.upcoming
        members = {name for name, each in there.items() if self._group_of(each) is not None}
        if not members or not is_quiet:
            self._unneeded_since.clear()
            return
        cluster = Simulation(state, chosen=SchedulerSettings(gates=self._gates))
        found = shrinkage.shrink(cluster, groups=tuple(self._groups.values()), among=members)
        spare = [removal.usage.node for removal in found.removals]
        self._unneeded_since = {name: self._unneeded_since.get(name, now) for name in spare}
        for name in spare:
            if now - self._unneeded_since[name] >= self._settings.unneeded:
                await self._start_leaving(there[name])
                return

    async def _start_leaving(self, member: nodes.Node) -> None:
        name = str(member.metadata.name)
        patch = patches.merge({"spec": {"unschedulable": True}}, patches.same(member))
        await self._client.patch(nodes.Node, name, patch=patch)
        self._leaving.add(name)
        self._recorder.record(member, type=events.NORMAL, reason="ScaleDown", message="nobody needs the node: it goes")

    async def _let_go(self, state: ClusterState, there: Mapping[str, nodes.Node]) -> None:
        """Empties the nodes that are to go, and gives those back that are empty."""
        for name in list(self._leaving):
            member = there.get(name)
            group = None if member is None else self._group_of(member)
            if member is None or group is None:
                self._leaving.discard(name)
                continue
            moving = [
                each
                for each in state.all(pod.Pod)
                if each.spec.node_name == name and not podstate.has_ended(each) and not shrinkage.belongs_to_node(each)
            ]
            for each in moving:
                if each.metadata.deletion_timestamp is None:
                    await self._evict(each, name)
            if moving:
                continue
            try:
                await self._provider.remove(group, name)
            except ProviderError as error:
                _log.warning("node %s of group %s cannot go: %s", name, group.name, error)
                continue
            self._leaving.discard(name)

    async def _evict(self, moving: pod.Pod, node: str) -> None:
        try:
            await self._client.evict(moving)
        except errors.RefusedError as error:
            _log.info("pod %s stays on node %s for now: %s", simulation.title(moving), node, error)
            return
        text = f"evicted from node {node}, which nobody else needs: there is room elsewhere"
        self._recorder.record(moving, type=events.NORMAL, reason="ScaleDown", message=text)

    def _group_of(self, member: nodes.Node) -> nodegroup.NodeGroup | None:
        return next((group for group in self._groups.values() if group.has(member)), None)


def _is_unschedulable(waiting: pod.Pod) -> bool:
    """Whether the scheduler has said of a pod that it fits nowhere."""
    if waiting.spec.node_name or waiting.status.nominated_node_name or podstate.has_ended(waiting):
        return False
    condition = conditions.find(waiting.status.conditions, wellknown.POD_SCHEDULED)
    return condition is not None and (condition.status, condition.reason) == ("False", "Unschedulable")
