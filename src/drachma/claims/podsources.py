"""Pods of v1alpha2, in which an entry of ``resourceClaims`` has its reference in ``source``.

v1 has the same two fields without ``source``. Documents are plain, of any kind with pods or templates of pods.
"""

from __future__ import annotations

from typing import Any, Final

_CLAIMS: Final = "resourceClaims"
_SOURCE: Final = "source"
_FIELDS: Final = ("resourceClaimName", "resourceClaimTemplateName")


def lift_sources(document: Any) -> Any:
    """Return the document with the content of ``source`` one level up; the same document if there is none."""
    if isinstance(document, list):
        items = [lift_sources(each) for each in document]
        return document if all(new is old for new, old in zip(items, document, strict=True)) else items
    if not isinstance(document, dict):
        return document
    fields = {key: _entries(value) if key == _CLAIMS else lift_sources(value) for key, value in document.items()}
    return document if all(fields[key] is value for key, value in document.items()) else fields


def _entries(claims: Any) -> Any:
    if not isinstance(claims, list) or not any(isinstance(each, dict) and _SOURCE in each for each in claims):
        return claims
    return [_entry(each) for each in claims]


def _entry(entry: Any) -> Any:
    if not isinstance(entry, dict) or _SOURCE not in entry:
        return entry
    # A patch may delete the field, which is done by leaving it out.
    source = {} if entry[_SOURCE] is None else entry[_SOURCE]
    if not isinstance(source, dict):
        return entry
    fields = {key: value for key, value in entry.items() if key != _SOURCE}
    return {
        **fields,
        **{field: source[field] for field in _FIELDS if source.get(field) is not None and field not in fields},
    }
