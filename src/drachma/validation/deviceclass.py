"""Rules for DeviceClass."""

from typing import Final

from drachma.api import deviceclass
from drachma.validation import deviceclaim, fielderror, metadata, nodeallocatable
from drachma.validation.context import Context
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC
from drachma.values import names

NAME_ORIGIN: Final = "format=k8s-long-name"
"""Origin of the declared rule for names."""


def check(class_: deviceclass.DeviceClass, context: Context) -> Errors:
    """Yield the errors of a new class."""
    yield from _spec(class_.spec, old=None, context=context)


def check_update(class_: deviceclass.DeviceClass, old: deviceclass.DeviceClass, context: Context) -> Errors:
    """Yield the errors of a changed class; unchanged selectors and configuration may have errors."""
    yield from metadata.check_name(class_.metadata, metadata.declared_dns_subdomain, name_origin=NAME_ORIGIN)
    yield from metadata.check_finalizer_names(class_.metadata)
    yield from _spec(class_.spec, old=old.spec, context=context)


def _spec(spec: deviceclass.DeviceClassSpec, *, old: deviceclass.DeviceClassSpec | None, context: Context) -> Errors:
    selectors = deviceclaim.Facts(context, is_stored=old is not None and old.selectors == spec.selectors)
    yield from deviceclaim.TYPES["ClassSelectors"](spec, SPEC, selectors)
    config = deviceclaim.Facts(context, is_stored=old is not None and old.config == spec.config)
    yield from deviceclaim.TYPES["ClassConfiguration"](spec, SPEC, config)
    own_policies = spec.node_allocatable_resource_accounting_policies
    if own_policies and (old is None or old.node_allocatable_resource_accounting_policies != own_policies):
        yield from nodeallocatable.check_policies(own_policies, SPEC.child("nodeAllocatableResourceAccountingPolicies"))
    name = spec.extended_resource_name
    if name is not None and names.extended_resource_name(name):
        at, detail = SPEC.child("extendedResourceName"), "must be a valid extended resource name"
        error = fielderror.invalid(at, name, detail, origin="format=k8s-extended-resource-name")
        yield from fielderror.covered([error])
