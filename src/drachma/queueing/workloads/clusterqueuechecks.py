"""Admission checks of a cluster queue: which of them an admission has to pass."""

from __future__ import annotations

from drachma.queueing.kinds import clusterqueue, workload


def _rules(spec: clusterqueue.ClusterQueueSpec) -> dict[str, frozenset[str]]:
    """The flavors of each check; one that names none is for all that the queue has."""
    strategy = spec.admission_checks_strategy
    return {
        rule.name: frozenset(rule.on_flavors) or _flavors(spec)
        for rule in (strategy.admission_checks if strategy is not None else ())
    }


def _flavors(spec: clusterqueue.ClusterQueueSpec) -> frozenset[str]:
    return frozenset(flavor.name for group in spec.resource_groups for flavor in group.flavors)


def required(admission: workload.Admission, spec: clusterqueue.ClusterQueueSpec) -> tuple[str, ...]:
    """The checks for the flavors of an admission."""
    flavors = {flavor for each in admission.pod_set_assignments for flavor in each.flavors.values()}
    return tuple(name for name, on_flavors in _rules(spec).items() if flavors & on_flavors)


def expected(of: workload.Workload, spec: clusterqueue.ClusterQueueSpec) -> tuple[str, ...]:
    """The checks that a workload should have; while it has no flavors, those that are for all of them."""
    if of.status.admission is not None:
        return required(of.status.admission, spec)
    return tuple(name for name, on_flavors in _rules(spec).items() if on_flavors >= _flavors(spec))


def has_all(of: workload.Workload, spec: clusterqueue.ClusterQueueSpec) -> bool:
    """Whether every check that an admission has to pass has a state in its workload."""
    if of.status.admission is None:
        return False
    states = {each.name for each in of.status.admission_checks}
    return states.issuperset(required(of.status.admission, spec))
