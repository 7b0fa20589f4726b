"""Correlation of new values with old ones: the part of the stored object that a part of the new one replaces.

Fields correspond by their names, items of lists by their keys where the list has some (its type is ``map``). Items of
other lists correspond to nothing. Upstream does not report errors about parts that are what they were, and evaluates
rules about changes only where there is something to compare with.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation.structural.schema import Schema

NOTHING: Final = object()
"""Old value of a part that is new, or that cannot be correlated; null is a value."""


def same(one: Any, two: Any) -> bool:
    """Return True if two documents are equal, down to the types of numbers."""
    if one is two:
        return True
    kind = one.__class__
    if kind is not two.__class__ or one != two:
        return False
    if kind is dict:
        return all(same(value, two[key]) for key, value in one.items())
    if kind is list:
        return all(map(same, one, two))
    return True


def field(old: Any, name: str) -> Any:
    """Return the old value of a field, or NOTHING."""
    return old.get(name, NOTHING) if isinstance(old, Mapping) else NOTHING


class Items:
    """The items of an old list, by their keys."""

    def __init__(self, schema: Schema, old: Any) -> None:
        self._keys = schema.list_map_keys
        self._items: dict[Any, Any] = {}
        if schema.type == "array" and schema.list_type == "map" and self._keys and isinstance(old, list):
            for item in old:
                identity = _identity(item, self._keys)
                if identity is not None:
                    self._items.setdefault(identity, item)

    def of(self, item: Any) -> Any:
        """Return the old item with the keys of a new one, or NOTHING."""
        if not self._items:
            return NOTHING
        identity = _identity(item, self._keys)
        return self._items.get(identity, NOTHING) if identity is not None else NOTHING


def _identity(item: Any, keys: Sequence[str]) -> Any:
    """Return the identity of an item by its keys, or None if a key is missing or not a scalar."""
    if not isinstance(item, dict):
        return None
    parts = []
    for key in keys:
        value = item.get(key)
        if value.__class__ not in (bool, int, float, str):
            return None
        parts.append((value.__class__, value))
    return tuple(parts)
