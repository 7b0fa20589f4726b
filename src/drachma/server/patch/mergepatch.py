"""JSON merge patch (RFC 7386): a document that says what to set, and with null what to remove.

Public: ``apply(document, patch) -> document``.
"""

from typing import Any

import msgspec

from drachma.server import documents

_encode = msgspec.json.Encoder().encode


def apply(document: Any, patch: Any) -> Any:
    """The document with the patch merged into it. Neither is changed; the outcome shares parts with both."""
    if not isinstance(patch, dict):
        return patch if isinstance(document, dict) else _without_nulls(patch)
    if not isinstance(document, dict):
        return _without_nulls(patch)
    merged = dict(document)
    for key, value in patch.items():
        current = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif not isinstance(value, dict | list):
            merged[key] = value
        elif current is None:
            merged[key] = _without_nulls(value)
        else:
            merged[key] = apply(current, value)
    return merged


def _without_nulls(value: Any) -> Any:
    """The same as the documents' one, which copies; most patches have no nulls in what they add."""
    return documents.without_nulls(value) if b"null" in _encode(value) else value
