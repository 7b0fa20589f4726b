"""A write of a kind of ``resource.k8s.io``, as far as rules decide it: prepare the object, check it, say what is wrong.

The strategy of these kinds calls this between decoding (with defaults) and storing.
"""

import functools
from typing import Generic, NamedTuple, TypeVar

import msgspec

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
    metadata,
    preparation,
)
from drachma.validation import deviceclass as class_rules
from drachma.validation import devicetaintrule as taint_rules
from drachma.validation import resourceclaim as claim_rules
from drachma.validation import resourceclaimtemplate as template_rules
from drachma.validation import resourceslice as slice_rules
from drachma.validation.context import Context
from drachma.validation.fielderror import Errors, FieldError, Found
from drachma.validation.path import ROOT
from drachma.values import quotation

_ObjectT = TypeVar("_ObjectT", bound=meta.Object)


class Verdict(msgspec.Struct, Generic[_ObjectT], frozen=True):
    """The object as it may be stored if there are no errors, and what to tell the client."""

    object: _ObjectT
    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()


def create(given: _ObjectT, context: Context) -> Verdict[_ObjectT]:
    """A new object, decoded and defaulted, its name generated."""
    prepared = preparation.for_create(given, context)
    written = list(_check(prepared, context))
    if not written:
        written = list(_common(prepared))
    return _verdict(prepared, written, None, context)


def update(given: _ObjectT, old: _ObjectT, context: Context) -> Verdict[_ObjectT]:
    """A changed object, decoded and defaulted; ``old`` is what is stored."""
    prepared = preparation.for_update(given, old, context)
    written = [*_common_update(prepared, old), *_check_update(prepared, old, context)]
    return _verdict(prepared, written, old, context)


def update_status(given: _ObjectT, old: _ObjectT, context: Context) -> Verdict[_ObjectT]:
    """An object with a changed status."""
    prepared = preparation.for_status_update(given, old, context)
    written = [*_common_update(prepared, old), *_check_status(prepared, old, context)]
    return _verdict(prepared, written, old, context)


def allows_unconditional_update(model: type[meta.Object], api_version: str) -> bool:
    """Whether an update may come without a resourceVersion; DeviceTaintRule wants one since v1."""
    return model is not devicetaintrule.DeviceTaintRule or not api_version.endswith("/v1")


def _verdict(
    prepared: _ObjectT, written: list[FieldError], old: _ObjectT | None, context: Context
) -> Verdict[_ObjectT]:
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


def _common(given: meta.Object) -> Found:
    """What holds for every kind."""
    namespaced = scheme.of(type(given)).namespaced
    return metadata.check(given.metadata, namespaced=namespaced, name_rule=metadata.path_segment)


def _common_update(given: meta.Object, old: meta.Object) -> Found:
    return [*_common(given), *metadata.check_update(given.metadata, old.metadata)]


def _check(given: meta.Object, context: Context) -> Errors:
    match given:
        case deviceclass.DeviceClass():
            yield from class_rules.check(given, context)
        case resourceclaim.ResourceClaim():
            yield from authorization.check_admin_access(given.spec.devices, context)
            yield from claim_rules.check(given, context)
        case resourceclaimtemplate.ResourceClaimTemplate():
            yield from authorization.check_admin_access(given.spec.spec.devices, context)
            yield from template_rules.check(given, context)
        case resourceslice.ResourceSlice():
            yield from slice_rules.check(given, context)
        case devicetaintrule.DeviceTaintRule():
            yield from taint_rules.check(given)


def _check_update(given: meta.Object, old: meta.Object, context: Context) -> Errors:
    match given, old:
        case deviceclass.DeviceClass(), deviceclass.DeviceClass():
            yield from class_rules.check_update(given, old, context)
        case resourceclaim.ResourceClaim(), resourceclaim.ResourceClaim():
            yield from claim_rules.check_update(given, old)
        case resourceclaimtemplate.ResourceClaimTemplate(), resourceclaimtemplate.ResourceClaimTemplate():
            yield from template_rules.check(given, context)
            yield from template_rules.check_update(given, old)
        case resourceslice.ResourceSlice(), resourceslice.ResourceSlice():
            yield from slice_rules.check_update(given, old, context)
        case devicetaintrule.DeviceTaintRule(), devicetaintrule.DeviceTaintRule():
            yield from taint_rules.check_update(given, old)


def _check_status(given: meta.Object, old: meta.Object, context: Context) -> Errors:
    match given, old:
        case resourceclaim.ResourceClaim(), resourceclaim.ResourceClaim():
            yield from authorization.check_status(given, old, context)
            yield from claim_rules.check_status(given, old, context)
        case devicetaintrule.DeviceTaintRule(), devicetaintrule.DeviceTaintRule():
            yield from taint_rules.check_status(given, old)


def _warnings(given: meta.Object) -> tuple[str, ...]:
    if not isinstance(given, resourceslice.ResourceSlice) or given.spec.driver == given.spec.driver.lower():
        return ()
    shown = quotation.quote(given.spec.driver)
    return (f"spec.driver: driver names should be lowercase; {shown} contains uppercase characters",)
