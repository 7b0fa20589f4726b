"""The autoscaler as a component: plans, asks its provider for nodes, and removes nodes.

Each round takes the cluster from the informers, with nodes on their way as if they were ready, and plans for the pods
that the scheduler reports as unschedulable, and for capacity buffers. Once a planned node is ready, it is nominated for
its pods, so that no other pods take their place. Nodes of groups that were not needed for a while, and whose pods fit
elsewhere, are cordoned, drained with respect to disruption budgets, and returned, one after the other.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import meta, pod, resourceslice
from drachma.api import node as nodes
from drachma.claims import conditions, podstate, wellknown
from drachma.client import patches
from drachma.runtime import Surroundings, defects, events
from drachma.scheduler import Settings as SchedulerSettings
from drachma.simulate import nodegroup, shrinkage, simulation
from drachma.simulate.autoscaler import groupledger, readiness
from drachma.simulate.autoscaler.capacitybuffers import CapacityBuffers
from drachma.simulate.autoscaler.provider import Provider, ProviderError
from drachma.simulate.autoscaler.provisioningrequests import ProvisioningRequests
from drachma.simulate.clusterstate import KINDS, ClusterState
from drachma.simulate.growth import Objective, Plan, Planner
from drachma.simulate.simulation import Simulation

_log = logging.getLogger(__name__)

NAME: Final = "autoscaler"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the autoscaler. Times are in seconds."""

    objective: Objective = Objective.NODES
    interval: float = 10.0
    """Time between two rounds."""
    most_new: int = 100
    """Limit for nodes requested in one round."""
    pauses: groupledger.Pauses = groupledger.Pauses()
    unneeded: float = 600.0
    """Time without need after which a node is removed."""
    cooldown: float = 600.0
    """Time after growing in which no node is removed."""
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
        settings: Settings | None = None,
    ) -> None:
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._gates: Final = surroundings.gates
        self._caches: Final[list[Any]] = [surroundings.informers.of(kind).cache for kind in KINDS]
        self._recorder: Final = surroundings.recorder(NAME)
        self._groups: Final = {group.name: group for group in groups}
        self._provider: Final = provider
        self._settings: Final = settings or Settings()
        self._requests: Final = ProvisioningRequests(surroundings)
        self._buffers: Final = CapacityBuffers(surroundings)
        self._ledger: Final = groupledger.GroupLedger(self._settings.pauses)
        self._planned: dict[str, str] = {}
        self._last_events: dict[str, str] = {}
        self._unneeded_since: dict[str, float] = {}
        self._leaving: set[str] = set()
        self._seen: set[str] = set()
        self._grown = float("-inf")

    async def run(self) -> None:
        """Run rounds until cancelled. A failed round is logged and followed by the next."""
        while True:
            try:
                await self.round()
            except errors.DrachmaError as error:
                _log.warning("a round failed: %s", error)
            except Exception:
                defects.PROCESS.report("autoscaler", "the next round follows")
            await self._clock.sleep(self._settings.interval)

    async def round(self) -> None:
        """Look at the cluster once, and act."""
        now = self._clock.monotonic()
        state = ClusterState.of(each for cache in self._caches for each in cache)
        existing = {str(each.metadata.name): each for each in state.all(nodes.Node)}
        slices = state.all(resourceslice.ResourceSlice)
        ready = {
            name
            for name, each in existing.items()
            if (group := self._group_of(each)) is None or readiness.is_complete(each, group, slices)
        }
        self._see_arrivals(existing, ready, now)
        for late in self._ledger.expire(now):
            problem = "is not ready" if late.name in existing else "has not come"
            _log.warning("node %s of group %s %s", late.name, late.group, problem)
        await self._nominate(state, ready)
        await self._provision(state, now)
        placeholders = await self._buffers.placeholders()
        await self._grow(state, placeholders, now)
        if self._settings.shrinks:
            await self._shrink(ClusterState.of([*state.objects, *placeholders]), existing, now)

    # Requests for nodes

    async def _provision(self, state: ClusterState, now: float) -> None:
        """Answer one ProvisioningRequest: all of its pods find room, perhaps on new nodes, or none."""
        request = await self._requests.next_request()
        if request is None:
            return
        cluster = self._cluster_with(state, [*await self._requests.booked_pods(state.all(pod.Pod)), *request.pods])
        maxima = self._maxima(cluster, now) if request.may_grow else dict.fromkeys(self._groups, 0)
        groups = tuple(self._groups.values()) if request.may_grow else ()
        plan = Planner(cluster, groups, objective=self._settings.objective, maxima=maxima).plan()
        titles = {simulation.title(each) for each in request.pods}
        is_found = titles <= plan.placed.keys()
        grown = plan.nodes if is_found else {}
        is_requested = await self._request_nodes(grown, now) == sum(map(len, grown.values()))
        await self._requests.answer(request, is_found=is_found and is_requested, is_grown=bool(grown))

    def _cluster_with(self, state: ClusterState, waiting_pods: Sequence[pod.Pod]) -> Simulation:
        """Return the cluster with the nodes that are on their way, and with these pods waiting."""
        upcoming_names = {each.name for each in self._ledger.upcoming}
        objects = (each for each in state.objects if not _is_left_out(each, upcoming_names))
        cluster = Simulation(ClusterState.of([*objects, *waiting_pods]), settings=SchedulerSettings(gates=self._gates))
        for upcoming in self._ledger.upcoming:
            cluster.add(self._groups[upcoming.group].make(upcoming.name))
        return cluster

    async def _request_nodes(self, nodes_by_group: Mapping[str, Sequence[str]], now: float) -> int:
        """Ask the provider for nodes, and return the number of nodes that it promises."""
        count = 0
        for name, new in nodes_by_group.items():
            try:
                await self._provider.grow(self._groups[name], tuple(new))
            except ProviderError as error:
                seconds = self._ledger.fail(name, now=now)
                _log.warning("group %s cannot grow, and is left alone for %g seconds: %s", name, seconds, error)
                continue
            _log.info("group %s grows by %d", name, len(new))
            self._grown = now
            count += len(new)
            for node in new:
                self._ledger.ask(node, group=name, now=now)
        return count

    # Growing

    def _see_arrivals(self, existing: Mapping[str, nodes.Node], ready: Container[str], now: float) -> None:
        """Match new nodes with requests, and note the requested nodes that are ready.

        A new node that was not requested since this process began is on its way as well.
        """
        requests = {each.name for each in self._ledger.upcoming}
        for name, member in existing.items():
            group = self._group_of(member)
            if group is None or name in self._seen or name in requests:
                continue
            upcoming = next((each for each in self._ledger.upcoming if self._may_be(each, group, existing)), None)
            if upcoming is not None:
                self._ledger.rename(upcoming.name, name)
                self._planned = {uid: name if node == upcoming.name else node for uid, node in self._planned.items()}
            elif name not in ready:
                self._ledger.ask(name, group=group.name, now=now - self._age(member))
        self._seen = set(existing)
        for upcoming in self._ledger.upcoming:
            if upcoming.name in ready:
                self._ledger.arrive(upcoming.name)

    def _may_be(self, upcoming: groupledger.Upcoming, group: nodegroup.NodeGroup, existing: Container[str]) -> bool:
        """Return True if a new node of a group can be a requested one, whose name the provider did not keep."""
        return not self._provider.keeps_names and upcoming.group == group.name and upcoming.name not in existing

    def _age(self, member: nodes.Node) -> float:
        created = member.metadata.creation_timestamp
        return 0.0 if created is None else (self._clock.utc() - created).total_seconds()

    async def _grow(self, state: ClusterState, placeholders: Sequence[pod.Pod], now: float) -> None:
        unschedulable = [each for each in state.all(pod.Pod) if _is_unschedulable(each)]
        uids = {each.metadata.uid for each in unschedulable}
        self._last_events = {uid: text for uid, text in self._last_events.items() if uid in uids}
        if not unschedulable and not placeholders and all(group.min == 0 for group in self._groups.values()):
            return
        cluster = self._cluster_with(state, [*unschedulable, *placeholders])
        plan = Planner(
            cluster, tuple(self._groups.values()), objective=self._settings.objective, maxima=self._maxima(cluster, now)
        ).plan()
        await self._carry_out(plan, unschedulable, now)
        await self._buffers.report(plan.pending)

    def _maxima(self, cluster: Simulation, now: float) -> dict[str, int]:
        """Return the maximum of each group: paused groups may not grow, and none by more than the limit of a round."""
        maxima = {}
        for group in self._groups.values():
            have = sum(group.has(each.node) for each in cluster.snapshot.nodes)
            room = 0 if self._ledger.is_left_alone(group.name, now=now) else self._settings.most_new
            maxima[group.name] = min(group.max, have + room)
        return maxima

    async def _carry_out(self, plan: Plan, unschedulable: list[pod.Pod], now: float) -> None:
        await self._request_nodes(plan.nodes, now)
        upcoming_names = {each.name for each in self._ledger.upcoming}
        requested = {name for new in plan.nodes.values() for name in new} & upcoming_names
        for each in unschedulable:
            title = simulation.title(each)
            target = plan.placed.get(title, "")
            if target in upcoming_names:
                self._planned[each.metadata.uid] = target
            if target in requested:
                grown = ", ".join(f"{name} by {len(new)}" for name, new in plan.nodes.items())
                self._say(each, "TriggeredScaleUp", f"node groups grow: {grown}", events.NORMAL)
            elif title in plan.pending:
                self._say(each, "NotTriggerScaleUp", plan.pending[title], events.NORMAL)

    def _say(self, subject: pod.Pod, reason: str, text: str, kind: events.Type) -> None:
        """Record an event, unless the last one about the pod was the same."""
        if self._last_events.get(subject.metadata.uid) != f"{reason}: {text}":
            self._last_events[subject.metadata.uid] = f"{reason}: {text}"
            self._recorder.record(subject, type=kind, reason=reason, message=text)

    async def _nominate(self, state: ClusterState, ready: Container[str]) -> None:
        """Nominate new nodes for the pods that they were requested for."""
        pods = {each.metadata.uid: each for each in state.all(pod.Pod)}
        for uid, node in list(self._planned.items()):
            waiting_pod = pods.get(uid)
            if waiting_pod is None or waiting_pod.spec.node_name:
                del self._planned[uid]
            elif node in ready:
                del self._planned[uid]
                patch = patches.merge({"status": {"nominatedNodeName": node}}, patches.same(waiting_pod))
                try:
                    await self._client.patch(
                        pod.Pod,
                        waiting_pod.metadata.name,
                        patch=patch,
                        namespace=waiting_pod.metadata.namespace,
                        subresource="status",
                    )
                except errors.RefusedError as error:
                    _log.debug("pod %s: %s", simulation.title(waiting_pod), error)

    # Shrinking

    async def _shrink(self, state: ClusterState, existing: Mapping[str, nodes.Node], now: float) -> None:
        if self._leaving:
            await self._let_go(state, existing)
            return
        is_quiet = now - self._grown >= self._settings.cooldown and not self._ledger.upcoming
        members = {name for name, each in existing.items() if self._group_of(each) is not None}
        if not members or not is_quiet:
            self._unneeded_since.clear()
            return
        cluster = Simulation(state, settings=SchedulerSettings(gates=self._gates))
        plan = shrinkage.shrink(cluster, groups=tuple(self._groups.values()), among=members)
        spare = [removal.usage.node for removal in plan.removals]
        self._unneeded_since = {name: self._unneeded_since.get(name, now) for name in spare}
        for name in spare:
            if now - self._unneeded_since[name] >= self._settings.unneeded:
                await self._start_leaving(existing[name])
                return

    async def _start_leaving(self, member: nodes.Node) -> None:
        name = str(member.metadata.name)
        patch = patches.merge({"spec": {"unschedulable": True}}, patches.same(member))
        await self._client.patch(nodes.Node, name, patch=patch)
        self._leaving.add(name)
        message = "the node is not needed and is removed"
        self._recorder.record(member, type=events.NORMAL, reason="ScaleDown", message=message)

    async def _let_go(self, state: ClusterState, existing: Mapping[str, nodes.Node]) -> None:
        """Drain the nodes to remove, and return the empty ones to the provider."""
        for name in list(self._leaving):
            member = existing.get(name)
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
        text = f"evicted from node {node}, which is not needed: its pods fit elsewhere"
        self._recorder.record(moving, type=events.NORMAL, reason="ScaleDown", message=text)

    def _group_of(self, member: nodes.Node) -> nodegroup.NodeGroup | None:
        return next((group for group in self._groups.values() if group.has(member)), None)


def _is_left_out(each: meta.Object, upcoming_names: Container[str]) -> bool:
    """Return True for pods without a node, and for nodes on their way, which the template of their group replaces."""
    if isinstance(each, pod.Pod):
        return not each.spec.node_name
    if isinstance(each, nodes.Node):
        return each.metadata.name in upcoming_names
    return isinstance(each, resourceslice.ResourceSlice) and each.spec.node_name in upcoming_names


def _is_unschedulable(waiting_pod: pod.Pod) -> bool:
    """Return True if the scheduler has reported a pod as unschedulable."""
    if waiting_pod.spec.node_name or waiting_pod.status.nominated_node_name or podstate.has_ended(waiting_pod):
        return False
    condition = conditions.find(waiting_pod.status.conditions, wellknown.POD_SCHEDULED)
    return condition is not None and (condition.status, condition.reason) == ("False", "Unschedulable")
