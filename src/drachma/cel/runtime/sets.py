"""Lists used as sets: ``sets.contains``, ``sets.equivalent``, ``sets.intersects``. Called through ``library``."""

from __future__ import annotations

from typing import Any, Final

from drachma.cel.runtime import equality, values

_MAX_COMPARED: Final = 100_000_000


def _contains(elements: Any, subset: Any) -> bool:
    # Charged by the product of the sizes, after the fact; a hopeless call is not even begun.
    values.check_size(len(elements) * len(subset), _MAX_COMPARED)
    return all(equality.is_in(element, elements) for element in subset)


def _equivalent(left: Any, right: Any) -> bool:
    return _contains(left, right) and _contains(right, left)


def _intersects(left: Any, right: Any) -> bool:
    values.check_size(len(left) * len(right), _MAX_COMPARED)
    return any(equality.is_in(element, right) for element in left)


IMPLEMENTATIONS: Final[dict[str, Any]] = {
    "list_sets_contains_list": _contains,
    "list_sets_equivalent_list": _equivalent,
    "list_sets_intersects_list": _intersects,
}
