"""Resource claims: counted, with the largest number of devices of each class that they may get (KEP-4381).

``All`` may be as many as an allocation can hold. Of alternatives (KEP-4816) the one with most devices of a class
counts, for each class by itself. If devices back an extended resource, a claim counts against quotas of that resource
as well, less what its pod was charged.
"""

from collections.abc import Iterable
from typing import Final

from drachma.accounting import resourcenames
from drachma.accounting.quota import evaluator, pods
from drachma.api import deviceclass, pod, resourceclaim
from drachma.api.resourceclaim import ResourceClaim
from drachma.api.resourcequota import ScopedResourceSelectorRequirement as Requirement
from drachma.claims import ownership, wellknown
from drachma.values import quantity

_COUNT: Final = "count/resourceclaims.resource.k8s.io"
_DEVICES: Final = ".deviceclass.resource.k8s.io/devices"
_REQUESTS: Final = "requests."
_IMPLICIT: Final = _REQUESTS + resourcenames.DEVICE_CLASS_PREFIX

_MOST_DEVICES: Final = 32
"""Largest number of devices in an allocation."""


class ResourceClaims:
    """Evaluator of resource claims."""

    model: Final = ResourceClaim
    subresources: Final = frozenset({""})
    owed: Final[frozenset[str]] = frozenset()

    def concerns(self, _change: evaluator.Change[ResourceClaim]) -> bool:
        return True

    def counted(self, names: Iterable[str], facts: evaluator.Facts) -> frozenset[str]:
        return frozenset(name for name in names if name == _COUNT or name.endswith(_DEVICES) or _is_backed(name, facts))

    def is_in_scope(self, _subject: ResourceClaim, _requirement: Requirement) -> bool:
        return False

    def omission(self, _subject: ResourceClaim, _required: frozenset[str]) -> str:
        return ""

    def usage(self, subject: ResourceClaim, facts: evaluator.Facts) -> evaluator.Amounts:
        used = {_COUNT: evaluator.ONE}
        paid = _paid(subject, facts)
        for class_name, count in devices(subject.spec.devices.requests).items():
            amount = quantity.Quantity.from_int(count)
            used[class_name + _DEVICES] = amount
            for name in _extended_names(class_name, facts):
                unpaid = amount - paid[name] if name in paid else amount
                if unpaid > evaluator.ZERO:
                    used[name] = unpaid
        return used


def devices(requests: Iterable[resourceclaim.DeviceRequest]) -> dict[str, int]:
    """Return the largest number of devices of each class that requests may get."""
    total: dict[str, int] = {}
    for request in requests:
        most: dict[str, int] = {}
        for way in request.first_available or ((request.exactly,) if request.exactly is not None else ()):
            most[way.device_class_name] = max(most.get(way.device_class_name, 0), _count(way))
        for class_name, count in most.items():
            total[class_name] = total.get(class_name, 0) + count
    return total


def _count(way: resourceclaim.ExactDeviceRequest | resourceclaim.DeviceSubRequest) -> int:
    match way.allocation_mode:
        case "ExactCount":
            return way.count
        case "All":
            return _MOST_DEVICES
    return 0


def _is_backed(name: str, facts: evaluator.Facts) -> bool:
    """Return True if devices back an extended resource. The implicit name needs a class with an explicit one."""
    if name.startswith(_IMPLICIT):
        return bool(_explicit_name(facts.extended.get(name.removeprefix(_REQUESTS))))
    return pods.is_extended_request(name) and facts.extended.get(name.removeprefix(_REQUESTS)) is not None


def _extended_names(class_name: str, facts: evaluator.Facts) -> list[str]:
    explicit = _explicit_name(facts.extended.get(resourcenames.DEVICE_CLASS_PREFIX + class_name))
    return [_IMPLICIT + class_name] + ([_REQUESTS + explicit] if explicit else [])


def _explicit_name(device_class: deviceclass.DeviceClass | None) -> str:
    return (device_class.spec.extended_resource_name or "") if device_class is not None else ""


def _paid(claim: ResourceClaim, facts: evaluator.Facts) -> evaluator.Amounts:
    """Return the charges of the pod for which a claim for extended resources was created."""
    owner = ownership.owning_pod(claim)
    if owner is None or claim.metadata.annotations.get(wellknown.EXTENDED_RESOURCE_ANNOTATION) != "true":
        return {}
    owning = facts.pod(claim.metadata.namespace, owner.name)
    if owning is None or owning.metadata.uid != owner.uid or not _is_its_claim(claim, owning, facts):
        return {}
    return pods.usage(owning, now=facts.now)


def _is_its_claim(claim: ResourceClaim, owning: pod.Pod, facts: evaluator.Facts) -> bool:
    """Return True if a claim belongs to its pod: the pod names it, or names none and it is the first."""
    status = owning.status.extended_resource_claim_status
    if status is not None:
        return status.resource_claim_name == claim.metadata.name
    rivals = (
        each
        for each in facts.claims(claim.metadata.namespace)
        if each.metadata.annotations.get(wellknown.EXTENDED_RESOURCE_ANNOTATION) == "true"
        and (owner := ownership.owning_pod(each)) is not None
        and owner.uid == owning.metadata.uid
    )
    return not any(_is_before(each, claim) for each in rivals)


def _is_before(one: ResourceClaim, reference: ResourceClaim) -> bool:
    mine, theirs = one.metadata.creation_timestamp, reference.metadata.creation_timestamp
    if mine is None or theirs is None:
        return mine is not None
    return (mine, one.metadata.name) < (theirs, reference.metadata.name)
