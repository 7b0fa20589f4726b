"""Rules for lists of conditions in a status."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from drachma.api import meta
from drachma.validation import constraints, rulenotation, typerules
from drachma.validation.fielderror import Found
from drachma.validation.path import Path

_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_reason: Final = constraints.matches(
    re.compile(_REASON),
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  "
    "or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is "
    f"'{_REASON}')",
)


def check(conditions: Sequence[meta.Condition], at: Path) -> Found:
    """Return the errors of conditions; limits on their number are the caller's."""
    return check_documents([msgspec.to_builtins(condition) for condition in conditions], at)


_TYPES: Final = rulenotation.load("conditions", globals())
check_documents: Final = typerules.Each(_TYPES["Condition"], unique=".type", is_repetition_first=True)
"""Returns the errors of conditions in the form of documents."""
