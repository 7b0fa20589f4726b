"""Admissibility of a workload by a queue apart from quota: objections to it, and admission checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from drachma.queueing.kinds import clusterqueue, workload
from drachma.queueing.workloads import podadjustment
from drachma.values import fieldtext, labels, quotation

NAMESPACE_MISMATCH: Final = "workload namespace doesn't match ClusterQueue selector"


class Place(msgspec.Struct, frozen=True):
    """A namespace of workloads: its labels, and the summary of its limit ranges."""

    labels: Mapping[str, str] = {}
    limits: podadjustment.Summary = {}


Places = Mapping[str, Place]
"""Namespaces by name."""


def objection(wl: workload.Workload, selector: labels.Selector, places: Places) -> str | None:
    """Return the reason why a queue does not take a workload, or None if it does."""
    namespace = wl.metadata.namespace
    place = places.get(namespace)
    if place is None:
        quoted = quotation.quote(namespace)
        return f"workload namespace {quoted} does not exist: namespaces {quoted} not found"
    if not selector.matches(place.labels):
        return NAMESPACE_MISMATCH
    problems = tuple(podadjustment.check_requests(wl))
    if problems:
        return f"resources validation failed: {fieldtext.together(map(str, problems))}"
    problems = tuple(podadjustment.check_limits(wl, place.limits))
    if problems:
        return f"resources didn't satisfy LimitRange constraints: {fieldtext.together(map(str, problems))}"
    return None


# Admission checks


def check_flavors(spec: clusterqueue.ClusterQueueSpec) -> dict[str, frozenset[str]]:
    """Return the flavors of each check. A check that names none is for all flavors of the queue."""
    strategy = spec.admission_checks_strategy
    return {
        rule.name: frozenset(rule.on_flavors) or _flavors(spec)
        for rule in (strategy.admission_checks if strategy is not None else ())
    }


def _flavors(spec: clusterqueue.ClusterQueueSpec) -> frozenset[str]:
    return frozenset(flavor.name for group in spec.resource_groups for flavor in group.flavors)


def required_checks(admission: workload.Admission, spec: clusterqueue.ClusterQueueSpec) -> tuple[str, ...]:
    """Return the names of the checks for the flavors of an admission."""
    flavors = {flavor for each in admission.pod_set_assignments for flavor in each.flavors.values()}
    return tuple(name for name, on_flavors in check_flavors(spec).items() if flavors & on_flavors)


def expected_checks(wl: workload.Workload, spec: clusterqueue.ClusterQueueSpec) -> tuple[str, ...]:
    """Return the names of a workload's checks; without an admission, those of checks for all flavors."""
    if wl.status.admission is not None:
        return required_checks(wl.status.admission, spec)
    return tuple(name for name, on_flavors in check_flavors(spec).items() if on_flavors >= _flavors(spec))


def has_all_checks(wl: workload.Workload, spec: clusterqueue.ClusterQueueSpec) -> bool:
    """Return True if every check that the admission has to pass has a state in the workload."""
    if wl.status.admission is None:
        return False
    states = {each.name for each in wl.status.admission_checks}
    return states.issuperset(required_checks(wl.status.admission, spec))
