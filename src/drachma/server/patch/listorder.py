"""Lists whose items have an identity, for strategic merge patch: finding items, and the order after a merge.

Items are objects known by a merge key, or scalars known by themselves (then the merge key is empty).
"""

from collections import deque
from collections.abc import Hashable, Iterable
from typing import Any

from drachma import errors
from drachma.server import documents


class NotMergeableError(errors.InvalidValueError):
    """A patch and a document, or a patch and a schema, do not fit together."""


def key_of(item: Any, merge_key: str) -> Any:
    """What identifies an item; NotMergeableError where it is no object or lacks the field."""
    if not merge_key:
        return item
    if not isinstance(item, dict):
        raise wrong_type("map[string]interface {}", item)
    if merge_key not in item:
        shown = documents.printed(item)
        raise NotMergeableError(f"map: {shown} does not contain declared merge key: {merge_key}")
    return item[merge_key]


def refuse_unkeyed(items: Iterable[Any]) -> None:
    """Objects without a merge key cannot be put in an order; upstream says it misses a key of no name."""
    for item in items:
        if not isinstance(item, dict):
            raise wrong_type("map[string]interface {}", item)
        raise NotMergeableError(f"map: {documents.printed(item)} does not contain declared merge key: ")


def wrong_type(wanted: str, found: Any) -> NotMergeableError:
    """What upstream says about a value of another type than a directive or list wants, in Go's names."""
    names = {dict: "map[string]interface {}", list: "[]interface {}", str: "string", int: "int64", float: "float64"}
    name = "bool" if isinstance(found, bool) else names.get(type(found), "%!s(<nil>)")
    return NotMergeableError(f"expected a {wanted}, but received a {name}")


def is_same_item(left: Any, right: Any, merge_key: str) -> bool:
    return documents.same(key_of(left, merge_key), key_of(right, merge_key))


class Index:
    """Where items of a list are, by what identifies them; the first of several that are alike.

    Lists have as many items as fit into a body, so that looking through them for each item would take minutes.
    """

    def __init__(self, items: Iterable[Any], merge_key: str) -> None:
        self._merge_key = merge_key
        self._places: dict[Hashable, int] = {}
        for place, item in enumerate(items):
            if merge_key and not isinstance(item, dict):
                raise NotMergeableError(f"value for key {place} is not a map")
            self.add(item, place)

    def add(self, item: Any, place: int) -> None:
        """Says that an item comes to be at a place."""
        self._places.setdefault(identity(item.get(self._merge_key) if self._merge_key else item), place)

    def find(self, value: Any) -> int | None:
        """Where the item with this identity is, or None."""
        return self._places.get(identity(value))

    def place(self, item: Any) -> int:
        """Where an item like this one is; -1 if nowhere."""
        found = self.find(key_of(item, self._merge_key))
        return -1 if found is None else found


def identity(value: Any) -> Hashable:
    """Equal for values that are the same as JSON (see ``documents.same``)."""
    if isinstance(value, dict):
        return frozenset((key, identity(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(map(identity, value))
    return isinstance(value, bool), value


def unique(items: Iterable[Any]) -> list[Any]:
    """The items without those that were there before."""
    kept: dict[Hashable, Any] = {}
    for item in items:
        kept.setdefault(identity(item), item)
    return list(kept.values())


def interleave(items: list[Any], *, first: list[Any], second: list[Any], merge_key: str) -> list[Any]:
    """The items, those of ``first`` in its order and the others in the order of ``second``, woven together.

    An item of ``second`` comes before one of ``first`` only if ``second`` has both and has them in this order.
    """
    for item in (*items, *first, *second):
        key_of(item, merge_key)
    in_first, in_second = Index(first, merge_key), Index(second, merge_key)
    wanted = sorted([item for item in items if in_first.place(item) >= 0], key=in_first.place)
    others = _ordered([item for item in items if in_first.place(item) < 0], in_second)
    woven: list[Any] = []
    ahead, behind = deque(wanted), deque(others)
    while ahead and behind:
        left, right = in_second.place(behind[0]), in_second.place(ahead[0])
        woven.append(behind.popleft() if 0 <= left < right else ahead.popleft())
    return [*woven, *ahead, *behind]


def _ordered(items: list[Any], order: Index) -> list[Any]:
    """The items as upstream sorts them: one that the order does not have goes before what was there."""
    placed: list[tuple[int, Any]] = []
    for item in items:
        place, at = order.place(item), len(placed)
        if place < 0:
            at = 0
        while at and (placed[at - 1][0] < 0 or place < placed[at - 1][0]):
            at -= 1
        placed.insert(at, (place, item))
    return [item for _, item in placed]
