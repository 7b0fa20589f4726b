"""Rules for Workload beyond its schema, in Kueue's order and words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import structs

from drachma.api import pod
from drachma.queueing import amounts
from drachma.queueing.configuration.gates import DEFAULT, Gate, Gates
from drachma.queueing.devices import account as deviceaccount
from drachma.queueing.kinds import workload
from drachma.queueing.rules.queuerules import check_amount, check_tolerations
from drachma.queueing.workloads import workloadstate
from drachma.validation import conditions, fielderror, metadata
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import METADATA, SPEC, STATUS, Path
from drachma.values import labels, names

_IMMUTABLE: Final = "field is immutable"
_POSITIVE: Final = "must be greater than 0"
_GATE_LENGTH: Final = 63
_GATE_PATH: Final = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_GATES_PATH: Final = METADATA.child("annotations").key(workload.ADMISSION_GATES)
_BOOST_PATH: Final = METADATA.child("annotations").key(workloadstate.PRIORITY_BOOST)


def check(
    wl: workload.Workload, old: workload.Workload | None = None, *, gates: Gates = DEFAULT
) -> tuple[FieldError, ...]:
    """Return the problems of a workload that is created, or changed from ``old``, each once."""
    return tuple({str(each): each for each in _check(wl, old, gates)}.values())


def _check(wl: workload.Workload, old: workload.Workload | None, gates: Gates) -> Errors:
    # An unchanged spec was validated when it was written.
    if old is None or wl.spec is not old.spec:
        yield from _pod_sets(wl, gates)
    at = STATUS.child("admission")
    if workloadstate.has_reservation(wl):
        yield from _admission(wl, old, at)
    yield from conditions.check(wl.status.conditions, STATUS.child("conditions"))
    yield from _reclaimable(wl, old, STATUS.child("reclaimablePods"), gates=gates)
    yield from _admission_checks(wl, STATUS.child("admissionChecks"))
    if gates.on(Gate.ADMISSION_GATED_BY):
        yield from check_gates(wl.metadata.annotations)
    if gates.on(Gate.PRIORITY_BOOST):
        yield from _boost(wl.metadata.annotations.get(workloadstate.PRIORITY_BOOST))
    if old is not None:
        yield from _changes(wl, old, gates)


def is_elastic(wl: workload.Workload, gates: Gates) -> bool:
    """Return True if the size of the workload may change while it runs."""
    return gates.on(Gate.ELASTIC_JOBS) and wl.metadata.annotations.get(workload.ELASTIC) == "true"


def _pod_sets(wl: workload.Workload, gates: Gates) -> Errors:
    at = SPEC.child("podSets")
    for position, each in enumerate(wl.spec.pod_sets):
        yield from _pod_set(each, at.item(position), gates)
    variable = sum(each.min_count is not None for each in wl.spec.pod_sets)
    if variable > 1:
        yield fielderror.invalid(at, variable, "at most one podSet can use minCount")
    if variable and is_elastic(wl, gates):
        yield fielderror.invalid(at, variable, "partial admission and elastic job cannot be used together")


def _pod_set(pod_set: workload.PodSet, at: Path, gates: Gates) -> Errors:
    template = pod_set.template
    here = at.child("template")
    if gates.on(Gate.VALIDATE_POD_SET_METADATA):
        yield from metadata.labels(template.metadata.labels, here.child("metadata", "labels"))
        yield from metadata.annotations(template.metadata.annotations, here.child("metadata", "annotations"))
    for field, containers in (
        ("initContainers", template.spec.init_containers),
        ("containers", template.spec.containers),
    ):
        for position, container in enumerate(containers):
            where = here.child("spec", field).item(position).child("resources")
            yield from _resources(container.resources, where, gates)
    if template.spec.resources is not None:
        yield from _resources(template.spec.resources, here.child("spec", "resources"), gates)
    if pod_set.topology_request is not None and gates.on(Gate.TAS_VALIDATE_SLICE_SIZE):
        yield from _slices(pod_set.topology_request, at.child("topologyRequest"))


def _resources(requirements: pod.ResourceRequirements, at: Path, gates: Gates) -> Errors:
    for field, resources in (("requests", requirements.requests), ("limits", requirements.limits)):
        for name in sorted(resources):
            here = at.child(field).key(name)
            if name == "pods":
                yield fielderror.invalid(here, name, "the key is reserved for internal kueue use")
            if gates.on(Gate.VALIDATE_NON_NEGATIVE):
                yield from check_amount(resources[name], here)


def _slices(request: workload.PodSetTopologyRequest, at: Path) -> Errors:
    size = request.pod_set_slice_size
    here = at.child("podSetSliceSize")
    if request.pod_set_slice_required_topology is not None:
        if size is None:
            yield fielderror.required(here, "must be set when podSetSliceRequiredTopology is specified")
        elif size <= 0:
            yield fielderror.invalid(here, size, _POSITIVE)
    elif size is not None:
        yield fielderror.forbidden(here, "may not be set when podSetSliceRequiredTopology is not specified")
    for position, each in enumerate(request.podset_slice_required_topology_constraints):
        if each.size <= 0:
            where = at.child("podsetSliceRequiredTopologyConstraints").item(position).child("size")
            yield fielderror.invalid(where, each.size, _POSITIVE)


def _lacks_admission(wl: workload.Workload | None) -> bool:
    return wl is not None and workloadstate.has_reservation(wl) and wl.status.admission is None


def _admission(wl: workload.Workload, old: workload.Workload | None, at: Path) -> Errors:
    admission = wl.status.admission
    if admission is None:
        # A workload that was invalid before may become valid, or be deleted.
        if not _lacks_admission(old):
            yield fielderror.required(at, "must be set while the QuotaReserved condition is true")
        return
    pod_sets = {each.name for each in wl.spec.pod_sets}
    for position, each in enumerate(admission.pod_set_assignments):
        here = at.child("podSetAssignments").item(position)
        if each.name not in pod_sets:
            yield fielderror.not_found(here.child("name"), each.name)
        settled = _settled_resources(wl, each.name)
        for name in sorted(each.resource_usage.keys() - settled) if each.count else ():
            amount = each.resource_usage[name]
            if each.count and amounts.requested(name, amount) % each.count:
                where = here.child("resourceUsage").key(name)
                yield fielderror.invalid(where, str(amount), f"is not a multiple of {each.count}")


def _reclaimable(wl: workload.Workload, old: workload.Workload | None, at: Path, *, gates: Gates) -> Errors:
    counts = {each.name: each.count for each in wl.spec.pod_sets}
    stale = old.status.reclaimable_pods if old is not None and is_elastic(wl, gates) else ()
    for each in wl.status.reclaimable_pods:
        here = at.key(each.name)
        if each.name not in counts:
            yield fielderror.not_supported(here.child("name"), each.name, tuple(counts))
        elif each.count > counts[each.name] and each not in stale:
            yield fielderror.invalid(here.child("count"), each.count, f"should be less or equal to {counts[each.name]}")


def _admission_checks(wl: workload.Workload, at: Path) -> Errors:
    pod_sets = sorted({each.name for each in wl.spec.pod_sets})
    for position, check_state in enumerate(wl.status.admission_checks):
        for index, update in enumerate(check_state.pod_set_updates):
            here = at.item(position).child("podSetUpdates").item(index)
            if update.name not in pod_sets:
                yield fielderror.not_supported(here.child("name"), update.name, pod_sets)
            yield from check_tolerations(update.tolerations, here.child("tolerations"))
            yield from metadata.annotations(update.annotations, here.child("annotations"))
            yield from metadata.labels(update.node_selector, here.child("nodeSelector"))
            yield from metadata.labels(update.labels, here.child("labels"))


def split_gates(value: str) -> list[str]:
    """Return the gates that an annotation names."""
    return [part.strip() for part in value.split(",")] if value.strip() else []


def check_gates(annotations: Mapping[str, str], old: Mapping[str, str] | None = None) -> Errors:
    """Check the admission gates of a workload or job: after creation, gates may only be removed."""
    new, before = annotations.get(workload.ADMISSION_GATES, ""), (old or {}).get(workload.ADMISSION_GATES, "")
    if old is not None and new and not before:
        yield fielderror.forbidden(_GATES_PATH, "cannot add admission gate after creation")
    if new and before and not set(split_gates(new)) <= set(split_gates(before)):
        yield fielderror.forbidden(_GATES_PATH, "can only remove gates, not add new ones")
    yield from _gate_names(new)


def _gate_names(value: str) -> Errors:
    visited: set[str] = set()
    for gate in split_gates(value):
        if not gate:
            yield fielderror.invalid(_GATES_PATH, value, "cannot contain empty gate names")
        elif gate in visited:
            yield fielderror.invalid(_GATES_PATH, value, f"duplicate gate name: {gate}")
        else:
            visited.add(gate)
            yield from _gate_name(gate)


def _gate_name(gate: str) -> Errors:
    domain, slash, path = gate.partition("/")
    if not (domain and slash and path):
        yield fielderror.invalid(_GATES_PATH, gate, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from fielderror.problems(_GATES_PATH, domain, names.dns1123_subdomain(domain))
        if not re.fullmatch(_GATE_PATH, path):
            detail = f"Invalid path (regex used for validation is '{_GATE_PATH}')"
            yield fielderror.invalid(_GATES_PATH, path, detail)
    if names.byte_length(gate) > _GATE_LENGTH:
        yield fielderror.too_long(_GATES_PATH, _GATE_LENGTH)


def _boost(value: str | None) -> Errors:
    if value is None:
        return
    if not value:
        detail = 'must be a valid signed integer; use "0" explicitly, empty string is not allowed'
        yield fielderror.invalid(_BOOST_PATH, value, detail)
        return
    number = labels.parse_int64(value)
    if number is None or not -(2**31) <= number < 2**31:
        yield fielderror.invalid(_BOOST_PATH, value, "must be a valid signed integer")


def _changes(wl: workload.Workload, old: workload.Workload, gates: Gates) -> Errors:
    if workloadstate.has_reservation(old):
        yield from _same_pod_sets(wl, old, gates)
    if workloadstate.has_reservation(wl) and workloadstate.has_reservation(old):
        yield from _growing_reclaimable(wl, old, gates)
    yield from _same_admission(wl.status.admission, _settled(old, wl.status.admission), gates)
    yield from _same_updates(wl, old)
    yield from _cluster_name(wl, old, gates)
    if gates.on(Gate.ADMISSION_GATED_BY):
        yield from check_gates(wl.metadata.annotations, old.metadata.annotations)


def _same_pod_sets(wl: workload.Workload, old: workload.Workload, gates: Gates) -> Errors:
    at = SPEC.child("podSets")
    if len(wl.spec.pod_sets) != len(old.spec.pod_sets):
        yield fielderror.invalid(at, wl.spec.pod_sets, _IMMUTABLE)
        return
    for position, (new, before) in enumerate(zip(wl.spec.pod_sets, old.spec.pod_sets, strict=True)):
        is_smaller = gates.on(Gate.ELASTIC_JOBS) and new.count < before.count
        after = structs.replace(new, count=before.count) if is_smaller else new
        if after != before:
            yield fielderror.invalid(at.child(str(position)), after, _IMMUTABLE)


def _growing_reclaimable(wl: workload.Workload, old: workload.Workload, gates: Gates) -> Errors:
    before = {each.name: each.count for each in old.status.reclaimable_pods}
    now = {each.name: each.count for each in wl.status.reclaimable_pods}
    if before == now:
        return
    shrunk = _shrunk(wl, gates)
    at = STATUS.child("reclaimablePods")
    for name, count in now.items():
        if name in before and count < before[name] and name not in shrunk:
            yield fielderror.invalid(at.key(name).child("count"), count, f"cannot be less than {before[name]}")
    for name in before:
        if name not in now and name not in shrunk:
            yield fielderror.required(at.key(name), "cannot be removed")


def _shrunk(wl: workload.Workload, gates: Gates) -> set[str]:
    """Return the pod sets of an elastic workload that are smaller than admitted."""
    if not is_elastic(wl, gates) or wl.status.admission is None:
        return set()
    counts = {each.name: each.count for each in wl.spec.pod_sets}
    return {
        each.name
        for each in wl.status.admission.pod_set_assignments
        if each.count is not None and each.count > counts.get(each.name, 0)
    }


def _settled_resources(wl: workload.Workload, pod_set: str) -> frozenset[str]:
    """Return the resources of a pod set whose usage follows devices, not the number of pods; beyond Kueue."""
    account = deviceaccount.read(wl)
    agreed = account.pod_sets.get(pod_set) if account is not None else None
    return frozenset(agreed.resources()) if agreed is not None else frozenset()


def _settled(old: workload.Workload, new: workload.Admission | None) -> workload.Admission | None:
    """Return the admission with the settled usage of devices, for a workload with an account."""
    admission = old.status.admission
    if admission is None or new is None or deviceaccount.read(old) is None:
        return admission
    later = {each.name: each.resource_usage for each in new.pod_set_assignments}
    assignments = []
    for each in admission.pod_set_assignments:
        usage, now = dict(each.resource_usage), later.get(each.name, {})
        for name in _settled_resources(old, each.name):
            if name in usage and name in now and now[name] < usage[name]:
                usage[name] = now[name]
        assignments.append(structs.replace(each, resource_usage=usage))
    return structs.replace(admission, pod_set_assignments=tuple(assignments))


def _same_admission(new: workload.Admission | None, old: workload.Admission | None, gates: Gates) -> Errors:
    if new is None or old is None:
        return
    before = old
    if gates.on(Gate.TAS) and len(new.pod_set_assignments) == len(old.pod_set_assignments):
        # The topology may be assigned later.
        before = structs.replace(
            old,
            pod_set_assignments=tuple(
                structs.replace(
                    earlier,
                    topology_assignment=later.topology_assignment,
                    delayed_topology_request=later.delayed_topology_request,
                )
                for earlier, later in zip(old.pod_set_assignments, new.pod_set_assignments, strict=True)
            ),
        )
    if new != before:
        yield fielderror.invalid(STATUS.child("admission"), new, _IMMUTABLE)


def _same_updates(wl: workload.Workload, old: workload.Workload) -> Errors:
    now = {each.name: each for each in wl.status.admission_checks}
    for position, before in enumerate(old.status.admission_checks):
        after = now.get(before.name)
        is_ready = before.state == workloadstate.READY and after is not None and after.state == workloadstate.READY
        if is_ready and after is not None and after.pod_set_updates != before.pod_set_updates:
            at = STATUS.child("admissionChecks").item(position).child("podSetUpdates")
            yield fielderror.invalid(at, after.pod_set_updates, _IMMUTABLE)


def _cluster_name(wl: workload.Workload, old: workload.Workload, gates: Gates) -> Errors:
    if gates.on(Gate.ELASTIC_JOBS) and wl.metadata.annotations.get(workload.REPLACES):
        return
    name = wl.status.cluster_name
    if old.status.cluster_name is None and name is not None and name not in old.status.nominated_cluster_names:
        detail = "when setting clusterName it must be one of the nominatedClusterNames"
        yield fielderror.invalid(STATUS.child("clusterName"), name, detail)
