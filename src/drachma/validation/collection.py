"""Rules for lists, sets and maps of structs: limits, items, and repetitions."""

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
    """Return the errors of each item; a list that is too long has only that error, so that a huge one costs nothing."""
    if limit is not None and len(items) > limit:
        error = fielderror.too_many(at, len(items), limit, origin="maxItems")
        return fielderror.covered([error]) if size_covered else [error]
    errors: list[FieldError] = []
    for position, item in enumerate(items):
        errors += check(item, Path(position, at, is_inside=True))
    return errors


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
    """Return the errors of each item and of repeated keys; ``show`` makes the text of a key in messages."""
    errors = check_list(items, check, at=at, limit=limit, size_covered=size_covered)
    if len(items) < 2 or (limit is not None and len(items) > limit):
        return errors
    repeated = [
        fielderror.duplicate(at.item(position), show(repeated_key))
        for position, repeated_key in repetitions([key(item) for item in items])
    ]
    return [*errors, *(fielderror.covered(repeated) if unique_covered else repeated)] if repeated else errors


def repetitions(keys: Sequence[Hashable]) -> Sequence[tuple[int, Hashable]]:
    """Return repeated keys with their positions."""
    if len(set(keys)) == len(keys):
        return ()
    previous: set[Hashable] = set()
    errors: list[tuple[int, Hashable]] = []
    for position, key in enumerate(keys):
        if key in previous:
            errors.append((position, key))
        previous.add(key)
    return errors


def check_map(
    items: Mapping[str, _Item],
    check_key: Callable[[str, Path], Iterable[FieldError]],
    check: Callable[[_Item, Path], Iterable[FieldError]],
    *,
    at: Path,
    limit: int | None = None,
    shown_key: int,
) -> Errors:
    """Yield the errors of each key (reported at the map) and each value, in the order of keys.

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
    space = limit - len(_ELLIPSIS)
    return (raw[: (space + 1) // 2] + _ELLIPSIS.encode() + raw[len(raw) - space // 2 :]).decode(errors="replace")
