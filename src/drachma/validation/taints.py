"""Rules for device taints and for the tolerations of requests and results."""

from typing import Final

from drachma.api import devices
from drachma.validation import collection, fielderror, formats, rendering
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import Path

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
