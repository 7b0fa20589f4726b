"""Rules for DeviceTaintRule."""

from drachma.api import devices, devicetaintrule
from drachma.validation import conditions, fielderror, formats, limits, metadata, taints
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC, STATUS, Path


def check(rule: devicetaintrule.DeviceTaintRule) -> Errors:
    """What a new rule says."""
    yield from _spec(rule.spec, old_taint=None)


def check_update(rule: devicetaintrule.DeviceTaintRule, old: devicetaintrule.DeviceTaintRule) -> Errors:
    """A changed rule."""
    yield from metadata.check_finalizer_names(rule.metadata)
    yield from _spec(rule.spec, old_taint=old.spec.taint)


def check_status(rule: devicetaintrule.DeviceTaintRule, old: devicetaintrule.DeviceTaintRule) -> Errors:
    """A changed status."""
    yield from metadata.check_finalizer_names(rule.metadata)
    at = STATUS.child("conditions")
    yield from conditions.check(rule.status.conditions, at)
    if len(rule.status.conditions) > limits.CONDITIONS:
        yield fielderror.too_many(at, len(rule.status.conditions), limits.CONDITIONS)


def _spec(spec: devicetaintrule.DeviceTaintRuleSpec, *, old_taint: devices.DeviceTaint | None) -> Errors:
    if spec.device_selector is not None:
        yield from _selector(spec.device_selector, SPEC.child("deviceSelector"))
    yield from taints.check_taint(spec.taint, SPEC.child("taint"), old=old_taint)


def _selector(selector: devicetaintrule.DeviceTaintSelector, at: Path) -> Errors:
    if selector.driver is not None:
        yield from formats.driver_name(selector.driver, at.child("driver"))
    if selector.pool is not None:
        yield from formats.pool_name(selector.pool, at.child("pool"))
    if selector.device is not None:
        yield from formats.short_name(selector.device, at.child("device"))
