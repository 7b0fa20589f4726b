"""Which rules apply to an object of v1alpha2 that is made, changed, or given another status."""

from typing import TypeVar

from msgspec import structs

from drachma.api import meta
from drachma.api.v1alpha2 import (
    parameters,
    resourceclaim,
    resourceclaimtemplate,
    resourceclass,
    resourceslice,
)
from drachma.validation import authorization
from drachma.validation.context import Context
from drachma.validation.fielderror import Errors
from drachma.validation.v1alpha2 import parameters as parameter_rules
from drachma.validation.v1alpha2 import resourceclaim as claim_rules
from drachma.validation.v1alpha2 import resourceclass as class_rules
from drachma.validation.v1alpha2 import resourceslice as slice_rules

_ObjectT = TypeVar("_ObjectT", bound=meta.Object)


def check(given: meta.Object, context: Context) -> Errors:
    """A new object."""
    match given:
        case resourceclass.ResourceClass():
            yield from class_rules.check(given)
        case resourceclaim.ResourceClaim():
            yield from claim_rules.check(given)
        case resourceclaimtemplate.ResourceClaimTemplate():
            yield from claim_rules.check_template(given)
        case parameters.ResourceClaimParameters():
            yield from parameter_rules.check_claim(given, gates=context.gates)
        case parameters.ResourceClassParameters():
            yield from parameter_rules.check_class(given, gates=context.gates)
        case resourceslice.NodeResourceSlice():
            yield from slice_rules.check_node_slice(given)
        case resourceslice.ResourceSlice():
            yield from slice_rules.check_slice(given)


def check_update(given: meta.Object, old: meta.Object, context: Context) -> Errors:
    """A changed object."""
    match given, old:
        case resourceclaim.ResourceClaim(), resourceclaim.ResourceClaim():
            yield from claim_rules.check_update(given, old)
        case resourceclaimtemplate.ResourceClaimTemplate(), resourceclaimtemplate.ResourceClaimTemplate():
            yield from claim_rules.check_template_update(given, old)
        case resourceslice.NodeResourceSlice(), resourceslice.NodeResourceSlice():
            yield from slice_rules.check_node_slice_update(given, old)
        case resourceslice.ResourceSlice(), resourceslice.ResourceSlice():
            yield from slice_rules.check_slice_update(given, old)
        case _:
            yield from check(given, context)


def check_status(given: meta.Object, old: meta.Object, context: Context) -> Errors:
    """An object with a changed status."""
    if isinstance(given, resourceclaim.ResourceClaim) and isinstance(old, resourceclaim.ResourceClaim):
        yield from authorization.check_binding(given.status, old.status, context)
        yield from claim_rules.check_status(given, old)


def with_status_of(given: _ObjectT, old: _ObjectT | None) -> _ObjectT:
    """An object whose own writes leave the status alone; a new one has none."""
    if not isinstance(given, resourceclaim.ResourceClaim):
        return given
    status = old.status if isinstance(old, resourceclaim.ResourceClaim) else resourceclaim.ABSENT_STATUS
    return structs.replace(given, status=status)


def with_spec_of(given: _ObjectT, old: _ObjectT) -> _ObjectT:
    """An object of which only the status is written."""
    if isinstance(given, resourceclaim.ResourceClaim) and isinstance(old, resourceclaim.ResourceClaim):
        return structs.replace(given, spec=old.spec)
    return given
