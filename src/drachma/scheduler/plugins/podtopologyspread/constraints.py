"""Constraints: how evenly a pod and its like are to be spread, as the pod says or by upstream's defaults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from drachma.api import labelselectors, pod
from drachma.claims import taints
from drachma.scheduler.framework import requiredaffinity, residents, topology
from drachma.scheduler.snapshot import Snapshot, nodeinfo
from drachma.values import labels

DO_NOT_SCHEDULE: Final = "DoNotSchedule"
SCHEDULE_ANYWAY: Final = "ScheduleAnyway"
_HONOR: Final = "Honor"


class Constraint(NamedTuple):
    """One constraint. Hashable."""

    topology_key: str
    max_skew: int
    group: residents.Group
    """The pods that are alike: those of the pod's namespace with certain labels."""
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


class Spread(NamedTuple):
    """The constraints of a pod that are of one kind."""

    constraints: tuple[Constraint, ...]
    needs_all_labels: bool = True
    """Whether nodes that lack the label of one constraint do not count for any."""

    def eligible(self, constraint: Constraint, waiting: pod.Pod, snapshot: Snapshot) -> int:
        """The nodes that count for a constraint."""
        nodes = snapshot.nodes
        eligible = nodes.everyone
        if self.needs_all_labels:
            for each in self.constraints:
                eligible &= topology.of(nodes, each.topology_key).members
        if constraint.honors_affinity:
            required = requiredaffinity.of(waiting)
            if any(required):
                eligible = requiredaffinity.matching_nodes(required, nodes, among=eligible)
        tainted = nodes.tainted & eligible
        if constraint.honors_taints and tainted:
            tolerations = waiting.spec.tolerations

            def is_kept_away(info: nodeinfo.NodeInfo) -> bool:
                return taints.preventing(info.node.spec.taints, tolerations) is not None

            classes = nodes.properties.classes(("kept away", tolerations), is_kept_away, among=tainted)
            eligible &= ~(classes.get(True, 0) & tainted)
        return eligible

    def counts(self, constraint: Constraint, snapshot: Snapshot) -> Mapping[int, int]:
        """All nodes by how many pods of a constraint's group they have; those about to go do not count."""
        if not constraint.group.selector.requirements:
            # As upstream: who means every pod means none.
            return {0: snapshot.nodes.everyone}
        return residents.counts(snapshot.nodes, constraint.group, counts_terminating=False)


NONE: Final = Spread(())


def of(waiting: pod.Pod, action: str, snapshot: Snapshot) -> Spread:
    """The constraints of a pod that ask for an action; InvalidValueError for a selector that is not well-formed."""
    stated = waiting.spec.topology_spread_constraints
    if stated:
        chosen = (each for each in stated if each.when_unsatisfiable == action)
        return Spread(tuple(_constraint(each, waiting) for each in chosen))
    if action != SCHEDULE_ANYWAY:
        return NONE
    return _defaults(waiting, snapshot)


def _constraint(stated: pod.TopologySpreadConstraint, waiting: pod.Pod) -> Constraint:
    selector = labelselectors.of(stated.label_selector)
    own = waiting.metadata.labels
    values = {key: own[key] for key in stated.match_label_keys if key in own}
    if values and selector != labels.NOTHING:
        selector = labels.Selector((*labels.Selector.from_labels(values).requirements, *selector.requirements))
    return Constraint(
        stated.topology_key,
        stated.max_skew,
        residents.Group(frozenset((waiting.metadata.namespace,)), selector),
        1 if stated.min_domains is None else stated.min_domains,
        stated.node_affinity_policy in (None, _HONOR),
        stated.node_taints_policy == _HONOR,
    )


_DEFAULTS: Final = ((topology.HOSTNAME, 3), (topology.ZONE, 5))
"""Upstream's constraints for pods without any: topologies, each with how uneven is as good as even."""


def _defaults(waiting: pod.Pod, snapshot: Snapshot) -> Spread:
    requirements = snapshot.workloads.requirements(waiting)
    if not requirements:
        return NONE
    group = residents.Group(frozenset((waiting.metadata.namespace,)), labels.Selector(requirements))
    constraints = tuple(Constraint(key, max_skew, group) for key, max_skew in _DEFAULTS)
    return Spread(constraints, needs_all_labels=False)


def keys(constraints: Iterable[Constraint]) -> frozenset[str]:
    """The labels of nodes that constraints are about."""
    return frozenset(each.topology_key for each in constraints)
