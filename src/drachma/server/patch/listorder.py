"""Lists whose items have an identity, for strategic merge patch: finding items, and the order after a merge.

Items are objects known by a merge key, or scalars known by themselves (then the merge key is empty).
"""

from collections.abc import Iterable
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


def find(items: list[Any], merge_key: str, value: Any) -> int | None:
    """Where the first item with this identity is, or None."""
    for place, item in enumerate(items):
        if merge_key and not isinstance(item, dict):
            raise NotMergeableError(f"value for key {place} is not a map")
        if documents.same(item.get(merge_key) if merge_key else item, value):
            return place
    return None


def unique(items: Iterable[Any]) -> list[Any]:
    """The items without those that were there before."""
    kept: list[Any] = []
    for item in items:
        if not any(documents.same(item, other) for other in kept):
            kept.append(item)
    return kept


def interleave(items: list[Any], *, first: list[Any], second: list[Any], merge_key: str) -> list[Any]:
    """The items, those of ``first`` in its order and the others in the order of ``second``, woven together.

    An item of ``second`` comes before one of ``first`` only if ``second`` has both and has them in this order.
    """
    for item in (*items, *first, *second):
        key_of(item, merge_key)
    wanted = [item for item in items if _place(first, item, merge_key) >= 0]
    others = [item for item in items if _place(first, item, merge_key) < 0]
    wanted.sort(key=lambda item: _place(first, item, merge_key))
    others = _ordered(others, second, merge_key)
    woven: list[Any] = []
    while wanted and others:
        left, right = _place(second, others[0], merge_key), _place(second, wanted[0], merge_key)
        woven.append(others.pop(0) if 0 <= left < right else wanted.pop(0))
    return [*woven, *wanted, *others]


def _ordered(items: list[Any], order: list[Any], merge_key: str) -> list[Any]:
    """The items as upstream sorts them: one that the order does not have goes before what was there."""
    placed: list[tuple[int, Any]] = []
    for item in items:
        place, at = _place(order, item, merge_key), len(placed)
        while at and (place < 0 or placed[at - 1][0] < 0 or place < placed[at - 1][0]):
            at -= 1
        placed.insert(at, (place, item))
    return [item for _, item in placed]


def _place(order: list[Any], item: Any, merge_key: str) -> int:
    found = find(order, merge_key, key_of(item, merge_key))
    return -1 if found is None else found
