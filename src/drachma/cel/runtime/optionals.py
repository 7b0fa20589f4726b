"""Optional values: ``optional.of``, ``value()``, ``hasValue()`` and the list functions that give them.

Called through ``library``; ``or`` and ``orValue`` are control flow and live in the plan.
"""

from __future__ import annotations

from typing import Any, Final

from drachma.cel.runtime import faults, kinds, spelling, values

_ZEROES: Final = kinds.SIZED | kinds.NUMBERS | {bool}
_YEAR_ONE: Final = -62135596800 * 10**9


def _is_zero(value: Any) -> bool:
    kind = value.__class__
    if value is None:
        return True
    if kind is values.Duration:
        return bool(value.nanos == 0)
    if kind is values.Timestamp:
        return bool(value.nanos == _YEAR_ONE)
    return kind in _ZEROES and not value


def _optional_of_non_zero(value: Any) -> values.Optional:
    return values.NONE if _is_zero(value) else values.Optional(value)


def value_of(optional: values.Optional) -> Any:
    """Return the value. Raises Fault where there is none."""
    if optional is values.NONE:
        raise faults.Fault("optional.none() dereference")
    return optional.value


def _unwrap(elements: Any) -> list[Any]:
    for element in elements:
        if element.__class__ is not values.Optional:
            raise faults.Fault(f"value {spelling.show(element)} is not optional")
    return [element.value for element in elements if element is not values.NONE]


IMPLEMENTATIONS: Final[dict[str, Any]] = {
    "optional_of": values.Optional,
    "optional_ofNonZeroValue": _optional_of_non_zero,
    "optional_none": lambda: values.NONE,
    "optional_value": value_of,
    "optional_hasValue": lambda optional: optional is not values.NONE,
    "optional_unwrap": _unwrap,
    "optional_unwrapOpt": _unwrap,
    "list_first": lambda elements: values.Optional(elements[0]) if elements else values.NONE,
    "list_last": lambda elements: values.Optional(elements[-1]) if elements else values.NONE,
}
