"""JSON merge patch (RFC 7386): a document that says what to set, and with null what to remove.

Public: ``apply(document, patch) -> document``.
"""

from typing import Any

from drachma.server import documents


def apply(document: Any, patch: Any) -> Any:
    """The document with the patch merged into it. Neither is changed; the outcome shares parts with both."""
    if not isinstance(patch, dict):
        return documents.without_nulls(patch) if not isinstance(document, dict) else patch
    if not isinstance(document, dict):
        return documents.without_nulls(patch)
    merged = dict(document)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif merged.get(key) is None:
            merged[key] = documents.without_nulls(value)
        else:
            merged[key] = apply(merged[key], value)
    return merged
