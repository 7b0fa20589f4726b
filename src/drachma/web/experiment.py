"""Experiments: a pod with another claim, or a cluster with more nodes, placed by the scheduler's own cycle."""

from __future__ import annotations

import base64
from typing import Final, NamedTuple

import msgspec

from drachma import errors
from drachma.allocator.explanation import wish
from drachma.api import devices, pod, resourceclaim
from drachma.claims import podclaims
from drachma.runtime.cache import Key
from drachma.simulate import ClusterState, Simulation, grouplearning, growth, nodegroup, podexplanation
from drachma.simulate import simulation as simulations
from drachma.simulate.defragmentation import Goal, Plan, Planner
from drachma.simulate.podexplanation import PodExplanation
from drachma.simulate.reports import utilisation
from drachma.simulate.reports.utilisation import Utilisation
from drachma.web import comparison
from drachma.web.comparison import Comparison


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """Change of a pod's claim and of the cluster; absent parts stay as they are."""

    request: str = ""
    """Request of the pod's claims to change; the first one if empty."""
    count: int = 0
    device_class: str = ""
    selector: str | None = None
    """Expression that replaces all selectors of the request; an empty one removes them."""
    like: str = ""
    """Node that new nodes are like."""
    new_nodes: int = 0

    @property
    def is_about_claims(self) -> bool:
        """True if the claim of the pod changes."""
        return bool(self.count or self.device_class or self.selector is not None)


class Side(NamedTuple):
    """The cluster before or after the change."""

    explained: PodExplanation | None
    placed: int
    pending: int
    utilisation: Utilisation


class Answer(NamedTuple):
    """Answer to a what-if question."""

    before: Side
    after: Side
    moved: tuple[tuple[str, str], ...]
    """Pending pods that get a node after the change and do not before, with that node."""
    comparison: Comparison
    plan: str
    """Number of new nodes that would be enough for all pods that such nodes can help, in words."""


def answer(base: Simulation, key: Key | None, change: Change) -> Answer:
    """Return the state of a pod and of all pending pods before and after a change.

    Raises:
        errors.InvalidValueError: the pod, the request or the node does not exist, or the pod has no claim to change.
    """
    subject = _find(base, key) if key is not None else None
    changed = base.fork()
    target = subject
    if subject is not None and change.is_about_claims:
        target = _change_claim(changed, subject, change)
    plan = ""
    if change.new_nodes:
        group = _group(changed, change.like)
        plan = _plan(changed, group)
        used_names = frozenset(each.name for each in changed.snapshot.nodes)
        for name in group.new_names(change.new_nodes, used_names):
            changed.add(group.make(name))
    before, placed_before = _side(base, subject)
    after, placed_after = _side(changed, target)
    moved = tuple((name, node) for name, node in placed_after.items() if name not in placed_before)
    return Answer(before, after, moved, comparison.compare(before.utilisation, after.utilisation), plan)


def _find(base: Simulation, key: Key) -> pod.Pod:
    subject = base.find(key.namespace, key.name)
    if subject is None:
        raise errors.InvalidValueError(f"pod {key}: does not exist, or another scheduler places it")
    if subject.spec.node_name:
        raise errors.InvalidValueError(f"pod {key}: runs on node {subject.spec.node_name} already")
    return subject


def _side(cluster: Simulation, subject: pod.Pod | None) -> tuple[Side, dict[str, str]]:
    explained = podexplanation.explain(cluster, subject) if subject is not None else None
    trial = cluster.fork()
    schedule = trial.schedule()
    placed = {simulations.title(each.pod): each.node for each in schedule.placements}
    trial_use = utilisation.measure(trial.snapshot)
    return Side(explained, len(placed), len(schedule.waiting), trial_use), placed


def as_data_url(svg: str) -> str:
    """Return an SVG document as the address of an image."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


class Defragmentation(NamedTuple):
    """Moves that bring back whole nodes or devices, and the cluster before and after them."""

    plan: Plan
    comparison: Comparison


def defragment(base: Simulation, goal: Goal, count: int | None) -> Defragmentation:
    """Return the plan of ``drachma plan --defragment``."""
    planner = Planner(base, goal)
    plan = planner.plan(count)
    after = planner.simulate(plan)
    return Defragmentation(
        plan, comparison.compare(utilisation.measure(base.snapshot), utilisation.measure(after.snapshot))
    )


def _change_claim(cluster: Simulation, subject: pod.Pod, change: Change) -> pod.Pod:
    """Change a claim of a pod in the cluster. Return the pod with its claims."""
    complete = cluster.with_claims(subject)
    if not isinstance(complete, pod.Pod):
        raise errors.InvalidValueError(f"pod {simulations.title(subject)}: {complete.reason}")
    try:
        resolved = podclaims.resolve(complete, cluster.snapshot.claims)
    except podclaims.MissingError as error:
        raise errors.InvalidValueError(f"pod {simulations.title(subject)}: {error}") from None
    claims = tuple(each.claim for each in resolved if each.claim.status.allocation is None)
    spot = next(
        (each for each in wish.spots(claims) if not change.request or wish.name_of(claims, each) == change.request),
        None,
    )
    if spot is None:
        quoted = f" {change.request!r}" if change.request else ""
        raise errors.InvalidValueError(f"pod {simulations.title(subject)}: has no pending request{quoted}")
    if change.count:
        claims = wish.change_count(claims, spot, change.count)
    if change.device_class or change.selector is not None:
        claims = _replace_way(claims, spot, change)
    amended = claims[spot.claim]
    cluster.snapshot.claims.rewrite(amended, amended.status)
    cluster.add([complete])
    return complete


def _replace_way(claims: wish.Claims, spot: wish.Spot, change: Change) -> wish.Claims:
    claim = claims[spot.claim]
    request = claim.spec.devices.requests[spot.request]
    way = wish.way_of(claims, spot)
    if change.device_class:
        way = msgspec.structs.replace(way, device_class_name=change.device_class)
    if change.selector is not None:
        selectors = (
            (devices.DeviceSelector(cel=devices.CELDeviceSelector(expression=change.selector)),)
            if change.selector.strip()
            else ()
        )
        way = msgspec.structs.replace(way, selectors=selectors)
    if isinstance(way, resourceclaim.DeviceSubRequest):
        ways = list(request.first_available)
        ways[spot.alternative] = way
        request = msgspec.structs.replace(request, first_available=tuple(ways))
    else:
        request = msgspec.structs.replace(request, exactly=way)
    requests = list(claim.spec.devices.requests)
    requests[spot.request] = request
    spec = msgspec.structs.replace(claim.spec.devices, requests=tuple(requests))
    amended = msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, devices=spec))
    return (*claims[: spot.claim], amended, *claims[spot.claim + 1 :])


_MOST_GROUP_NAME: Final = 200
"""Characters of a group's name, to which the names of its nodes append a number."""


def _group(cluster: Simulation, like: str) -> nodegroup.NodeGroup:
    """Return a group of nodes like an existing one."""
    info = cluster.snapshot.nodes.find(like)
    if info is None:
        raise errors.InvalidValueError(f"node {like[:253]!r}: does not exist")
    slices = [each for each in cluster.snapshot.devices.catalog.slices() if each.spec.node_name == like]
    state = ClusterState.of([info.node, *slices])
    return nodegroup.read(grouplearning.learn(state, like, name=like[:_MOST_GROUP_NAME].rstrip("-.")).document)


def _plan(cluster: Simulation, group: nodegroup.NodeGroup) -> str:
    """Return how many nodes of a group all pending pods need, as ``drachma plan`` finds it."""
    plan = growth.Planner(cluster, [group]).plan()
    count = sum(plan.grow.values())
    if not plan.grow:
        return (
            f"no such node would help the {len(plan.pending)} pods that stay pending"
            if plan.pending
            else "every pending pod runs without new nodes"
        )
    suffix = f", and {len(plan.pending)} pods stay pending" if plan.pending else ""
    return f"{count} such node{'' if count == 1 else 's'} would be enough for all pods that they can help{suffix}"
