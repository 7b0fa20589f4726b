"""Rules for device taints, for tolerations of requests and results, and for DeviceTaintRule."""

from typing import Final

from drachma.api import devices, devicetaintrule
from drachma.validation import collection, conditions, fielderror, formats, limits, metadata, rendering
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
        yield from _selector(spec.device_selector, SPEC.child("deviceSelector"))
    yield from check_taint(spec.taint, SPEC.child("taint"), old=old_taint)


def _selector(selector: devicetaintrule.DeviceTaintSelector, at: Path) -> Errors:
    if selector.driver is not None:
        yield from formats.driver_name(selector.driver, at.child("driver"))
    if selector.pool is not None:
        yield from formats.pool_name(selector.pool, at.child("pool"))
    if selector.device is not None:
        yield from formats.short_name(selector.device, at.child("device"))


EFFECTS: Final = ("NoExecute", "NoSchedule", "None")
OPERATORS: Final = ("Equal", "Exists")


def check_taint(taint: devices.DeviceTaint, at: Path, *, old: devices.DeviceTaint | None = None) -> Errors:
    """A taint; an effect that an older server let in may stay."""
    yield from formats.label_key(taint.key, at.child("key"))
    if taint.value:
        yield from formats.label_value(taint.value, at.child("value"))
    if old is None or old.effect != taint.effect:
        if taint.effect:
            yield from _effect(taint.effect, at.child("effect"))
        else:
            yield from fielderror.covered([fielderror.required(at.child("effect"))])


def check_toleration(toleration: devices.DeviceToleration, at: Path) -> Errors:
    """A toleration; no key and no effect mean any."""
    if toleration.key:
        yield from fielderror.covered(formats.label_key(toleration.key, at.child("key")))
    match toleration.operator:
        case "Exists":
            if toleration.value:
                yield fielderror.invalid(at.child("value"), toleration.value, "must be empty for operator `Exists`")
        case "Equal":
            yield from formats.label_value(toleration.value, at.child("value"))
        case "":
            yield from fielderror.covered([fielderror.required(at.child("operator"))])
        case operator:
            error = fielderror.not_supported(at.child("operator"), rendering.named(operator), OPERATORS)
            yield from fielderror.covered([error])
    if toleration.effect:
        yield from _effect(toleration.effect, at.child("effect"))


def check_tolerations(tolerations: tuple[devices.DeviceToleration, ...], at: Path) -> Found:
    """Tolerations; upstream documents a limit of 16 and does not enforce it, so neither do we."""
    return collection.check_list(tolerations, check_toleration, at=at)


def _effect(effect: str, at: Path) -> Errors:
    if effect not in EFFECTS:
        yield from fielderror.covered([fielderror.not_supported(at, rendering.named(effect), EFFECTS)])
