"""Rules about permissions: admin access by namespace, and parts of a claim's status by authorization."""

from typing import Final, TypeVar

from drachma.api import resourceclaim
from drachma.api.gates import Gate
from drachma.api.v1alpha2 import resourceclaim as alpha
from drachma.claims import identity
from drachma.validation import fielderror
from drachma.validation.context import Authorizer, Context
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, STATUS, Path

ADMIN_ACCESS_LABEL: Final = "resource.kubernetes.io/admin-access"
_ALLOCATION: Final = STATUS.child("allocation")

_StatusT = TypeVar("_StatusT", resourceclaim.ResourceClaimStatus, alpha.ResourceClaimStatus)


def check_admin_access(claim: resourceclaim.DeviceClaim, context: Context) -> Errors:
    """Yield an error if a claim or template may not have admin access; upstream's path lacks ``exactly``."""
    for position, request in enumerate(claim.requests):
        if request.exactly is not None and request.exactly.admin_access:
            at = SPEC.child("devices", "requests").item(position).child("adminAccess")
            yield from _labelled(at, context)
            return


def check_status(claim: resourceclaim.ResourceClaim, old: resourceclaim.ResourceClaim, context: Context) -> Errors:
    """Yield errors of a new allocation with admin access, and of changes that the client may not make."""
    if _granted(old.status) is None:
        position = _granted(claim.status)
        if position is not None:
            at = _ALLOCATION.child("devices", "results").item(position).child("adminAccess")
            yield from _labelled(at, context)
    if context.authorizer is None or not context.gates.on(Gate.GRANULAR_STATUS_AUTHORIZATION):
        return
    yield from check_binding(claim.status, old.status, context)
    if context.gates.on(Gate.RESOURCE_CLAIM_DEVICE_STATUS) and claim.status.allocation is not None:
        yield from _device_status(claim, old.status, context.authorizer)


def _labelled(at: Path, context: Context) -> Errors:
    labels = context.namespace_labels
    if labels is not None and labels.get(ADMIN_ACCESS_LABEL) != "true":
        detail = f"admin access to devices requires the `{ADMIN_ACCESS_LABEL}: true` label on the containing namespace"
        yield fielderror.forbidden(at, detail)


def _granted(status: resourceclaim.ResourceClaimStatus) -> int | None:
    if status.allocation is not None:
        for position, result in enumerate(status.allocation.devices.results):
            if result.admin_access:
                return position
    return None


def check_binding(new: _StatusT, old: _StatusT, context: Context) -> Errors:
    """Yield an error if the client may not change the allocation or the reservations of a claim."""
    if context.authorizer is None or not context.gates.on(Gate.GRANULAR_STATUS_AUTHORIZATION):
        return
    if new.allocation == old.allocation and new.reserved_for == old.reserved_for:
        return
    verb = context.authorizer.verb
    refusal = context.authorizer.refusal(verb=verb, subresource="binding", namespace="", name="")
    if refusal is not None:
        detail = (
            "changing status.allocation or status.reservedFor requires "
            f'resource="resourceclaims/binding", verb="{verb}" permission: {refusal}'
        )
        yield fielderror.forbidden(_ALLOCATION, detail)


def _device_status(
    claim: resourceclaim.ResourceClaim, old: resourceclaim.ResourceClaimStatus, authorizer: Authorizer
) -> Errors:
    verbs = [f"arbitrary-node:{authorizer.verb}"]
    if authorizer.node_name and authorizer.node_name == node_of(claim.status.allocation):
        verbs.insert(0, f"associated-node:{authorizer.verb}")
    for driver in sorted(_drivers_with_changes(claim.status, old)):
        namespace = claim.metadata.namespace
        refusals = [
            authorizer.refusal(verb=verb, subresource="driver", namespace=namespace, name=driver) for verb in verbs
        ]
        if None not in refusals:
            detail = (
                'changing status.devices requires resource="resourceclaims/driver", '
                f'verb="[{" ".join(verbs)}]" permission: {refusals[0]}'
            )
            yield fielderror.forbidden(STATUS.child("devices"), detail)


def _drivers_with_changes(new: resourceclaim.ResourceClaimStatus, old: resourceclaim.ResourceClaimStatus) -> set[str]:
    before = {identity.share_of(device): device for device in old.devices}
    after = {identity.share_of(device): device for device in new.devices}
    return {share.driver for share in before | after if before.get(share) != after.get(share)}


def node_of(allocation: resourceclaim.AllocationResult | None) -> str:
    """Return the node that an allocation is for, if its selector names one."""
    if allocation is None or allocation.node_selector is None:
        return ""
    match allocation.node_selector.node_selector_terms:
        case (term,) if not term.match_expressions:
            match term.match_fields:
                case (field,) if (field.key, field.operator, len(field.values)) == ("metadata.name", "In", 1):
                    return field.values[0]
    return ""
