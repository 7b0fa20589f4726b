"""Constraints: how evenly a pod and its group are spread, by the pod's spec or by upstream's defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from drachma.api import labelselectors, pod
from drachma.claims import taints
from drachma.scheduler.framework import requiredaffinity, topology
from drachma.scheduler.snapshot import Snapshot, nodeinfo
from drachma.values import labels

DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"
_HONOR: Final = "Honor"


class Constraint(NamedTuple):
    """One constraint. Hashable."""

    topology_key: str
    max_skew: int
    group: topology.Group
    """Pods of the group: those of the pod's namespace with certain labels."""
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


class Spread(NamedTuple):
    """Constraints of a pod with the same action."""

    constraints: tuple[Constraint, ...]
    needs_all_labels: bool = True
    """True if a node must have the labels of all constraints to count for any."""

    def eligible(self, constraint: Constraint, waiting_pod: pod.Pod, snapshot: Snapshot) -> int:
        """Return the nodes that count for a constraint."""
        nodes = snapshot.nodes
        eligible = nodes.all_nodes
        if self.needs_all_labels:
            for each in self.constraints:
                eligible &= topology.of(nodes, each.topology_key).members
        if constraint.honors_affinity:
            required = requiredaffinity.of(waiting_pod)
            if any(required):
                eligible = requiredaffinity.matching_nodes(required, nodes, among=eligible)
        tainted = nodes.tainted & eligible
        if constraint.honors_taints and tainted:
            tolerations = waiting_pod.spec.tolerations

            def is_kept_away(info: nodeinfo.NodeInfo) -> bool:
                return taints.first_untolerated(info.node.spec.taints, tolerations) is not None

            classes = nodes.properties.classes(("kept away", tolerations), is_kept_away, among=tainted)
            eligible &= ~(classes.get(True, 0) & tainted)
        return eligible

    def counts(self, constraint: Constraint, snapshot: Snapshot) -> Mapping[int, int]:
        """Return all nodes by their number of pods of a constraint's group, without terminating pods."""
        if not constraint.group.selector.requirements:
            # As upstream, a selector for every pod selects none.
            return {0: snapshot.nodes.all_nodes}
        return topology.pod_counts(snapshot.nodes, constraint.group, counts_terminating=False)


NONE: Final = Spread(())


def of(waiting_pod: pod.Pod, action: str, snapshot: Snapshot) -> Spread:
    """Return the constraints of a pod with an action. Raises InvalidValueError for a malformed selector."""
    stated = waiting_pod.spec.topology_spread_constraints
    if stated:
        matching = (each for each in stated if each.when_unsatisfiable == action)
        return Spread(tuple(_constraint(each, waiting_pod) for each in matching))
    if action != SCHEDULE_ANYWAY:
        return NONE
    return _defaults(waiting_pod, snapshot)


def _constraint(stated: pod.TopologySpreadConstraint, waiting_pod: pod.Pod) -> Constraint:
    selector = labelselectors.of(stated.label_selector)
    own = waiting_pod.metadata.labels
    values = {key: own[key] for key in stated.match_label_keys if key in own}
    if values and selector != labels.NOTHING:
        selector = labels.Selector((*labels.Selector.from_labels(values).requirements, *selector.requirements))
    return Constraint(
        stated.topology_key,
        stated.max_skew,
        topology.Group(frozenset((waiting_pod.metadata.namespace,)), selector),
        1 if stated.min_domains is None else stated.min_domains,
        stated.node_affinity_policy in (None, _HONOR),
        stated.node_taints_policy == _HONOR,
    )


_DEFAULTS: Final = ((topology.HOSTNAME, 3), (topology.ZONE, 5))
"""Upstream's constraints for pods without any: topologies with their maximum skew."""


def _defaults(waiting_pod: pod.Pod, snapshot: Snapshot) -> Spread:
    requirements = snapshot.workloads.requirements(waiting_pod)
    if not requirements:
        return NONE
    group = topology.Group(frozenset((waiting_pod.metadata.namespace,)), labels.Selector(requirements))
    constraints = tuple(Constraint(key, max_skew, group) for key, max_skew in _DEFAULTS)
    return Spread(constraints, needs_all_labels=False)


def keys(constraints: Iterable[Constraint]) -> frozenset[str]:
    """Return the topology keys of constraints."""
    return frozenset(each.topology_key for each in constraints)
