"""Total requests of the pod sets of a workload, as quota counts them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from drachma.accounting import requests as podrequests
from drachma.api import pod
from drachma.queueing import amounts
from drachma.queueing.configuration.configuration import ResourceTransformation
from drachma.queueing.configuration.gates import DEFAULT, Gate, Gates
from drachma.queueing.devices import account as deviceaccount
from drachma.queueing.devices.requests import DeviceRequests
from drachma.queueing.kinds import workload

_NO_FLAVORS: Mapping[str, str] = {}
_NOTHING: amounts.Requests = {}
_GIGA = 10**9


class Counting(msgspec.Struct, frozen=True):
    """Rules of charging: excluded resources and transformations."""

    excluded_prefixes: tuple[str, ...] = ()
    transformations: Mapping[str, ResourceTransformation] = {}
    gates: Gates = DEFAULT

    @classmethod
    def of(
        cls,
        *,
        excluded_prefixes: Iterable[str] = (),
        transformations: Iterable[ResourceTransformation] = (),
        gates: Gates = DEFAULT,
    ) -> Counting:
        """Return the rules of a configuration."""
        return cls(tuple(excluded_prefixes), {each.input: each for each in transformations}, gates)


DEFAULT_COUNTING = Counting()


class PodSetRequests(msgspec.Struct, frozen=True):
    """Requests of all pods of a set together, with flavors if they are assigned."""

    name: str
    requests: amounts.Requests
    count: int
    flavors: Mapping[str, str] = _NO_FLAVORS
    once: amounts.Requests = _NOTHING
    """Part of the requests that does not depend on the number of pods."""
    pod: amounts.Requests = _NOTHING
    """Requests of one pod's spec, which decide where the pod fits; empty if an admission has no topology."""

    def scaled(self, count: int) -> PodSetRequests:
        """Return the requests for another number of pods."""
        if self.count in (0, count):
            return self
        scaled = _scaled(self.requests, self.count, count)
        for name, amount in self.once.items():
            part = amounts.minus(self.requests[name], amount)
            scaled[name] = amounts.plus(_scaled({name: part}, self.count, count)[name], amount)
        return PodSetRequests(self.name, scaled, count, self.flavors, self.once, self.pod)


def _scaled(requests: amounts.Requests, before: int, count: int) -> dict[str, int]:
    # Divide first, and towards zero, as upstream's integers do.
    return {name: amounts.clamp(_quotient(amount, before) * count) for name, amount in requests.items()}


def _quotient(amount: int, by: int) -> int:
    if by == 0:
        return amount
    return amount // by if amount >= 0 else -(-amount // by)


def total(
    wl: workload.Workload, *, counting: Counting = DEFAULT_COUNTING, devices: DeviceRequests | None = None
) -> tuple[PodSetRequests, ...]:
    """Return the requests of each pod set: of its admission, or else of its spec."""
    counts = counts_after_reclaim(wl, counting.gates)
    if wl.status.admission is not None:
        specs = {each.name: each for each in wl.spec.pod_sets}
        return tuple(
            _admitted(each, wl, counts, specs.get(each.name)) for each in wl.status.admission.pod_set_assignments
        )
    return tuple(_requested(each, counts[each.name], counting=counting, devices=devices) for each in wl.spec.pod_sets)


def _requested(
    pod_set: workload.PodSet, count: int, *, counting: Counting, devices: DeviceRequests | None
) -> PodSetRequests:
    nanos = podrequests.total(pod.Pod(spec=pod_set.template.spec))
    one_pod = {name: amounts.amount_of_nanos(name, amount) for name, amount in nanos.items()}
    requests = {
        name: amounts.clamp(max(amount, 0) * count)
        for name, amount in _charges(nanos, pod_set.name, counting=counting, devices=devices).items()
    }
    if devices is None or not devices.shared or not counting.gates.on(Gate.DRA):
        return PodSetRequests(pod_set.name, requests, count, pod=one_pod)
    once: dict[str, int] = {}
    for claim_charge in devices.shared.values():
        for name, amount in (
            amounts.request_amounts(claim_charge.charge).items() if claim_charge.payer == pod_set.name else ()
        ):
            once[name] = amounts.plus(once.get(name, 0), amount)
            requests[name] = amounts.plus(requests.get(name, 0), amount)
    return PodSetRequests(pod_set.name, requests, count, once=once, pod=one_pod)


def _admitted(
    assignment: workload.PodSetAssignment,
    owner: workload.Workload,
    counts: Mapping[str, int],
    pod_set: workload.PodSet | None,
) -> PodSetRequests:
    totals = {each.name: each.count for each in owner.spec.pod_sets}
    count = totals.get(assignment.name, 0) if assignment.count is None else assignment.count
    requests = amounts.request_amounts(assignment.resource_usage)
    after = counts.get(assignment.name, 0)
    if after < count:
        account = deviceaccount.read(owner)
        agreed = account.pod_sets.get(assignment.name) if account is not None else None
        assigned_requests = requests
        requests = _scaled(requests, count, after)
        for name, resource in agreed.resources().items() if agreed is not None else ():
            # Settlement gives back the devices of terminated pods, each with its own charge.
            requests[name] = assigned_requests.get(name, 0) - resource.own * (count - after)
        count = after
    has_topology = assignment.topology_assignment is not None or assignment.delayed_topology_request is not None
    one_pod = pod_requests(pod_set) if has_topology and pod_set is not None else _NOTHING
    return PodSetRequests(assignment.name, requests, count, assignment.flavors, pod=one_pod)


def counts_after_reclaim(wl: workload.Workload, gates: Gates = DEFAULT) -> dict[str, int]:
    """Return the number of pods of each set that still need quota."""
    counts = {each.name: int(each.count) for each in wl.spec.pod_sets}
    if gates.on(Gate.RECLAIMABLE_PODS):
        for reclaimable in wl.status.reclaimable_pods:
            if reclaimable.name in counts:
                counts[reclaimable.name] -= min(reclaimable.count, counts[reclaimable.name])
    return counts


def per_pod(
    pod_set: workload.PodSet, *, counting: Counting = DEFAULT_COUNTING, devices: DeviceRequests | None = None
) -> dict[str, int]:
    """Return the requests of one pod of a set; they may be negative if the pod's requests are."""
    nanos = podrequests.total(pod.Pod(spec=pod_set.template.spec))
    return _charges(nanos, pod_set.name, counting=counting, devices=devices)


def pod_requests(pod_set: workload.PodSet) -> dict[str, int]:
    """Return the requests in the spec of one pod of a set, without the rules of charging."""
    nanos = podrequests.total(pod.Pod(spec=pod_set.template.spec))
    return {name: amounts.amount_of_nanos(name, amount) for name, amount in nanos.items()}


def _charges(
    nanos: Mapping[str, int], pod_set: str, *, counting: Counting, devices: DeviceRequests | None
) -> dict[str, int]:
    charged = {name: amount for name, amount in nanos.items() if not name.startswith(counting.excluded_prefixes)}
    charged = _transformed(charged, counting.transformations)
    if devices is not None and counting.gates.on(Gate.DRA):
        for name in devices.replaced.get(pod_set, ()):
            charged.pop(name, None)
        for name, amount in devices.charges.get(pod_set, {}).items():
            charged[name] = charged.get(name, 0) + amount.nanos
    return {name: amounts.amount_of_nanos(name, amount) for name, amount in charged.items()}


def _transformed(charged: dict[str, int], rules: Mapping[str, ResourceTransformation]) -> dict[str, int]:
    """Return requests with their transformations. Generated amounts cancel out only among each other."""
    if not any(name in rules for name in charged):
        return charged
    retained: dict[str, int] = {}
    generated: dict[str, int] = {}
    for name, amount in charged.items():
        rule = rules.get(name)
        if rule is None or rule.strategy != "Replace":
            retained[name] = amount
        if rule is None:
            continue
        base = _product(amount, charged[rule.multiply_by]) if rule.multiply_by in charged else amount
        for output, factor in rule.outputs.items():
            generated[output] = generated.get(output, 0) + _product(base, factor.nanos)
    for name, amount in generated.items():
        retained[name] = retained.get(name, 0) + max(amount, 0)
    return retained


def _product(one: int, other: int) -> int:
    """Return the product of two amounts in nanos, rounded away from zero."""
    product = one * other
    return -(-product // _GIGA) if product >= 0 else product // _GIGA


class FlavorResource(NamedTuple):
    """A resource of a flavor, for which quota is counted."""

    flavor: str
    resource: str

    def __str__(self) -> str:
        return f"{self.flavor}/{self.resource}"


Usage = Mapping[FlavorResource, int]


def usage(pod_sets: Iterable[PodSetRequests]) -> dict[FlavorResource, int]:
    """Return the usage of flavors; resources without a flavor use none."""
    used: dict[FlavorResource, int] = {}
    for each in pod_sets:
        for name, amount in each.requests.items():
            flavor = each.flavors.get(name)
            if flavor:
                key = FlavorResource(flavor, name)
                used[key] = amounts.plus(used.get(key, 0), amount)
    return used


def unassigned(pod_sets: Iterable[PodSetRequests]) -> dict[str, int]:
    """Return the requests that have no flavor."""
    remainder: dict[str, int] = {}
    for each in pod_sets:
        for name, amount in each.requests.items():
            if not each.flavors.get(name):
                remainder[name] = remainder.get(name, 0) + amount
    return remainder
