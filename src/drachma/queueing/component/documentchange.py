"""What is different between two documents, as the merge patch that makes the second of the first."""

from collections.abc import Mapping
from typing import Any

Document = Mapping[str, Any]


def difference(before: Document, after: Document) -> dict[str, Any]:
    """Fields to set, None for those to take away; lists are replaced whole."""
    change: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            inner = difference(old, value)
            if inner:
                change[name] = inner
        elif name not in before or old != value:
            change[name] = value
    return change
