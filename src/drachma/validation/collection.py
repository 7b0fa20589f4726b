"""Rules that hold for lists, sets and maps of anything: not too many, each item valid, none twice."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from drachma.validation import fielderror
from drachma.validation.fielderror import Errors, FieldError, Found
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
) -> Found:
    """Errors of each item; of a list that is too long only that, so that a huge one costs nothing."""
    if limit is not None and len(items) > limit:
        error = fielderror.too_many(at, len(items), limit, origin="maxItems")
        return fielderror.covered([error]) if size_covered else [error]
    found: list[FieldError] = []
    for position, item in enumerate(items):
        found += check(item, Path(position, at, is_inside=True))
    return found


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
) -> Found:
    """The same for a list whose keys must differ; ``show`` is how messages print a key."""
    found = check_list(items, check, at=at, limit=limit, size_covered=size_covered)
    if len(items) < 2 or (limit is not None and len(items) > limit):
        return found
    repeated = [
        fielderror.duplicate(at.item(position), show(repeated_key))
        for position, repeated_key in repetitions([key(item) for item in items])
    ]
    return [*found, *(fielderror.covered(repeated) if unique_covered else repeated)] if repeated else found


def repetitions(keys: Sequence[Hashable]) -> Sequence[tuple[int, Hashable]]:
    """Keys that came before in the list, with their positions; mostly there are none."""
    if len(set(keys)) == len(keys):
        return ()
    seen: set[Hashable] = set()
    found: list[tuple[int, Hashable]] = []
    for position, key in enumerate(keys):
        if key in seen:
            found.append((position, key))
        seen.add(key)
    return found


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
