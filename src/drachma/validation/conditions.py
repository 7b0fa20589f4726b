"""Rules for lists of conditions in a status."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma.api import meta
from drachma.validation import constraints, fielderror, limits, rulenotation
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import Path
from drachma.values import names

_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_is_reason: Final = constraints.matches(
    re.compile(_REASON),
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  "
    "or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
    f"'{_REASON}')",
)


def check(conditions: Sequence[meta.Condition], at: Path) -> Errors:
    """Yield the errors of conditions; limits on their number are the caller's."""
    return check_documents([msgspec.to_builtins(condition) for condition in conditions], at)


def check_documents(conditions: Sequence[Mapping[str, Any]], at: Path) -> Errors:
    """Yield the errors of conditions in the form of documents."""
    previous = set()
    for position, condition in enumerate(conditions):
        kind = condition.get("type", "")
        if kind in previous:
            yield fielderror.duplicate(at.item(position), kind)
        previous.add(kind)
        yield from _TYPES["Condition"](condition, at.item(position))


def _reason(reason: str, at: Path) -> Found:
    errors = _is_reason(reason, at)
    if names.byte_length(reason) > limits.CONDITION_REASON_BYTES:
        return [*errors, fielderror.too_long(at, limits.CONDITION_REASON_BYTES)]
    return errors


def _message(message: str, at: Path) -> Errors:
    if names.byte_length(message) > limits.CONDITION_MESSAGE_BYTES:
        yield fielderror.too_long(at, limits.CONDITION_MESSAGE_BYTES)


_TYPES: Final = rulenotation.load("conditions", globals())
