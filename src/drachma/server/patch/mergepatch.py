"""JSON merge patch (RFC 7386): sets the values of a document, and removes those that are null."""

from typing import Any

import msgspec

from drachma.server import documents

_encode = msgspec.json.Encoder().encode


def apply(document: Any, patch: Any) -> Any:
    """Return the document with the patch merged into it. Neither is changed; the result shares parts with both."""
    if not isinstance(patch, dict):
        return patch if isinstance(document, dict) else _drop_nulls(patch)
    if not isinstance(document, dict):
        return _drop_nulls(patch)
    merged = dict(document)
    for key, value in patch.items():
        current = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif not isinstance(value, dict | list):
            merged[key] = value
        elif current is None:
            merged[key] = _drop_nulls(value)
        else:
            merged[key] = apply(current, value)
    return merged


def _drop_nulls(value: Any) -> Any:
    """Return a value without nulls. It copies only if there are any, unlike ``documents.without_nulls``."""
    return documents.without_nulls(value) if b"null" in _encode(value) else value
