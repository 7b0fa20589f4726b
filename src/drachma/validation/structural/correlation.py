"""Old values beside new ones: which part of the stored object a part of the new one takes the place of.

Fields correspond by their names, items of lists by their keys where the list has some (its type is ``map``). Items of
other lists correspond to nothing. Upstream does not report errors about parts that are what they were, and evaluates
rules about changes only where there is something to compare with.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.validation.structural.schema import Schema

NOTHING: Final = object()
"""What corresponds to a part that is new, or whose place cannot be told. Null is something."""


def same(left: Any, right: Any) -> bool:
    """Whether two documents are the same, down to the types of numbers."""
    if left is right:
        return True
    kind = left.__class__
    if kind is not right.__class__ or left != right:
        return False
    if kind is dict:
        return all(same(value, right[key]) for key, value in left.items())
    if kind is list:
        return all(map(same, left, right))
    return True


def field(old: Any, name: str) -> Any:
    """What a field was before."""
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
        """The old item with the keys of a new one; NOTHING where there was none."""
        if not self._items:
            return NOTHING
        identity = _identity(item, self._keys)
        return self._items.get(identity, NOTHING) if identity is not None else NOTHING


def _identity(item: Any, keys: Sequence[str]) -> Any:
    """What tells an item from others; None where a key is missing or is no scalar."""
    if not isinstance(item, dict):
        return None
    parts = []
    for key in keys:
        value = item.get(key)
        if value.__class__ not in (bool, int, float, str):
            return None
        parts.append((value.__class__, value))
    return tuple(parts)
