"""A write of a kind of ``resource.k8s.io``, as far as rules decide it: prepare the object, check it, list its errors.

The strategy of these kinds calls this between decoding (with defaults) and storing.
"""

import functools
from collections.abc import Mapping
from typing import Final, Generic, TypeVar

import msgspec
from msgspec import structs

from drachma.api import (
    conversion,
    deviceclass,
    devicetaintrule,
    meta,
    resourceclaim,
    resourceclaimtemplate,
    resourceslice,
    scheme,
)
from drachma.validation import declared, deviceclaim, fielderror, preparation
from drachma.validation import metadata as metadata_rules
from drachma.validation import resourceclaim as claim_rules
from drachma.validation import resourceslice as slice_rules
from drachma.validation import taints as taint_rules
from drachma.validation.context import Context
from drachma.validation.fielderror import FieldError, Found
from drachma.validation.kindrules import ObjectRules
from drachma.validation.v1alpha2 import rules as alpha_rules
from drachma.values import quotation

_ObjectT = TypeVar("_ObjectT", bound=meta.Object)

_RULES: Final[Mapping[type[meta.Object], ObjectRules]] = {
    deviceclass.DeviceClass: ObjectRules(create=deviceclaim.check_class, update=deviceclaim.check_class_update),
    devicetaintrule.DeviceTaintRule: ObjectRules(
        create=taint_rules.check_rule, update=taint_rules.check_rule_update, status=taint_rules.check_rule_status
    ),
    resourceclaim.ResourceClaim: ObjectRules(
        access=claim_rules.check_access,
        create=claim_rules.check,
        update=claim_rules.check_update,
        status=claim_rules.check_status,
    ),
    resourceclaimtemplate.ResourceClaimTemplate: ObjectRules(
        access=claim_rules.check_template_access,
        create=claim_rules.check_template,
        update=claim_rules.check_template_update,
    ),
    resourceslice.ResourceSlice: ObjectRules(create=slice_rules.check, update=slice_rules.check_update),
    **alpha_rules.RULES,
}


class Verdict(msgspec.Struct, Generic[_ObjectT], frozen=True):
    """The object as it may be stored if there are no errors, and the warnings for the client."""

    object: _ObjectT
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()


class Examination(msgspec.Struct, Generic[_ObjectT], frozen=True):
    """A new object as it may be stored, and its errors except those of its metadata.

    The errors are in upstream's order: of permissions, of hand-written rules, of rules declared on types.
    """

    object: _ObjectT
    unauthorized: Found
    handwritten: Found
    declared: Found


def create(value: _ObjectT, context: Context) -> Verdict[_ObjectT]:
    """Return the verdict on a new object, decoded and defaulted, its name generated."""
    examination = examine_new(value, context)
    return judge_new(examination, examination.object.metadata)


def examine_new(value: _ObjectT, context: Context) -> Examination[_ObjectT]:
    """Return the errors of a new object except those of its metadata, on which no other rule depends."""
    prepared = preparation.prepare_create(value, context)
    rules = _RULES[type(prepared)]
    return Examination(
        prepared,
        list(rules.access(prepared, context)),
        list(rules.create(prepared, context)),
        _check_declared(prepared, None, context),
    )


def judge_new(examination: Examination[_ObjectT], metadata: meta.ObjectMeta) -> Verdict[_ObjectT]:
    """Return the verdict on an examined object with this metadata."""
    prepared = examination.object
    if prepared.metadata is not metadata:
        prepared = structs.replace(prepared, metadata=preparation.fresh(metadata))
    errors = [*examination.unauthorized, *_check_metadata(prepared), *examination.handwritten]
    if not errors:
        # The only rule for every kind that the others do not cover.
        errors += metadata_rules.check_name(prepared.metadata, metadata_rules.path_segment)
    return _verdict(prepared, errors, examination.declared)


def update(value: _ObjectT, old: _ObjectT, context: Context) -> Verdict[_ObjectT]:
    """Return the verdict on a changed object, decoded and defaulted; ``old`` is the stored one."""
    prepared = preparation.prepare_update(value, old, context)
    return _judge(prepared, old, list(_RULES[type(prepared)].update(prepared, old, context)), context)


def update_status(value: _ObjectT, old: _ObjectT, context: Context) -> Verdict[_ObjectT]:
    """Return the verdict on an object with a changed status."""
    prepared = preparation.prepare_status_update(value, old, context)
    return _judge(prepared, old, list(_RULES[type(prepared)].status(prepared, old, context)), context)


def restate(value: _ObjectT, old: _ObjectT, context: Context) -> Verdict[_ObjectT]:
    """Return the verdict on an object that differs in its status only, so that its metadata need not be checked."""
    prepared = preparation.prepare_status_update(value, old, context)
    errors = list(_RULES[type(prepared)].status(prepared, old, context))
    return Verdict(prepared, fielderror.merge(errors, _check_declared(prepared, old, context)), ())


def allows_unconditional_update(model: type[meta.Object], api_version: str) -> bool:
    """Return True if an update may lack a resourceVersion; a DeviceTaintRule of v1 may not."""
    return model is not devicetaintrule.DeviceTaintRule or not api_version.endswith("/v1")


def _judge(prepared: _ObjectT, old: _ObjectT, errors: Found, context: Context) -> Verdict[_ObjectT]:
    """Return the verdict on a change; errors of metadata come before those of the kind's own rules."""
    namespaced = scheme.of(type(prepared)).namespaced
    rules = metadata_rules
    errors = [
        *rules.check(prepared.metadata, namespaced=namespaced, name_rule=rules.path_segment),
        *rules.check_update(prepared.metadata, old.metadata),
        *errors,
    ]
    return _verdict(prepared, errors, _check_declared(prepared, old, context))


def _verdict(prepared: _ObjectT, handwritten: Found, declared_errors: Found) -> Verdict[_ObjectT]:
    errors = fielderror.merge(handwritten, declared_errors)
    return Verdict(prepared, errors, () if errors else _warnings(prepared))


@functools.lru_cache(maxsize=64)
def _version_to_check(model: type[meta.Object], api_version: str | None) -> tuple[str, str]:
    """Return the version that a client wrote, and the API version to convert to if its shape is not the model's."""
    kind = scheme.of(model)
    client_version = api_version or kind.api_versions[0]
    scheme.find(client_version, kind.name)
    return client_version.rpartition("/")[2], "" if kind.shape(client_version) is model else client_version


def _check_declared(value: meta.Object, old: meta.Object | None, context: Context) -> Found:
    """Return the errors of the rules on the types of the version that the client wrote; v1alpha2 has no such rules."""
    version, target = _version_to_check(type(value), context.api_version)
    if version == "v1alpha2":
        return ()
    new, before = value, old
    if target:
        new = conversion.to_wire(value, target)
        before = conversion.to_wire(old, target) if old is not None else None
    facts = declared.Version(version == "v1", context.gates)
    return declared.check(scheme.of(type(value)).name, new, before, facts)


def _check_metadata(value: meta.Object) -> Found:
    """Return the errors of the metadata of a new object by the rules of its kind."""
    rules, own, namespaced = metadata_rules, value.metadata, scheme.of(type(value)).namespaced
    if isinstance(value, deviceclass.DeviceClass):
        rule, origin = rules.declared_dns_subdomain, deviceclaim.CLASS_NAME_ORIGIN
        errors = rules.check(own, namespaced=namespaced, name_rule=rule, name_origin=origin)
    else:
        errors = rules.check(own, namespaced=namespaced, name_rule=rules.dns_subdomain)
    return [*errors, *rules.check_finalizer_names(own)]


def _warnings(value: meta.Object) -> tuple[str, ...]:
    if not isinstance(value, resourceslice.ResourceSlice) or value.spec.driver == value.spec.driver.lower():
        return ()
    display = quotation.quote(value.spec.driver)
    return (f"spec.driver: driver names should be lowercase; {display} contains uppercase characters",)
