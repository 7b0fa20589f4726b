"""The rules of the kinds of v1alpha2."""

from collections.abc import Mapping
from typing import Final

from drachma.api import meta
from drachma.api.v1alpha2 import parameters, resourceclaim, resourceclaimtemplate, resourceclass, resourceslice
from drachma.validation import authorization
from drachma.validation.context import Context
from drachma.validation.fielderror import Errors
from drachma.validation.kindrules import Check, ObjectRules
from drachma.validation.v1alpha2 import parameters as parameter_rules
from drachma.validation.v1alpha2 import resourceclaim as claim_rules
from drachma.validation.v1alpha2 import resourceslice as slice_rules


def _rules_for_every_write(check: Check) -> ObjectRules:
    return ObjectRules(create=check, update=lambda value, old, context: check(value, context))


def _check_status(claim: resourceclaim.ResourceClaim, old: resourceclaim.ResourceClaim, context: Context) -> Errors:
    yield from authorization.check_binding(claim.status, old.status, context)
    yield from claim_rules.check_status(claim, old)


RULES: Final[Mapping[type[meta.Object], ObjectRules]] = {
    resourceclass.ResourceClass: _rules_for_every_write(lambda value, context: claim_rules.check_resource_class(value)),
    resourceclaim.ResourceClaim: ObjectRules(
        create=claim_rules.check, update=claim_rules.check_update, status=_check_status
    ),
    resourceclaimtemplate.ResourceClaimTemplate: ObjectRules(
        create=claim_rules.check_template, update=claim_rules.check_template_update
    ),
    parameters.ResourceClaimParameters: _rules_for_every_write(parameter_rules.check_claim),
    parameters.ResourceClassParameters: _rules_for_every_write(parameter_rules.check_class),
    resourceslice.NodeResourceSlice: ObjectRules(
        create=slice_rules.check_node_slice, update=slice_rules.check_node_slice_update
    ),
    resourceslice.ResourceSlice: ObjectRules(create=slice_rules.check_slice, update=slice_rules.check_slice_update),
}
