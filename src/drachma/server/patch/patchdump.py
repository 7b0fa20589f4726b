"""Upstream's form of a patched document that it refuses: JSON whose objects are sorted where the patch applied.

Upstream's patch libraries parse only the parts they need. They write parsed parts with sorted keys, and the rest
unchanged.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def format_merged(document: Any, patch: Any) -> str:
    """Return the result of a merge patch as text."""
    return _text(_merge(document, patch))


def format_operated(document: Any, operations: Any) -> str:
    """Return the result of a JSON patch as text."""
    steps = operations if isinstance(operations, list) else ()
    paths = [step.get(member) for step in steps if isinstance(step, dict) for member in ("path", "from")]
    parents = {tuple(path.split("/")[1:-1]) for path in paths if isinstance(path, str)}
    opened = {parent[:length] for parent in parents for length in range(len(parent) + 1)}
    return _text(_sort_opened(document, opened | {()}, at=()))


def _text(document: Any) -> str:
    return msgspec.json.encode(document).decode().translate(_ESCAPES)


def _merge(document: Any, patch: Any) -> Any:
    if isinstance(document, list):
        return [_sort(item) for item in document]
    if not isinstance(document, dict) or not isinstance(patch, dict):
        return document
    return {key: _merge(value, patch[key]) if key in patch else value for key, value in _sort_items(document)}


def _sort(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sort(item) for key, item in _sort_items(value)}
    return [_sort(item) for item in value] if isinstance(value, list) else value


def _sort_opened(value: Any, opened: set[tuple[str, ...]], *, at: tuple[str, ...]) -> Any:
    if at not in opened:
        return value
    if isinstance(value, dict):
        return {key: _sort_opened(item, opened, at=(*at, _escape(key))) for key, item in _sort_items(value)}
    if isinstance(value, list):
        return [_sort_opened(item, opened, at=(*at, str(index))) for index, item in enumerate(value)]
    return value


def _sort_items(value: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    return sorted(value.items())


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
