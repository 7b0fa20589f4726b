"""A write of a kind of ``resource.k8s.io``, as far as rules decide it: prepare the object, check it, say what is wrong.

The strategy of these kinds calls this between decoding (with defaults) and storing.
"""

import functools
from typing import Generic, NamedTuple, TypeVar

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
from drachma.api import gates as feature
from drachma.validation import (
    authorization,
    declared,
    declaredrules,
    fielderror,
    preparation,
)
from drachma.validation import deviceclass as class_rules
from drachma.validation import devicetaintrule as taint_rules
from drachma.validation import metadata as metadata_rules
from drachma.validation import resourceclaim as claim_rules
from drachma.validation import resourceclaimtemplate as template_rules
from drachma.validation import resourceslice as slice_rules
from drachma.validation.context import Context
from drachma.validation.fielderror import Errors, FieldError, Found
from drachma.validation.path import ROOT
from drachma.validation.v1alpha2 import rules as alpha_rules
from drachma.values import quotation

_ObjectT = TypeVar("_ObjectT", bound=meta.Object)


class Verdict(msgspec.Struct, Generic[_ObjectT], frozen=True):
    """The object as it may be stored if there are no errors, and what to tell the client."""

    object: _ObjectT
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()


class Examination(msgspec.Struct, Generic[_ObjectT], frozen=True):
    """A new object as it may be stored, and what is wrong with it beside its metadata.

    In upstream's order: what its writer may not ask for, what rules find, what rules that are declared on types find.
    """

    object: _ObjectT
    unauthorized: Found
    written: Found
    declared: Found


def create(given: _ObjectT, context: Context) -> Verdict[_ObjectT]:
    """A new object, decoded and defaulted, its name generated."""
    examination = examine_new(given, context)
    return judge_new(examination, examination.object.metadata)


def examine_new(given: _ObjectT, context: Context) -> Examination[_ObjectT]:
    """All about a new object but its metadata, which claims and templates are not judged by otherwise."""
    prepared = preparation.for_create(given, context)
    return Examination(
        prepared,
        list(_check_access(prepared, context)),
        list(_check(prepared, context)),
        _declared(prepared, None, context),
    )


def judge_new(examination: Examination[_ObjectT], metadata: meta.ObjectMeta) -> Verdict[_ObjectT]:
    """The verdict on a new object: one that was examined, with this metadata."""
    prepared = examination.object
    if prepared.metadata is not metadata:
        prepared = structs.replace(prepared, metadata=preparation.fresh(metadata))
    written = [*examination.unauthorized, *_check_metadata(prepared), *examination.written]
    if not written:
        # Nothing else is left of what holds for every kind.
        written += metadata_rules.check_name(prepared.metadata, metadata_rules.path_segment)
    errors = fielderror.merge(written, examination.declared)
    return Verdict(prepared, errors, () if errors else _warnings(prepared))


def update(given: _ObjectT, old: _ObjectT, context: Context) -> Verdict[_ObjectT]:
    """A changed object, decoded and defaulted; ``old`` is what is stored."""
    prepared = preparation.for_update(given, old, context)
    return _judge(prepared, old, list(_check_update(prepared, old, context)), context)


def update_status(given: _ObjectT, old: _ObjectT, context: Context) -> Verdict[_ObjectT]:
    """An object with a changed status."""
    prepared = preparation.for_status_update(given, old, context)
    return _judge(prepared, old, list(_check_status(prepared, old, context)), context)


def restate(given: _ObjectT, old: _ObjectT, context: Context) -> Verdict[_ObjectT]:
    """The same for one of which nothing but the status differs: its metadata was judged when it was written."""
    prepared = preparation.for_status_update(given, old, context)
    written = list(_check_status(prepared, old, context))
    return Verdict(prepared, fielderror.merge(written, _declared(prepared, old, context)), ())


def allows_unconditional_update(model: type[meta.Object], api_version: str) -> bool:
    """Whether an update may come without a resourceVersion; DeviceTaintRule wants one since v1."""
    return model is not devicetaintrule.DeviceTaintRule or not api_version.endswith("/v1")


def _judge(prepared: _ObjectT, old: _ObjectT, written: Found, context: Context) -> Verdict[_ObjectT]:
    """The verdict on a change; what holds for every kind comes before what its own rules found."""
    namespaced = scheme.of(type(prepared)).namespaced
    rules = metadata_rules
    written = [
        *rules.check(prepared.metadata, namespaced=namespaced, name_rule=rules.path_segment),
        *rules.check_update(prepared.metadata, old.metadata),
        *written,
    ]
    errors = fielderror.merge(written, _declared(prepared, old, context))
    return Verdict(prepared, errors, () if errors else _warnings(prepared))


class _Declared(NamedTuple):
    """The declared rules of a kind, and the version in which it must be written for them, if not as in memory."""

    rules: declared.TypeRules
    converted_to: str


@functools.lru_cache(maxsize=64)
def _find_declared(model: type[meta.Object], api_version: str | None, gates: feature.Gates) -> _Declared:
    kind = scheme.of(model)
    version = api_version or kind.api_versions[0]
    scheme.find(version, kind.name)
    rules = declaredrules.find(kind.name, version.rpartition("/")[2], gates=gates)
    return _Declared(rules, "" if kind.shape(version) is model else version)


def _declared(given: meta.Object, old: meta.Object | None, context: Context) -> Found:
    """The rules on the types of the version that the client wrote."""
    rules, version = _find_declared(type(given), context.api_version, context.gates)
    new, before = given, old
    if version:
        new = conversion.to_wire(given, version)
        before = conversion.to_wire(old, version) if old is not None else None
    return rules(declared.Values(new, before, old is not None), ROOT)


def _check_metadata(given: meta.Object) -> Found:
    """What a kind wants of the metadata of a new object."""
    rules, own, namespaced = metadata_rules, given.metadata, scheme.of(type(given)).namespaced
    if isinstance(given, deviceclass.DeviceClass):
        rule, origin = rules.declared_dns_subdomain, class_rules.NAME_ORIGIN
        found = rules.check(own, namespaced=namespaced, name_rule=rule, name_origin=origin)
    else:
        found = rules.check(own, namespaced=namespaced, name_rule=rules.dns_subdomain)
    return [*found, *rules.check_finalizer_names(own)]


def _check_access(given: meta.Object, context: Context) -> Errors:
    match given:
        case resourceclaim.ResourceClaim():
            yield from authorization.check_admin_access(given.spec.devices, context)
        case resourceclaimtemplate.ResourceClaimTemplate():
            yield from authorization.check_admin_access(given.spec.spec.devices, context)


def _check(given: meta.Object, context: Context) -> Errors:
    match given:
        case deviceclass.DeviceClass():
            yield from class_rules.check(given, context)
        case resourceclaim.ResourceClaim():
            yield from claim_rules.check(given, context)
        case resourceclaimtemplate.ResourceClaimTemplate():
            yield from template_rules.check(given, context)
        case resourceslice.ResourceSlice():
            yield from slice_rules.check(given, context)
        case devicetaintrule.DeviceTaintRule():
            yield from taint_rules.check(given)
        case _:
            yield from alpha_rules.check(given, context)


def _check_update(given: meta.Object, old: meta.Object, context: Context) -> Errors:
    match given, old:
        case deviceclass.DeviceClass(), deviceclass.DeviceClass():
            yield from class_rules.check_update(given, old, context)
        case resourceclaim.ResourceClaim(), resourceclaim.ResourceClaim():
            yield from claim_rules.check_update(given, old)
        case resourceclaimtemplate.ResourceClaimTemplate(), resourceclaimtemplate.ResourceClaimTemplate():
            yield from template_rules.check_update(given, old, context)
        case resourceslice.ResourceSlice(), resourceslice.ResourceSlice():
            yield from slice_rules.check_update(given, old, context)
        case devicetaintrule.DeviceTaintRule(), devicetaintrule.DeviceTaintRule():
            yield from taint_rules.check_update(given, old)
        case _:
            yield from alpha_rules.check_update(given, old, context)


def _check_status(given: meta.Object, old: meta.Object, context: Context) -> Errors:
    match given, old:
        case resourceclaim.ResourceClaim(), resourceclaim.ResourceClaim():
            yield from authorization.check_status(given, old, context)
            yield from claim_rules.check_status(given, old, context)
        case devicetaintrule.DeviceTaintRule(), devicetaintrule.DeviceTaintRule():
            yield from taint_rules.check_status(given, old)
        case _:
            yield from alpha_rules.check_status(given, old, context)


def _warnings(given: meta.Object) -> tuple[str, ...]:
    if not isinstance(given, resourceslice.ResourceSlice) or given.spec.driver == given.spec.driver.lower():
        return ()
    shown = quotation.quote(given.spec.driver)
    return (f"spec.driver: driver names should be lowercase; {shown} contains uppercase characters",)
