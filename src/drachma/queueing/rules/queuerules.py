"""Rules for ClusterQueue, Cohort and ResourceFlavor beyond their schemas, in Kueue's order and words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from drachma.api import meta, node, pod
from drachma.queueing.configuration.gates import DEFAULT, Gate, Gates
from drachma.queueing.kinds import clusterqueue, resourceflavor
from drachma.validation import fielderror, formats, metadata, rendering, selectors
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import SPEC, Path
from drachma.values import names, quantity, quotation

NOT_NEGATIVE: Final = "must be greater than or equal to 0"
_FLAVORS: Final = 256
_RESOURCES: Final = 256
_COMBINATIONS: Final = 512
_CONCURRENT_FLAVORS: Final = 16
_TRY_PREFERRED: Final = "TryPreferredFlavors"
_LEAST_WEIGHT: Final = quantity.Quantity.parse("1n")


def check_queue(
    queue: clusterqueue.ClusterQueue, old: clusterqueue.ClusterQueue | None = None, *, gates: Gates = DEFAULT
) -> tuple[FieldError, ...]:
    """Return the problems of a cluster queue that is created, or changed from ``old``."""
    return tuple(_queue(queue, old, gates))


def check_cohort(cohort: clusterqueue.Cohort) -> tuple[FieldError, ...]:
    """Return the problems of a cohort."""
    return tuple(_cohort(cohort))


def check_flavor(flavor: resourceflavor.ResourceFlavor) -> tuple[FieldError, ...]:
    """Return the problems of a flavor."""
    return tuple(_flavor(flavor))


def _queue(queue: clusterqueue.ClusterQueue, old: clusterqueue.ClusterQueue | None, gates: Gates) -> Errors:
    spec = queue.spec
    at = SPEC.child("resourceGroups")
    yield from _groups(spec.resource_groups, at, parent="cohort" if not spec.cohort_name else "", holds_lending=True)
    if spec.namespace_selector is not None:
        yield from selectors.check(_document(spec.namespace_selector), SPEC.child("namespaceSelector"))
    yield from _policies(spec)
    yield from _fair_sharing(spec.fair_sharing, SPEC.child("fairSharing"))
    yield from _totals(spec.resource_groups, at)
    yield from _concurrent_admission(spec, gates)
    yield from _check_flavors(spec, old.spec if old is not None else None, gates)
    if old is not None and old.spec.concurrent_admission_policy != spec.concurrent_admission_policy:
        at = SPEC.child("concurrentAdmissionPolicy")
        yield fielderror.invalid(at, spec.concurrent_admission_policy, "field is immutable")


def _document(selector: meta.LabelSelector) -> Mapping[str, object]:
    document: dict[str, object] = msgspec.to_builtins(selector)
    return document


def _groups(groups: Iterable[clusterqueue.ResourceGroup], at: Path, *, parent: str, holds_lending: bool) -> Errors:
    """Check resource groups; ``parent`` is the field whose absence makes limits invalid."""
    resources: set[str] = set()
    flavors: set[str] = set()
    for position, group in enumerate(groups):
        here = at.item(position)
        for index, name in enumerate(group.covered_resources):
            where = here.child("coveredResources").item(index)
            yield from fielderror.problems(where, name, names.label_key(name))
            if name in resources:
                yield fielderror.duplicate(where, name)
            resources.add(name)
        for index, flavor in enumerate(group.flavors):
            where = here.child("flavors").item(index)
            covered = zip(flavor.resources, group.covered_resources, strict=False)
            for number, (quota, name) in enumerate(covered):
                there = where.child("resources").item(number)
                if quota.name != name:
                    detail = "must match the name in coveredResources"
                    yield fielderror.invalid(there.child("name"), quota.name, detail)
                yield from _quota(quota, there, parent=parent, holds_lending=holds_lending)
            if flavor.name in flavors:
                yield fielderror.duplicate(where.child("name"), flavor.name)
            flavors.add(flavor.name)


def _quota(quota: clusterqueue.ResourceQuota, at: Path, *, parent: str, holds_lending: bool) -> Errors:
    yield from check_amount(quota.nominal_quota, at.child("nominalQuota"))
    if quota.borrowing_limit is not None:
        here = at.child("borrowingLimit")
        yield from _limit(quota.borrowing_limit, here, parent)
        yield from check_amount(quota.borrowing_limit, here)
    if quota.lending_limit is not None:
        here = at.child("lendingLimit")
        yield from check_amount(quota.lending_limit, here)
        yield from _limit(quota.lending_limit, here, parent)
        if holds_lending and quota.lending_limit > quota.nominal_quota:
            yield fielderror.invalid(here, str(quota.lending_limit), "must be less than or equal to the nominalQuota")


def check_amount(amount: quantity.Quantity, at: Path) -> Errors:
    """Check that an amount is not negative."""
    if amount.sign < 0:
        yield fielderror.invalid(at, str(amount), NOT_NEGATIVE)


def _limit(limit: quantity.Quantity, at: Path, parent: str) -> Errors:
    if parent:
        yield fielderror.invalid(at, str(limit), f"must be nil when {parent} is empty")


def _policies(spec: clusterqueue.ClusterQueueSpec) -> Errors:
    preemption = spec.preemption
    if preemption is not None:
        borrowing = preemption.borrow_within_cohort
        is_never = preemption.reclaim_within_cohort == clusterqueue.NEVER
        if is_never and borrowing is not None and borrowing.policy != clusterqueue.NEVER:
            detail = "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never"
            yield fielderror.invalid(SPEC.child("preemption"), preemption, detail)
    fungibility = spec.flavor_fungibility
    if fungibility is not None and fungibility.preference is not None:
        policies = {fungibility.when_can_borrow, fungibility.when_can_preempt}
        if policies != {clusterqueue.TRY_NEXT_FLAVOR}:
            quoted = quotation.quote(fungibility.preference)
            detail = f"preference {quoted} requires both whenCanBorrow and whenCanPreempt to be TryNextFlavor"
            at = SPEC.child("flavorFungibility", "preference")
            yield fielderror.invalid(at, rendering.named(fungibility.preference), detail)


def _fair_sharing(sharing: clusterqueue.FairSharing | None, at: Path) -> Errors:
    if sharing is None or sharing.weight is None:
        return
    if sharing.weight.sign < 0:
        yield fielderror.invalid(at, str(sharing.weight), NOT_NEGATIVE)
    elif sharing.weight.sign > 0 and sharing.weight <= _LEAST_WEIGHT:
        yield fielderror.invalid(at, str(sharing.weight), "When not 0, weight must be > 10e-9")


def _totals(groups: tuple[clusterqueue.ResourceGroup, ...], at: Path) -> Errors:
    flavors = sum(len(group.flavors) for group in groups)
    if flavors > _FLAVORS:
        detail = f"total number of flavors across all resourceGroups must be ≤ {_FLAVORS}, got {flavors}"
        yield fielderror.invalid(at, flavors, detail)
    resources = sum(len(group.covered_resources) for group in groups)
    if resources > _RESOURCES:
        detail = f"total number of covered resources across all resourceGroups must be ≤ {_RESOURCES}, got {resources}"
        yield fielderror.invalid(at, resources, detail)
    for position, group in enumerate(groups):
        total = sum(len(flavor.resources) for flavor in group.flavors)
        if total > _COMBINATIONS:
            detail = f"number of flavor-resource combinations in a resourceGroup must be ≤ {_COMBINATIONS}, got {total}"
            yield fielderror.invalid(at.item(position), total, detail)


def _flavor_names(spec: clusterqueue.ClusterQueueSpec) -> list[str]:
    return sorted({flavor.name for group in spec.resource_groups for flavor in group.flavors})


def _concurrent_admission(spec: clusterqueue.ClusterQueueSpec, gates: Gates) -> Errors:
    policy = spec.concurrent_admission_policy
    if policy is None or not gates.on(Gate.CONCURRENT_ADMISSION):
        return
    groups = spec.resource_groups
    at = SPEC.child("resourceGroups")
    if len(groups) != 1:
        detail = "must have exactly one ResourceGroup when ConcurrentAdmissionPolicy is defined"
        yield fielderror.invalid(at, len(groups), detail)
    elif len(groups[0].flavors) > _CONCURRENT_FLAVORS:
        detail = (
            f"cannot have more than {_CONCURRENT_FLAVORS} resource flavors in the ResourceGroup "
            "when ConcurrentAdmissionPolicy is defined"
        )
        yield fielderror.invalid(at.item(0).child("flavors"), len(groups[0].flavors), detail)
    constraints = policy.migration.constraints
    if constraints is not None:
        here = SPEC.child("concurrentAdmissionPolicy", "migration", "constraints")
        mode, last = policy.migration.mode, constraints.last_acceptable_flavor_name
        if mode not in ("", _TRY_PREFERRED):
            quoted = quotation.quote(mode)
            detail = f"may only be set when migration.mode is {quotation.quote(_TRY_PREFERRED)} (got {quoted})"
            yield fielderror.forbidden(here, detail)
        elif last is not None and last not in (flavor_names := _flavor_names(spec)):
            detail = f"must be one of the flavors defined in the ClusterQueue: [{' '.join(flavor_names)}]"
            yield fielderror.invalid(here.child("lastAcceptableFlavorName"), last, detail)
    if spec.queueing_strategy == clusterqueue.STRICT_FIFO:
        detail = "StrictFIFO queueing strategy cannot be used when ConcurrentAdmissionPolicy is defined"
        yield fielderror.invalid(SPEC.child("queueingStrategy"), rendering.named(spec.queueing_strategy), detail)


def _check_flavors(
    spec: clusterqueue.ClusterQueueSpec, old: clusterqueue.ClusterQueueSpec | None, gates: Gates
) -> Errors:
    """Check that checks name flavors of the queue. Old problems may stay while flavors and check are the same."""
    strategy = spec.admission_checks_strategy
    if strategy is None:
        return
    flavor_names = _flavor_names(spec)
    before: dict[str, frozenset[str]] = {}
    if old is not None and old.admission_checks_strategy is not None and _flavor_names(old) == flavor_names:
        before = {rule.name: frozenset(rule.on_flavors) for rule in old.admission_checks_strategy.admission_checks}
    if gates.on(Gate.REJECT_INVALID_ON_FLAVORS):
        before = {}
    at = SPEC.child("admissionChecksStrategy", "admissionChecks")
    for position, rule in enumerate(strategy.admission_checks):
        if before.get(rule.name) == frozenset(rule.on_flavors):
            continue
        for index, flavor in enumerate(rule.on_flavors):
            if flavor not in flavor_names:
                yield fielderror.not_supported(at.item(position).child("onFlavors").item(index), flavor, flavor_names)


def _cohort(cohort: clusterqueue.Cohort) -> Errors:
    yield from _fair_sharing(cohort.spec.fair_sharing, SPEC.child("fairSharing"))
    parent = "parent" if not cohort.spec.parent_name else ""
    yield from _groups(cohort.spec.resource_groups, SPEC.child("resourceGroups"), parent=parent, holds_lending=False)


def _flavor(flavor: resourceflavor.ResourceFlavor) -> Errors:
    yield from metadata.labels(flavor.spec.node_labels, SPEC.child("nodeLabels"))
    yield from _taints(flavor.spec.node_taints, SPEC.child("nodeTaints"))
    yield from check_tolerations(flavor.spec.tolerations, SPEC.child("tolerations"))


def _taints(taints: tuple[node.Taint, ...], at: Path) -> Errors:
    visited: set[tuple[str, str]] = set()
    for position, taint in enumerate(taints):
        here = at.item(position)
        yield from formats.label_key(taint.key, here.child("key"))
        if problems := names.label_value(taint.value):
            yield fielderror.invalid(here.child("value"), taint.value, ";".join(problems))
        if (taint.key, taint.effect) in visited:
            detail = "taints must be unique by key and effect pair"
            yield fielderror.replace_detail(fielderror.duplicate(here, taint), detail)
        visited.add((taint.key, taint.effect))


def check_tolerations(tolerations: tuple[pod.Toleration, ...], at: Path) -> Errors:
    """Check tolerations, of which only the keys matter."""
    for position, toleration in enumerate(tolerations):
        if toleration.key:
            yield from formats.label_key(toleration.key, at.item(position).child("key"))
