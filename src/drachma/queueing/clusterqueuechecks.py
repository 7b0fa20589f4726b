"""Admission checks of a cluster queue: which of them an admission has to pass."""

from __future__ import annotations

from drachma.queueing.kinds import clusterqueue, workload


def required(admission: workload.Admission, spec: clusterqueue.ClusterQueueSpec) -> tuple[str, ...]:
    """The checks for the flavors of an admission; those without flavors are for all."""
    flavors = {flavor for each in admission.pod_set_assignments for flavor in each.flavors.values()}
    strategy = spec.admission_checks_strategy
    rules = strategy.admission_checks if strategy is not None else ()
    return tuple(rule.name for rule in rules if not rule.on_flavors or flavors & set(rule.on_flavors))


def has_all(of: workload.Workload, spec: clusterqueue.ClusterQueueSpec) -> bool:
    """Whether every check that an admission has to pass has a state in its workload."""
    if of.status.admission is None:
        return False
    states = {each.name for each in of.status.admission_checks}
    return states.issuperset(required(of.status.admission, spec))
