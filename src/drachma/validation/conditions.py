"""Rules for lists of conditions in a status."""

import re
from collections.abc import Sequence
from typing import Final

from drachma.api import meta
from drachma.validation import fielderror, formats, limits, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.values import names

_STATUSES: Final = ("False", "True", "Unknown")
_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_RULE: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  "
    "or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
    f"'{_REASON}')"
)


def check(conditions: Sequence[meta.Condition], at: Path) -> Errors:
    """Each condition well formed, and one of each type. How many there may be is the caller's rule."""
    seen = set()
    for position, condition in enumerate(conditions):
        if condition.type in seen:
            yield fielderror.duplicate(at.item(position), condition.type)
        seen.add(condition.type)
        yield from _condition(condition, at.item(position))


def _condition(condition: meta.Condition, at: Path) -> Errors:
    if condition.type:
        yield from formats.label_key(condition.type, at.child("type"))
    else:
        yield fielderror.required(at.child("type"), "is required")
    if not condition.status:
        yield fielderror.required(at.child("status"))
    elif condition.status not in _STATUSES:
        yield fielderror.not_supported(at.child("status"), rendering.named(condition.status), _STATUSES)
    if condition.observed_generation < 0:
        detail = "must be greater than or equal to zero"
        yield fielderror.invalid(at.child("observedGeneration"), condition.observed_generation, detail)
    if condition.last_transition_time is None:
        yield fielderror.required(at.child("lastTransitionTime"))
    yield from _reason(condition.reason, at.child("reason"))
    if names.byte_length(condition.message) > limits.CONDITION_MESSAGE_BYTES:
        yield fielderror.too_long(at.child("message"), limits.CONDITION_MESSAGE_BYTES)


def _reason(reason: str, at: Path) -> Errors:
    if not reason:
        yield fielderror.required(at)
        return
    if not re.fullmatch(_REASON, reason):
        yield fielderror.invalid(at, reason, _REASON_RULE)
    if names.byte_length(reason) > limits.CONDITION_REASON_BYTES:
        yield fielderror.too_long(at, limits.CONDITION_REASON_BYTES)
