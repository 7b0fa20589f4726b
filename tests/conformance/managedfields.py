"""Managed fields in recordings: some were made without them, which must not keep the others from being compared."""

import itertools
from typing import Any

KEY = "managedFields"


def as_recorded(value: Any, recorded: Any) -> Any:
    """Ours without the managed fields that the recording lacks in the same place, and with all that it has."""
    if isinstance(value, dict):
        at = recorded if isinstance(recorded, dict) else {}
        return {key: as_recorded(item, at.get(key)) for key, item in value.items() if key != KEY or KEY in at}
    if isinstance(value, list):
        others = recorded[: len(value)] if isinstance(recorded, list) else []
        return [as_recorded(item, other) for item, other in itertools.zip_longest(value, others)]
    return value
