"""Rules for device taints, for tolerations of requests and results, and for DeviceTaintRule."""

from typing import Final

from drachma.api import devices, devicetaintrule
from drachma.validation import conditions, fielderror, limits, metadata, rulenotation, typerules
from drachma.validation.context import Context
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import SPEC, STATUS, Path


def check_rule(rule: devicetaintrule.DeviceTaintRule, context: Context) -> Errors:
    """Yield the errors of a new rule."""
    yield from _spec(rule.spec, old_taint=None)


def check_rule_update(
    rule: devicetaintrule.DeviceTaintRule, old: devicetaintrule.DeviceTaintRule, context: Context
) -> Errors:
    """Yield the errors of a changed rule."""
    yield from metadata.check_finalizer_names(rule.metadata)
    yield from _spec(rule.spec, old_taint=old.spec.taint)


def check_rule_status(
    rule: devicetaintrule.DeviceTaintRule, old: devicetaintrule.DeviceTaintRule, context: Context
) -> Errors:
    """Yield the errors of a changed status."""
    yield from metadata.check_finalizer_names(rule.metadata)
    at = STATUS.child("conditions")
    yield from conditions.check(rule.status.conditions, at)
    if len(rule.status.conditions) > limits.CONDITIONS:
        yield fielderror.too_many(at, len(rule.status.conditions), limits.CONDITIONS)


def _spec(spec: devicetaintrule.DeviceTaintRuleSpec, *, old_taint: devices.DeviceTaint | None) -> Errors:
    if spec.device_selector is not None:
        yield from _TYPES["DeviceTaintSelector"](spec.device_selector, SPEC.child("deviceSelector"))
    yield from _TYPES["DeviceTaint"](spec.taint, SPEC.child("taint"), old_taint)


def _keeps_effect(taint: devices.DeviceTaint, old: devices.DeviceTaint | None) -> bool:
    return old is not None and old.effect == taint.effect


def check_taint(taint: devices.DeviceTaint, at: Path) -> Found:
    """Return the errors of a taint of a device."""
    return _TYPES["DeviceTaint"](taint, at)


_TYPES: Final = rulenotation.load_structs("taints", globals())
check_tolerations: Final = typerules.Each(_TYPES["DeviceToleration"])
"""Returns the errors of tolerations; upstream documents a limit of 16 and does not enforce it, so neither do we."""
