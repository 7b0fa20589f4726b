"""What must hold of claims and slices of v1alpha2 and the v1 objects that stand for them, when all has come to rest."""

from collections import Counter
from collections.abc import Iterable, Mapping

from drachma.api import resourceclaim, resourceslice
from drachma.api.v1alpha2 import resourceclaim as alpha
from drachma.api.v1alpha2 import resourceslice as alpha_slice
from drachma.claims import standins
from drachma.structured import claims, counterpart
from tests.scenarios.churn.violation import ViolationError

Claim = resourceclaim.ResourceClaim


def check(
    originals: Mapping[str, alpha.ResourceClaim],
    v1_claims: Mapping[str, Claim],
    *,
    published: Iterable[resourceslice.ResourceSlice],
    node_slices: Iterable[alpha_slice.NodeResourceSlice],
) -> None:
    """Raises ViolationError where one does not say what the other does, or a device is not shown exactly once."""
    for name, original in originals.items():
        other = v1_claims.get(name)
        _check_claim(original, other if other is not None and counterpart.stands_for(other, original) else None)
    _check_devices(tuple(published), node_slices)


def _check_claim(original: alpha.ResourceClaim, own: Claim | None) -> None:
    name = original.metadata.name
    is_allocated = own is not None and own.status.allocation is not None
    if (original.status.allocation is not None) is not is_allocated:
        raise ViolationError(f"claim {name} of v1alpha2 and its counterpart do not agree whether it is allocated")
    if (claims.FINALIZER in original.metadata.finalizers) is not is_allocated:
        raise ViolationError(f"claim {name} of v1alpha2 has a finalizer without an allocation, or the other way round")
    users = counterpart.users(own) if own is not None else ()
    if set(original.status.reserved_for) != set(users):
        raise ViolationError(f"claim {name} of v1alpha2 and its counterpart do not agree who uses it")


def _check_devices(
    published: tuple[resourceslice.ResourceSlice, ...], node_slices: Iterable[alpha_slice.NodeResourceSlice]
) -> None:
    shown = Counter(
        (each.spec.driver, each.spec.node_name, device.name)
        for each in published
        if each.spec.node_name
        for device in each.spec.devices
    )
    for place, times in shown.items():
        if times > 1:
            raise ViolationError(f"device {place} is shown {times} times")
    offered = {
        (each.spec.driver_name, each.spec.node_name, resource.name)
        for each in node_slices
        for resource in each.spec.named_resources_with_attributes or ()
    }
    for place in sorted(offered - shown.keys()):
        raise ViolationError(f"resource {place} is published in v1alpha2 and not shown in v1")
    standing = {
        (each.spec.driver, str(each.spec.node_name), device.name)
        for each in published
        if standins.is_stand_in(each.spec.pool.name)
        for device in each.spec.devices
    }
    for place in sorted(standing - offered):
        raise ViolationError(f"device {place} stands for a resource that nobody publishes")
