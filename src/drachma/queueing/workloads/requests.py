"""What the pod sets of a workload ask for in all, as quota counts it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from drachma.accounting import requests as podrequests
from drachma.api import pod
from drachma.queueing import amounts
from drachma.queueing.configuration.configuration import ResourceTransformation
from drachma.queueing.configuration.gates import DEFAULT, Gate, Gates
from drachma.queueing.devices import deviceaccount
from drachma.queueing.devices.devicerequests import DeviceRequests
from drachma.queueing.kinds import workload

_NO_FLAVORS: Mapping[str, str] = {}
_NOTHING: amounts.Requests = {}
_GIGA = 10**9


class Counting(msgspec.Struct, frozen=True):
    """Which requests are charged, and as what."""

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
        """From the parts of a configuration."""
        return cls(tuple(excluded_prefixes), {each.input: each for each in transformations}, gates)


DEFAULT_COUNTING = Counting()


class PodSetRequests(msgspec.Struct, frozen=True):
    """What all pods of a set ask for together; flavors where they have been assigned."""

    name: str
    requests: amounts.Requests
    count: int
    flavors: Mapping[str, str] = _NO_FLAVORS
    once: amounts.Requests = _NOTHING
    """The part of it that does not depend on how many pods there are."""

    def scaled(self, count: int) -> PodSetRequests:
        """The same for another number of pods."""
        if self.count in (0, count):
            return self
        scaled = _scaled(self.requests, self.count, count)
        for name, amount in self.once.items():
            part = amounts.minus(self.requests[name], amount)
            scaled[name] = amounts.plus(_scaled({name: part}, self.count, count)[name], amount)
        return PodSetRequests(self.name, scaled, count, self.flavors, self.once)


def _scaled(requests: amounts.Requests, before: int, count: int) -> dict[str, int]:
    # Division first and towards zero, as upstream's integers do.
    return {name: amounts.clamp(_quotient(amount, before) * count) for name, amount in requests.items()}


def _quotient(amount: int, by: int) -> int:
    if by == 0:
        return amount
    return amount // by if amount >= 0 else -(-amount // by)


def total(
    of: workload.Workload, *, counting: Counting = DEFAULT_COUNTING, devices: DeviceRequests | None = None
) -> tuple[PodSetRequests, ...]:
    """What each pod set counts for: what it was admitted with, or else what it asks for."""
    counts = counts_after_reclaim(of, counting.gates)
    if of.status.admission is not None:
        return tuple(_admitted(each, of, counts) for each in of.status.admission.pod_set_assignments)
    return tuple(_requested(each, counts[each.name], counting=counting, devices=devices) for each in of.spec.pod_sets)


def _requested(
    of: workload.PodSet, count: int, *, counting: Counting, devices: DeviceRequests | None
) -> PodSetRequests:
    requests = {
        name: amounts.clamp(max(amount, 0) * count)
        for name, amount in per_pod(of, counting=counting, devices=devices).items()
    }
    if devices is None or not devices.named or not counting.gates.on(Gate.DRA):
        return PodSetRequests(of.name, requests, count)
    once: dict[str, int] = {}
    for named in devices.named.values():
        for name, amount in amounts.of_list(named.charge).items() if named.pod_set == of.name else ():
            once[name] = amounts.plus(once.get(name, 0), amount)
            requests[name] = amounts.plus(requests.get(name, 0), amount)
    return PodSetRequests(of.name, requests, count, once=once)


def _admitted(of: workload.PodSetAssignment, owner: workload.Workload, counts: Mapping[str, int]) -> PodSetRequests:
    totals = {each.name: each.count for each in owner.spec.pod_sets}
    count = totals.get(of.name, 0) if of.count is None else of.count
    requests = amounts.of_list(of.resource_usage)
    after = counts.get(of.name, 0)
    if after < count:
        account = deviceaccount.of(owner)
        agreed = account.pod_sets.get(of.name) if account is not None else None
        whole = requests
        requests = _scaled(requests, count, after)
        for name, resource in agreed.resources().items() if agreed is not None else ():
            # Devices of pods that are over are given back by settlement, each with what it was.
            requests[name] = whole.get(name, 0) - resource.beside * (count - after)
        count = after
    return PodSetRequests(of.name, requests, count, of.flavors)


def counts_after_reclaim(of: workload.Workload, gates: Gates = DEFAULT) -> dict[str, int]:
    """How many pods of each set still need quota."""
    counts = {each.name: int(each.count) for each in of.spec.pod_sets}
    if gates.on(Gate.RECLAIMABLE_PODS):
        for reclaimable in of.status.reclaimable_pods:
            if reclaimable.name in counts:
                counts[reclaimable.name] -= min(reclaimable.count, counts[reclaimable.name])
    return counts


def per_pod(
    of: workload.PodSet, *, counting: Counting = DEFAULT_COUNTING, devices: DeviceRequests | None = None
) -> dict[str, int]:
    """What one pod of a set counts for; may be negative where a pod says so."""
    nanos = podrequests.total(pod.Pod(spec=of.template.spec))
    charged = {name: amount for name, amount in nanos.items() if not name.startswith(counting.excluded_prefixes)}
    charged = _transformed(charged, counting.transformations)
    if devices is not None and counting.gates.on(Gate.DRA):
        for name in devices.replaced.get(of.name, ()):
            charged.pop(name, None)
        for name, amount in devices.charges.get(of.name, {}).items():
            charged[name] = charged.get(name, 0) + amount.nanos
    return {name: amounts.of_nanos(name, amount) for name, amount in charged.items()}


def _transformed(charged: dict[str, int], rules: Mapping[str, ResourceTransformation]) -> dict[str, int]:
    """Requests with their transformations. What these generate cancels out among itself, never against requests."""
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
    """The product of two amounts in nanos, away from zero."""
    product = one * other
    return -(-product // _GIGA) if product >= 0 else product // _GIGA


class FlavorResource(NamedTuple):
    """A resource of a flavor: what quota is given out of."""

    flavor: str
    resource: str

    def __str__(self) -> str:
        return f"{self.flavor}/{self.resource}"


Usage = Mapping[FlavorResource, int]


def usage(of: Iterable[PodSetRequests]) -> dict[FlavorResource, int]:
    """What requests use of flavors; what has no flavor uses none."""
    used: dict[FlavorResource, int] = {}
    for each in of:
        for name, amount in each.requests.items():
            flavor = each.flavors.get(name)
            if flavor:
                key = FlavorResource(flavor, name)
                used[key] = amounts.plus(used.get(key, 0), amount)
    return used


def unassigned(of: Iterable[PodSetRequests]) -> dict[str, int]:
    """What requests ask for that has no flavor."""
    rest: dict[str, int] = {}
    for each in of:
        for name, amount in each.requests.items():
            if not each.flavors.get(name):
                rest[name] = rest.get(name, 0) + amount
    return rest
