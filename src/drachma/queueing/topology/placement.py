"""Placement: finds the topology assignments of all pod sets of a workload on one flavor.

Pod sets of a group are placed together: a leader and its workers. Each pod set counts what earlier ones of the same
workload took. The search ends at the first group that does not fit, and its message goes to all pod sets of the group.

A workload with an unhealthy node keeps its assignment but for that node. An elastic workload keeps the assignment of
the workload that it replaces, and only further pods are placed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from drachma.api import pod
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.kinds import workload
from drachma.queueing.topology import balanced, counting, shape, tree
from drachma.queueing.topology.assignment import Assignment
from drachma.queueing.topology.devicerooms import Claims, DeviceInventory, DeviceRoom
from drachma.queueing.topology.leafcounting import Pods
from drachma.queueing.topology.search import NotFoundError, Request, Rules, Search
from drachma.queueing.topology.shape import PodSetRequest, ShapeError


class Placed(NamedTuple):
    """Assignment of a pod set."""

    assignment: Assignment


class NotPlaced(NamedTuple):
    """Message why a pod set has no place."""

    reason: str


Result = Placed | NotPlaced

Assumed = dict[tuple[str, ...], tree.Amounts]
"""Usage by placed pod sets of the same workload, by leaf."""


class Replacement(NamedTuple):
    """Node that failed, and the assignments of the workload that used it."""

    node: str
    assignments: Mapping[str, Assignment]
    """Assignments by pod set."""
    is_single_pod: bool = False
    """True for a workload of one pod, which cannot move and keeps its assignment."""


class Placer:
    """Places pod sets on the nodes of one flavor. It reads the tree and changes nothing in it."""

    def __init__(
        self,
        domains: tree.Tree,
        *,
        counts: counting.Counts | None = None,
        tolerations: tuple[pod.Toleration, ...] = (),
        gates: Gates,
        ignores_usage: bool = False,
        devices: DeviceInventory | None = None,
    ) -> None:
        """``tolerations`` are those of the flavor. ``ignores_usage`` places as if no workload were admitted.

        ``counts`` keeps what earlier searches in the tree have counted. With ``devices``, a node counts only for pods
        whose claims can be allocated on it.
        """
        self._devices: Final = devices
        self._assumed_devices: dict[tuple[str, ...], list[tuple[Claims, int]]] = {}
        self._tree: Final = domains
        self._counts: Final = counts or counting.Counts(domains)
        self._tolerations: Final = tolerations
        self._gates: Final = gates
        self._ignores_usage: Final = ignores_usage
        self._assumed: Assumed = {}
        self._is_last = False
        """True if no other pod sets are placed after the current group."""

    def place(
        self,
        requests: Sequence[PodSetRequest],
        *,
        replacement: Replacement | None = None,
        assumed: Assumed | None = None,
        is_last: bool = True,
    ) -> dict[str, Result]:
        """Return the results by pod set. Groups after the first that does not fit are missing.

        ``assumed`` is usage by other pod sets of the workload; usage by these pod sets is added to it, unless these are
        the last.
        """
        self._assumed = {} if assumed is None else assumed
        self._assumed_devices = {}
        results: dict[str, Result] = {}
        groups = list(_groups(requests))
        for number, group in enumerate(groups, 1):
            self._is_last = is_last and number == len(groups)
            part = self._place_group(group) if replacement is None else self._replace(group, replacement)
            results.update(part)
            if any(isinstance(result, NotPlaced) for result in part.values()):
                break
        return results

    def _place_group(self, group: list[PodSetRequest]) -> dict[str, Result]:
        workers, leader = _roles(group)
        if self._gates.on(Gate.ELASTIC_JOBS_WITH_TAS):
            resized = self._resize(workers, leader)
            if resized is not None:
                return resized
        try:
            assignments = self._search(workers, leader)
        except (NotFoundError, ShapeError) as error:
            return {request.name: NotPlaced(str(error)) for request in group}
        # Validation allows two pod sets in a group; like Kueue, a third one gets no place.
        placed = [request for request in group if request.name in assignments]
        for request in () if self._is_last else placed:
            self._assume(assignments[request.name], request)
        return {request.name: Placed(assignments[request.name]) for request in placed}

    def _search(
        self, workers: PodSetRequest, leader: PodSetRequest | None, *, domain: str = ""
    ) -> dict[str, Assignment]:
        """Return the assignments of workers and leader. Raises NotFoundError or ShapeError."""
        if workers.problem:
            raise ShapeError(workers.problem)
        resolved = shape.resolve(self._tree, workers.pod_set.topology_request, is_implied=workers.is_implied)
        spec = workers.pod_set.template.spec
        respects_preferences = self._gates.on(Gate.TAS_RESPECT_NODE_AFFINITY)
        pods = Pods(
            per_pod=workers.per_pod,
            leader=None if leader is None else leader.per_pod,
            node_selector=spec.node_selector,
            affinity=None if spec.affinity is None else spec.affinity.node_affinity,
            tolerations=(*spec.tolerations, *self._tolerations),
            within=domain,
            ignores_usage=self._ignores_usage,
            respects_preferences=respects_preferences,
            devices=self._device_room(workers, leader),
            assumed_devices=self._assumed_devices,
        )
        places = self._counts.get(pods, resolved, self._assumed)
        request = Request(workers.pods, 0 if leader is None else 1, resolved)
        rules = Rules(
            is_least_free=resolved.is_unconstrained and self._gates.on(Gate.TAS_PROFILE_MIXED),
            respects_preferences=respects_preferences,
        )
        search = Search(self._tree, places, request, rules=rules)
        filling = None
        if self._gates.on(Gate.TAS_BALANCED) and not resolved.is_required and not resolved.is_unconstrained:
            even = balanced.place_balanced(places.levels, request, rules=rules)
            if even is not None:
                filling = search.descend(*even, by_parent=True)
        if filling is None:
            filling = search.descend(*search.find())
        assignments = {workers.name: self._tree.assignment(filling.ranks, filling.pods)}
        if leader is not None:
            leaders = () if filling.leader is None else (filling.leader.domain.rank,)
            assignments[leader.name] = self._tree.assignment(leaders, [1] * len(leaders))
        return assignments

    def _device_room(self, workers: PodSetRequest, leader: PodSetRequest | None) -> DeviceRoom | None:
        leader_claims = None if leader is None else leader.claims
        if self._devices is None or not (workers.claims or leader_claims):
            return None
        return self._devices.room(workers.claims, leader_claims, ignores_usage=self._ignores_usage)

    def _replace(self, group: list[PodSetRequest], replacement: Replacement) -> dict[str, Result]:
        results: dict[str, Result] = {}
        for request in group:
            current = replacement.assignments.get(request.name)
            if current is None:
                continue
            if replacement.is_single_pod and self._gates.on(Gate.SKIP_REASSIGNMENT_FOR_PODS):
                results[request.name] = Placed(current)
                continue
            try:
                moved = self._move(request, current, replacement.node)
            except (NotFoundError, ShapeError) as error:
                results[request.name] = NotPlaced(str(error))
                break
            results[request.name] = Placed(moved)
        return results

    def _move(self, request: PodSetRequest, current: Assignment, node: str) -> Assignment:
        """Place the pods of a failed node elsewhere. Raises NotFoundError or ShapeError."""
        remaining_domains = tuple(domain for domain in current.domains if domain.values[-1] != node)
        missing = sum(domain.pods for domain in current.domains if domain.values[-1] == node)
        healthy = current._replace(domains=remaining_domains)
        stale = self._tree.stale_domain(healthy)
        if stale is not None:
            raise NotFoundError(
                "Cannot replace the node, because the existing topologyAssignment is invalid, "
                f"as it contains the stale domain {stale}"
            )
        target_domain = self._replacement_domain(request, healthy, missing)
        moved = request._replace(pods=missing)
        layers = shape.layers(request.pod_set.topology_request)
        if layers and target_domain and layers[0].size > 0 and missing % layers[0].size:
            moved = moved._replace(pod_set=_with_smaller_slices(request.pod_set, layers, missing))
        assignment = self._search(moved, None, domain=target_domain)[request.name]
        if not assignment.domains:
            raise NotFoundError(f"cannot find replacement assignment for unhealthy node: {node}")
        self._assume(assignment, request)
        return self._tree.merge(assignment, healthy)

    def _replacement_domain(self, request: PodSetRequest, assignment: Assignment, missing_pods: int) -> str:
        """Return the identity of the domain that a replacement must be in, or an empty text."""
        topology_request = request.pod_set.topology_request
        label = shape.requested_level(self._tree, topology_request, is_implied=request.is_implied)
        level = None if label is None else self._tree.level_index(label)
        if level is None or not assignment.domains:
            return ""
        layers = shape.layers(topology_request)
        if layers and layers[0].size > 0 and missing_pods % layers[0].size:
            broken = next((layer for layer in reversed(layers) if layer.size and missing_pods % layer.size), layers[0])
            return self._incomplete_domain(assignment, missing_pods, broken)
        if topology_request is None or topology_request.required is None:
            return ""
        leaf = self._tree.leaves.get(assignment.domains[0].values)
        return "" if leaf is None else leaf.ancestor(level).identity

    def _incomplete_domain(self, assignment: Assignment, missing_pods: int, layer: shape.Layer) -> str:
        level = self._tree.level_index(layer.label)
        if level is None:
            return ""
        counts: dict[str, int] = {}
        for domain in assignment.domains:
            leaf = self._tree.leaves.get(domain.values)
            if leaf is not None:
                identity = leaf.ancestor(level).identity
                counts[identity] = counts.get(identity, 0) + domain.pods
        return next((name for name, count in counts.items() if (count + missing_pods) % layer.size == 0), "")

    def _resize(self, workers: PodSetRequest, leader: PodSetRequest | None) -> dict[str, Result] | None:
        """Place an elastic workload on the assignment that it had, or return None to place it afresh."""
        previous = workers.previous
        previous_leader = None if leader is None else leader.previous
        if previous is None or self._tree.stale_domain(previous) is not None:
            return None
        if previous_leader is not None and self._tree.stale_domain(previous_leader) is not None:
            return None
        if workers.pods <= previous.pods:
            return self._keep(workers, previous.truncate(workers.pods), leader)
        self._assume(previous, workers)
        placed_leader = leader
        if leader is not None and previous_leader is not None:
            self._assume(previous_leader, leader)
            placed_leader = None
        try:
            added = self._search(workers._replace(pods=workers.pods - previous.pods), placed_leader)
        except (NotFoundError, ShapeError) as error:
            return {workers.name: NotPlaced(str(error))}
        results: dict[str, Result] = {workers.name: Placed(self._tree.merge(added[workers.name], previous))}
        if leader is not None:
            results[leader.name] = Placed(previous_leader or added[leader.name])
            if previous_leader is None:
                self._assume(added[leader.name], leader)
        self._assume(added[workers.name], workers)
        return results

    def _keep(self, workers: PodSetRequest, assignment: Assignment, leader: PodSetRequest | None) -> dict[str, Result]:
        results: dict[str, Result] = {workers.name: Placed(assignment)}
        self._assume(assignment, workers)
        if leader is not None and leader.previous is not None:
            results[leader.name] = Placed(leader.previous)
            self._assume(leader.previous, leader)
        return results

    def _assume(self, assignment: Assignment, request: PodSetRequest) -> None:
        """Count the usage of placed pods for the next pod sets of the workload."""
        if request.claims:
            for domain in assignment.domains:
                self._assumed_devices.setdefault(domain.values, []).append((request.claims, domain.pods))
        for values, usage in usage_by_domain(assignment, request.per_pod):
            total = self._assumed.setdefault(values, {})
            for name, amount in usage.items():
                total[name] = total.get(name, 0) + amount


def usage_by_domain(
    assignment: Assignment, per_pod: Mapping[str, int]
) -> Iterable[tuple[tuple[str, ...], dict[str, int]]]:
    """Yield the usage of an assignment in each domain, with one ``pods`` for each pod."""
    for domain in assignment.domains:
        usage = {name: amount * domain.pods for name, amount in per_pod.items()}
        usage[tree.PODS] = usage.get(tree.PODS, 0) + domain.pods
        yield domain.values, usage


def _groups(requests: Sequence[PodSetRequest]) -> Iterable[list[PodSetRequest]]:
    groups: dict[str, list[PodSetRequest]] = {}
    for number, request in enumerate(requests):
        groups.setdefault(str(number) if request.group is None else request.group, []).append(request)
    return groups.values()


def _roles(group: list[PodSetRequest]) -> tuple[PodSetRequest, PodSetRequest | None]:
    """Return the workers and the leader: the pod set with fewer pods, the second of equals."""
    if len(group) == 1:
        return group[0], None
    workers, leader = group[:2]
    return (leader, workers) if leader.pods > workers.pods else (workers, leader)


def _with_smaller_slices(
    pod_set: workload.PodSet, layers: tuple[shape.Layer, ...], missing_pods: int
) -> workload.PodSet:
    """Keep the innermost layer whose size divides the number of missing pods as the slice, else single pods."""
    layer = next((each for each in reversed(layers) if each.size and missing_pods % each.size == 0), None)
    assert pod_set.topology_request is not None, "layers come from a request"
    request = msgspec.structs.replace(
        pod_set.topology_request,
        podset_slice_required_topology_constraints=(),
        pod_set_slice_required_topology=None if layer is None else layer.label,
        pod_set_slice_size=1 if layer is None else layer.size,
    )
    return msgspec.structs.replace(pod_set, topology_request=request)
