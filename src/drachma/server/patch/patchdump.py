"""How upstream shows a patched document that it refuses: as JSON whose objects are sorted where the patch went.

Its patch libraries parse only what they have to; what they have parsed they write with its keys in order, and the rest
as it was. Called where a patch makes something that is not an object of its kind.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def after_merge(document: Any, patch: Any) -> str:
    """The outcome of a merge patch."""
    return _text(_merged(document, patch))


def after_operations(document: Any, operations: Any) -> str:
    """The outcome of a JSON patch."""
    steps = operations if isinstance(operations, list) else ()
    paths = [step.get(member) for step in steps if isinstance(step, dict) for member in ("path", "from")]
    parents = {tuple(path.split("/")[1:-1]) for path in paths if isinstance(path, str)}
    opened = {parent[:length] for parent in parents for length in range(len(parent) + 1)}
    return _text(_opened(document, opened | {()}, at=()))


def _text(document: Any) -> str:
    return msgspec.json.encode(document).decode().translate(_ESCAPES)


def _merged(document: Any, patch: Any) -> Any:
    if isinstance(document, list):
        return [_sorted(item) for item in document]
    if not isinstance(document, dict) or not isinstance(patch, dict):
        return document
    return {key: _merged(value, patch[key]) if key in patch else value for key, value in _in_order(document)}


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(item) for key, item in _in_order(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _opened(value: Any, opened: set[tuple[str, ...]], *, at: tuple[str, ...]) -> Any:
    if at not in opened:
        return value
    if isinstance(value, dict):
        return {key: _opened(item, opened, at=(*at, _escaped(key))) for key, item in _in_order(value)}
    if isinstance(value, list):
        return [_opened(item, opened, at=(*at, str(index))) for index, item in enumerate(value)]
    return value


def _in_order(value: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    return sorted(value.items())


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
