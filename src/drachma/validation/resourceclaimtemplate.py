"""Rules for ResourceClaimTemplate."""

from drachma.api import resourceclaimtemplate
from drachma.validation import deviceclaim, fielderror, metadata, rendering
from drachma.validation.context import Context
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC


def check(template: resourceclaimtemplate.ResourceClaimTemplate, context: Context) -> Errors:
    """What a template is for, and what its claims ask for."""
    yield from metadata.check_template(template.spec.metadata, SPEC.child("metadata"))
    yield from deviceclaim.check(template.spec.spec.devices, SPEC.child("spec", "devices"), context)


def check_update(
    template: resourceclaimtemplate.ResourceClaimTemplate,
    old: resourceclaimtemplate.ResourceClaimTemplate,
    context: Context,
) -> Errors:
    """A changed template: only its metadata may differ."""
    yield from metadata.check_name(template.metadata, metadata.dns_subdomain)
    yield from metadata.check_finalizer_names(template.metadata)
    yield from check(template, context)
    if template.spec != old.spec:
        yield fielderror.invalid(SPEC, rendering.internal(template.spec), metadata.IMMUTABLE)
