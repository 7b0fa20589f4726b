"""Rules for lists that are sets, or whose items have keys: items must not be repeated."""

from typing import Any

import msgspec

from drachma.validation import fielderror
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.validation.structural.schema import Schema

_encode = msgspec.json.Encoder(order="deterministic").encode


def check(value: Any, schema: Schema, at: Path) -> Errors:
    """Yield errors of repeated items of such lists, anywhere in a value."""
    if not schema.has_identities:
        return
    if isinstance(value, list) and schema.list_type == "set":
        for index in _repeated(value):
            yield fielderror.duplicate(at.item(index), value[index])
    elif isinstance(value, list) and schema.list_type == "map":
        yield from _check_keys(value, schema, at)
    for each, part, place in schema.parts(value, at):
        yield from check(each, part, place)


def _check_keys(value: list[Any], schema: Schema, at: Path) -> Errors:
    for index, each in enumerate(value):
        if each is not None and not isinstance(each, dict):
            yield fielderror.invalid(at.item(index), each, "must be an object for an array of list-type map")
            return
    keys = [{name: each[name] for name in schema.list_map_keys if name in each} for each in map(_or_empty, value)]
    for index in _repeated(keys):
        yield fielderror.duplicate(at.item(index), keys[index])


def _or_empty(item: dict[str, Any] | None) -> dict[str, Any]:
    return item if item is not None else {}


def _repeated(items: list[Any]) -> list[int]:
    """Return the positions where items are repeated for the first time."""
    if len(items) < 2:
        return []
    previous: dict[bytes, int] = {}
    repeated = []
    for index, item in enumerate(items):
        text = _encode(item)
        previous[text] = previous.get(text, 0) + 1
        if previous[text] == 2:
            repeated.append(index)
    return repeated
