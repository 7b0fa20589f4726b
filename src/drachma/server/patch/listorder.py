"""Lists whose items have an identity, for strategic merge patch: finding items, and the order after a merge.

Items are objects identified by a merge key, or scalars identified by themselves (then the merge key is empty).
"""

from collections import deque
from collections.abc import Hashable, Iterable
from typing import Any

from drachma import errors
from drachma.server import documents


class NotMergeableError(errors.InvalidValueError):
    """A patch does not fit the document or the schema."""


def key_of(item: Any, merge_key: str) -> Any:
    """Return the identity of an item; NotMergeableError if it is no object or lacks the field."""
    if not merge_key:
        return item
    if not isinstance(item, dict):
        raise wrong_type("map[string]interface {}", item)
    if merge_key not in item:
        printed = documents.printed(item)
        raise NotMergeableError(f"map: {printed} does not contain declared merge key: {merge_key}")
    return item[merge_key]


def refuse_unkeyed(items: Iterable[Any]) -> None:
    """Raise a NotMergeableError for objects without a merge key, which cannot be ordered."""
    for item in items:
        if not isinstance(item, dict):
            raise wrong_type("map[string]interface {}", item)
        raise NotMergeableError(f"map: {documents.printed(item)} does not contain declared merge key: ")


def wrong_type(type_name: str, value: Any) -> NotMergeableError:
    """Return upstream's error about a value of the wrong type, in Go's names."""
    names = {dict: "map[string]interface {}", list: "[]interface {}", str: "string", int: "int64", float: "float64"}
    name = "bool" if isinstance(value, bool) else names.get(type(value), "%!s(<nil>)")
    return NotMergeableError(f"expected a {type_name}, but received a {name}")


def is_same_item(first: Any, second: Any, merge_key: str) -> bool:
    return documents.same(key_of(first, merge_key), key_of(second, merge_key))


class Index:
    """Places of list items by identity; of equal items the first.

    Lists may have as many items as fit into a body, so a linear search for each item would take minutes.
    """

    def __init__(self, items: Iterable[Any], merge_key: str) -> None:
        self._merge_key = merge_key
        self._places: dict[Hashable, int] = {}
        for place, item in enumerate(items):
            if merge_key and not isinstance(item, dict):
                raise NotMergeableError(f"value for key {place} is not a map")
            self.add(item, place)

    def add(self, item: Any, place: int) -> None:
        """Record the place of an item."""
        self._places.setdefault(identity(item.get(self._merge_key) if self._merge_key else item), place)

    def find(self, value: Any) -> int | None:
        """Return the place of the item with this identity, or None."""
        return self._places.get(identity(value))

    def place(self, item: Any) -> int:
        """Return the place of an item with the same identity; -1 if there is none."""
        position = self.find(key_of(item, self._merge_key))
        return -1 if position is None else position


def identity(value: Any) -> Hashable:
    """Return a key that is equal exactly for values that are equal as JSON (see ``documents.same``)."""
    if isinstance(value, dict):
        return frozenset((key, identity(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(map(identity, value))
    return isinstance(value, bool), value


def unique(items: Iterable[Any]) -> list[Any]:
    """Return the items without duplicates."""
    by_identity: dict[Hashable, Any] = {}
    for item in items:
        by_identity.setdefault(identity(item), item)
    return list(by_identity.values())


def interleave(items: list[Any], *, first: list[Any], second: list[Any], merge_key: str) -> list[Any]:
    """Return the items, those of ``first`` in its order and the others in the order of ``second``.

    An item of ``second`` precedes one of ``first`` only if ``second`` has both in this order.
    """
    for item in (*items, *first, *second):
        key_of(item, merge_key)
    in_first, in_second = Index(first, merge_key), Index(second, merge_key)
    in_order = sorted([item for item in items if in_first.place(item) >= 0], key=in_first.place)
    unordered = _sort([item for item in items if in_first.place(item) < 0], in_second)
    woven: list[Any] = []
    ahead, behind = deque(in_order), deque(unordered)
    while ahead and behind:
        behind_place, ahead_place = in_second.place(behind[0]), in_second.place(ahead[0])
        woven.append(behind.popleft() if 0 <= behind_place < ahead_place else ahead.popleft())
    return [*woven, *ahead, *behind]


def _sort(items: list[Any], order: Index) -> list[Any]:
    """Sort items as upstream does: an item that the order lacks comes before the existing ones."""
    placed: list[tuple[int, Any]] = []
    for item in items:
        place, at = order.place(item), len(placed)
        if place < 0:
            at = 0
        while at and (placed[at - 1][0] < 0 or place < placed[at - 1][0]):
            at -= 1
        placed.insert(at, (place, item))
    return [item for _, item in placed]
