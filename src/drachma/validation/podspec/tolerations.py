"""Rules for the tolerations of pods, which are not those of device requests."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import fielderror, formats, rendering
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import Path
from drachma.values import names

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")

_OPERATORS: Final = ("Equal", "Exists")
_ORDERED_OPERATORS: Final = ("Equal", "Exists", "Lt", "Gt")


def check(tolerations: Sequence[Mapping[str, Any]], at: Path) -> Errors:
    """All tolerations; no key means any."""
    for position, toleration in enumerate(tolerations):
        yield from _toleration(toleration, at.item(position))


def check_effect(effect: str, at: Path) -> Found:
    """What a taint does."""
    return () if effect in EFFECTS else [fielderror.not_supported(at, rendering.named(effect), EFFECTS)]


def check_only_added(tolerations: Sequence[Mapping[str, Any]], old: Sequence[Mapping[str, Any]], *, at: Path) -> Errors:
    """An update: what was tolerated stays so, if perhaps for another time."""
    kept = [_identity(each) for each in tolerations]
    if any(_identity(each) not in kept for each in old):
        yield fielderror.forbidden(at, "existing toleration can not be modified except its tolerationSeconds")
    else:
        yield from check(tolerations, at)


def _toleration(toleration: Mapping[str, Any], at: Path) -> Errors:
    key, operator, value, effect = (toleration.get(field, "") for field in ("key", "operator", "value", "effect"))
    if key:
        yield from formats.label_key(key, at.child("key"))
    elif operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield fielderror.invalid(at.child("operator"), rendering.named(operator), detail)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield fielderror.invalid(at.child("effect"), rendering.named(effect), detail)
    match operator:
        case "" | "Equal":
            problems = names.label_value(value)
            if problems:
                yield fielderror.invalid(at.child("operator"), value, ";".join(problems))
        case "Exists":
            if value:
                detail = "value must be empty when `operator` is 'Exists'"
                yield fielderror.invalid(at.child("operator"), value, detail)
        case "Lt" | "Gt":
            # The feature gate TaintTolerationComparisonOperators is off by default.
            yield fielderror.not_supported(at.child("operator"), rendering.named(operator), _ORDERED_OPERATORS)
        case _:
            yield fielderror.not_supported(at.child("operator"), rendering.named(operator), _OPERATORS)
    if effect:
        yield from check_effect(effect, at.child("effect"))


def _identity(toleration: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(toleration.get(field, "") for field in ("key", "operator", "value", "effect"))
