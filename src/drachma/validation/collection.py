"""Rules that hold for lists, sets and maps of anything: not too many, each item valid, none twice."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from drachma.validation import fielderror
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import Path

_Item = TypeVar("_Item")
_MINIMUM_KEY = 16
_ELLIPSIS = "..."


def check_list(
    items: Sequence[_Item],
    check: Callable[[_Item, Path], Iterable[FieldError]],
    *,
    at: Path,
    limit: int | None = None,
    size_covered: bool = False,
) -> Errors:
    """Errors of each item; of a list that is too long only that, so that a huge one costs nothing."""
    if limit is not None and len(items) > limit:
        error = fielderror.too_many(at, len(items), limit, origin="maxItems")
        yield from fielderror.covered([error]) if size_covered else [error]
        return
    for position, item in enumerate(items):
        yield from check(item, at.item(position))


def check_set(
    items: Sequence[_Item],
    check: Callable[[_Item, Path], Iterable[FieldError]],
    *,
    at: Path,
    key: Callable[[_Item], Hashable],
    show: Callable[[Hashable], object] = lambda key: key,
    limit: int | None = None,
    size_covered: bool = False,
    unique_covered: bool = False,
) -> Errors:
    """The same for a list whose keys must differ; ``show`` is how messages print a key."""
    yield from check_list(items, check, at=at, limit=limit, size_covered=size_covered)
    if limit is not None and len(items) > limit:
        return
    seen = set()
    for position, item in enumerate(items):
        found = key(item)
        if found in seen:
            error = fielderror.duplicate(at.item(position), show(found))
            yield from fielderror.covered([error]) if unique_covered else [error]
        seen.add(found)


def check_map(
    items: Mapping[str, _Item],
    check_key: Callable[[str, Path], Iterable[FieldError]],
    check: Callable[[_Item, Path], Iterable[FieldError]],
    *,
    at: Path,
    limit: int | None = None,
    shown_key: int,
) -> Errors:
    """Errors of each key (reported at the map) and each value, in the order of keys.

    Paths show keys longer than ``shown_key`` shortened in the middle.
    """
    if limit is not None and len(items) > limit:
        yield fielderror.too_many(at, len(items), limit)
        return
    for key in sorted(items):
        yield from check_key(key, at)
        yield from check(items[key], at.key(_shorten(key, shown_key)))


def _shorten(text: str, limit: int) -> str:
    limit = max(limit, _MINIMUM_KEY)
    if len(text) * 4 <= limit:
        return text
    raw = text.encode()
    if len(raw) <= limit:
        return text
    rest = limit - len(_ELLIPSIS)
    return (raw[: (rest + 1) // 2] + _ELLIPSIS.encode() + raw[len(raw) - rest // 2 :]).decode(errors="replace")
