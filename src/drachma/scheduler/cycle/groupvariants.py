"""Variants of a cluster in which the claims of a group can only get devices that agree. Pure.

A constraint over all pods of a group (:mod:`~drachma.scheduler.snapshot.agreements`) becomes a selector of each claim.
If all devices must have the same value of an attribute, there is one variant for each value: the group fits exactly if
it fits in one of them. The same holds for the alternatives of a prioritized list. If all devices must have different
values, the claims of each pod exclude the values that other pods have, and the search tries other values too
(:mod:`~drachma.scheduler.cycle.groupsearch`).

Claims are changed on forks only. The allocations that come out of it are written, and never the changed claims.
"""

from __future__ import annotations

import functools
import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import structs

from drachma.allocator import attributes
from drachma.api import devices as deviceapi
from drachma.api import resourceclaim
from drachma.claims import podclaims
from drachma.runtime import resourceversion
from drachma.scheduler.cycle.decision import Placed
from drachma.scheduler.snapshot import Snapshot, agreements, gangs, podinfo
from drachma.values import quotation

_MOST_VARIANTS: Final = 1000
"""Number of combinations of values and alternatives that are tried."""

Claim = resourceclaim.ResourceClaim
Infos = Sequence[podinfo.PodInfo]


class Variant(NamedTuple):
    """Cluster in which the claims of a group can only get some devices."""

    snapshot: Snapshot
    title: str
    """Values and alternatives that were chosen, for messages."""


def variants(
    gang: gangs.Gang, agreement: agreements.Agreement, snapshot: Snapshot, members: Infos
) -> Iterator[Variant]:
    """Yield the variants to try, preferred alternatives first, then values that most devices have."""
    alternatives = list(_alternatives(gang, snapshot, members)) if agreement.same_alternative else []
    values = [[(rule, value) for value in _values(rule, gang, snapshot, members)] for rule in agreement.match]
    chosen_alternatives = itertools.product(*([(key, name) for name in choices] for key, choices in alternatives))
    combinations = itertools.product(chosen_alternatives, itertools.product(*values))
    for alternative, match in itertools.islice(combinations, _MOST_VARIANTS):
        fork = snapshot.fork()
        for (entry_name, request), name in alternative:
            _change(fork, members, functools.partial(_with_alternative, entry_name, request, name))
        for rule, value in match:
            _change(fork, members, functools.partial(_with_selector, rule, _selector(rule.attribute, [value])))
        texts = [*(name for _, name in alternative), *(f"{rule.attribute}={text(value)}" for rule, value in match)]
        yield Variant(fork, ", ".join(texts))


def text(value: attributes.Element) -> str:
    """Return a value for messages."""
    kind, content = value
    return str(content).lower() if kind == "bool" else str(content)


def without_values(
    fork: Snapshot, info: podinfo.PodInfo, excluded: Mapping[agreements.Rule, Collection[attributes.Element]]
) -> Snapshot:
    """Return a fork in which the claims of a pod get devices with other values, and different ones among themselves."""
    changed = fork.fork()
    for rule, values in excluded.items():
        _change(changed, (info,), functools.partial(_with_distinct, rule, _excluding_selector(rule.attribute, values)))
    return changed


def values_of(rule: agreements.Rule, placed: Placed, snapshot: Snapshot) -> Counter[attributes.Element]:
    """Return the values of an attribute that newly allocated devices of a pod have, each as often as it occurs."""
    results = {each.claim.metadata.name: each.result for each in placed.assignment.allocations}
    values: Counter[attributes.Element] = Counter()
    for entry, reference in podclaims.named(placed.info.pod):
        if rule.entry in ("", entry.name):
            # A pod may refer to a claim under several names.
            result = results.pop(reference.name, None)
            if result is not None:
                values.update(_allocated_values(rule, result, snapshot))
    return values


def resident_values(
    rule: agreements.Rule, gang: gangs.Gang, snapshot: Snapshot, members: Infos
) -> Counter[attributes.Element]:
    """Return the values that allocated devices of the group have, each as often as it occurs."""
    claims: dict[str, tuple[Claim, str]] = {}
    residents = filter(None, map(snapshot.nodes.resident, gang.members))
    for user in (*residents, *(info.pod for info in members)):
        for entry, reference in podclaims.named(user):
            claim = snapshot.claims.get(user.metadata.namespace, reference.name)
            if claim is not None and claim.status.allocation is not None and rule.entry in ("", entry.name):
                claims[claim.metadata.uid] = (claim, entry.name)
    counts: Counter[attributes.Element] = Counter()
    for claim, _ in claims.values():
        assert claim.status.allocation is not None, "only allocated claims are kept"
        counts.update(_allocated_values(rule, claim.status.allocation, snapshot))
    return counts


def _allocated_values(
    rule: agreements.Rule, allocation: resourceclaim.AllocationResult, snapshot: Snapshot
) -> Iterator[attributes.Element]:
    for result in allocation.devices.results:
        device = snapshot.devices.find(result) if rule.request in ("", result.request.partition("/")[0]) else None
        if device is not None:
            attribute = attributes.lookup(device.attributes, rule.attribute, driver=result.driver)
            elements = attributes.elements(attribute, lists=True)
            if isinstance(elements, tuple):
                yield from elements


# Candidates


def _values(rule: agreements.Rule, gang: gangs.Gang, snapshot: Snapshot, members: Infos) -> list[attributes.Element]:
    """Return the values that all devices of a group can have: one, if the group has devices already."""
    fixed = resident_values(rule, gang, snapshot, members)
    if fixed:
        return list(fixed) if len(fixed) == 1 else []
    counts: Counter[attributes.Element] = Counter()
    for published in snapshot.devices.catalog.slices():
        for device in published.spec.devices:
            attribute = attributes.lookup(device.attributes, rule.attribute, driver=published.spec.driver)
            elements = attributes.elements(attribute, lists=False)
            if isinstance(elements, tuple):
                counts.update(elements)
    return sorted(counts, key=lambda value: (-counts[value], value[0], str(value[1])))


def _alternatives(
    gang: gangs.Gang, snapshot: Snapshot, members: Infos
) -> Iterator[tuple[tuple[str, str], Sequence[str]]]:
    """Yield the requests with a prioritized list by entry and name, with the alternatives that all claims have."""
    lists: dict[tuple[str, str], list[Sequence[str]]] = {}
    residents = filter(None, map(snapshot.nodes.resident, gang.members))
    for user in (*residents, *(info.pod for info in members)):
        for entry, reference in podclaims.named(user):
            claim = snapshot.claims.get(user.metadata.namespace, reference.name)
            for request in () if claim is None else claim.spec.devices.requests:
                if request.first_available and claim is not None:
                    names: Sequence[str] = [each.name for each in request.first_available]
                    if claim.status.allocation is not None:
                        results = claim.status.allocation.devices.results
                        allocated_names = {each.request.partition("/")[2] for each in results if "/" in each.request}
                        names = [name for name in names if name in allocated_names]
                    lists.setdefault((entry.name, request.name), []).append(names)
    for key, choices in lists.items():
        yield key, [name for name in choices[0] if all(name in each for each in choices)]


# Changes of claims


def _change(fork: Snapshot, members: Iterable[podinfo.PodInfo], change: Callable[[str, Claim], Claim]) -> None:
    """Replace the unallocated claims of pods by changed ones, each once."""
    done: set[str] = set()
    for info in members:
        for entry, reference in podclaims.named(info.pod):
            claim = fork.claims.get(info.key.namespace, reference.name)
            if claim is None or claim.status.allocation is not None or claim.metadata.uid in done:
                continue
            changed = change(entry.name, claim)
            if changed is not claim:
                done.add(claim.metadata.uid)
                version = str(resourceversion.number(claim.metadata.resource_version) + 1)
                metadata = structs.replace(claim.metadata, resource_version=version)
                fork.claims.observe(structs.replace(changed, metadata=metadata))


def _with_requests(claim: Claim, requests: Iterable[resourceclaim.DeviceRequest]) -> Claim:
    devices = structs.replace(claim.spec.devices, requests=tuple(requests))
    return structs.replace(claim, spec=structs.replace(claim.spec, devices=devices))


def _with_alternative(entry_name: str, request: str, alternative: str, entry: str, claim: Claim) -> Claim:
    """Return a claim whose request has one alternative only."""
    if entry != entry_name:
        return claim
    return _with_requests(
        claim,
        (
            structs.replace(each, first_available=tuple(sub for sub in each.first_available if sub.name == alternative))
            if each.name == request
            else each
            for each in claim.spec.devices.requests
        ),
    )


def _with_selector(rule: agreements.Rule, selector: deviceapi.DeviceSelector, entry: str, claim: Claim) -> Claim:
    """Return a claim whose requests in the scope of a rule have one more selector."""
    if rule.entry not in ("", entry):
        return claim
    return _with_requests(
        claim,
        (
            _selecting(each, selector) if rule.request in ("", each.name) else each
            for each in claim.spec.devices.requests
        ),
    )


def _selecting(request: resourceclaim.DeviceRequest, selector: deviceapi.DeviceSelector) -> resourceclaim.DeviceRequest:
    exactly = request.exactly
    if exactly is not None:
        exactly = structs.replace(exactly, selectors=(*exactly.selectors, selector))
    subrequests = tuple(
        structs.replace(each, selectors=(*each.selectors, selector)) for each in request.first_available
    )
    return structs.replace(request, exactly=exactly, first_available=subrequests)


def _with_distinct(rule: agreements.Rule, selector: deviceapi.DeviceSelector, entry: str, claim: Claim) -> Claim:
    """Return a claim with one more selector, whose own devices have different values too."""
    selecting = _with_selector(rule, selector, entry, claim)
    if selecting is claim:
        return claim
    constraint = resourceclaim.DeviceConstraint(
        requests=(rule.request,) if rule.request else (), distinct_attribute=rule.attribute
    )
    devices = selecting.spec.devices
    devices = structs.replace(devices, constraints=(*devices.constraints, constraint))
    return structs.replace(selecting, spec=structs.replace(selecting.spec, devices=devices))


def _selector(attribute: str, values: Iterable[attributes.Element]) -> deviceapi.DeviceSelector:
    """Return the selector for devices that have one of some values of an attribute."""
    place, present = _attribute(attribute)
    return _cel(f"{present} && ({' || '.join(_equals(place, value) for value in values)})")


def _excluding_selector(attribute: str, values: Collection[attributes.Element]) -> deviceapi.DeviceSelector:
    """Return the selector for devices that have an attribute, and none of some values."""
    place, present = _attribute(attribute)
    refusals = (f"!({_equals(place, value)})" for value in sorted(values, key=str))
    return _cel(" && ".join((present, *refusals)))


def _attribute(attribute: str) -> tuple[str, str]:
    domain, _, name = attribute.partition("/")
    attributes_of_domain = f"device.attributes[{quotation.quote(domain)}]"
    return f"{attributes_of_domain}[{quotation.quote(name)}]", f"{quotation.quote(name)} in {attributes_of_domain}"


def _equals(place: str, value: attributes.Element) -> str:
    kind, content = value
    match kind:
        case "string":
            return f"type({place}) == string && {place} == {quotation.quote(str(content))}"
        case "int":
            return f"type({place}) == int && {place} == {content}"
        case "bool":
            return f"type({place}) == bool && {place} == {str(content).lower()}"
        case _:
            return f"{place}.compareTo(semver({quotation.quote(str(content))})) == 0"


def _cel(expression: str) -> deviceapi.DeviceSelector:
    return deviceapi.DeviceSelector(cel=deviceapi.CELDeviceSelector(expression=expression))
