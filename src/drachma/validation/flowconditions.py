"""Rules for what is said of flow schemas and priority levels: a type for every condition, and each once."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation import fielderror, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import STATUS

_CONDITIONS: Final = STATUS.child("conditions")


def check(conditions: Sequence[Mapping[str, Any]]) -> Errors:
    """The conditions of a status."""
    seen: set[str] = set()
    for position, condition in enumerate(conditions):
        kind, at = condition.get("type", ""), _CONDITIONS.item(position).child("type")
        if kind in seen:
            yield fielderror.duplicate(at, rendering.named(kind))
        seen.add(kind)
        if not kind:
            yield fielderror.required(at)
