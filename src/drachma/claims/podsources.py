"""Pods of the time of v1alpha2, in which an entry of ``resourceClaims`` says in ``source`` what it refers to.

v1 has the same two fields without ``source``. Documents are plain, of any kind that has pods or templates of pods.
"""

from __future__ import annotations

from typing import Any, Final

_CLAIMS: Final = "resourceClaims"
_SOURCE: Final = "source"
_FIELDS: Final = ("resourceClaimName", "resourceClaimTemplateName")


def lifted(document: Any) -> Any:
    """The document with what ``source`` says one level up; the very same document where there is none."""
    if isinstance(document, list):
        items = [lifted(each) for each in document]
        return document if all(new is old for new, old in zip(items, document, strict=True)) else items
    if not isinstance(document, dict):
        return document
    fields = {key: _entries(value) if key == _CLAIMS else lifted(value) for key, value in document.items()}
    return document if all(fields[key] is value for key, value in document.items()) else fields


def _entries(claims: Any) -> Any:
    if not isinstance(claims, list) or not any(isinstance(each, dict) and _SOURCE in each for each in claims):
        return claims
    return [_entry(each) for each in claims]


def _entry(entry: Any) -> Any:
    if not isinstance(entry, dict) or _SOURCE not in entry:
        return entry
    # A patch may say that it is to go, which it has.
    source = {} if entry[_SOURCE] is None else entry[_SOURCE]
    if not isinstance(source, dict):
        return entry
    rest = {key: value for key, value in entry.items() if key != _SOURCE}
    return {
        **rest,
        **{field: source[field] for field in _FIELDS if source.get(field) is not None and field not in rest},
    }
