"""Rules for maps of structs, and repetitions and names in lists."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from drachma.validation import fielderror
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import Document, Path

_Item = TypeVar("_Item")
_MINIMUM_KEY = 16
_ELLIPSIS = "..."


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


def walk_items(
    items: Sequence[Document], at: Path, *, field: str = "name", earlier_names: Iterable[str] = ()
) -> Iterator[tuple[Path, Document, str, bool]]:
    """Yield the path, the item, its name, and whether an earlier item has the same name."""
    previous = set(earlier_names)
    for position, item in enumerate(items):
        name = item.get(field) or ""
        yield Path(position, at, is_inside=True), item, name, name in previous
        previous.add(name)


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
