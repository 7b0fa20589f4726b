"""Field selection and indexing: ``value.field``, ``value[key]``, and their optional and presence forms.

Called by generated code and by the stepwise machine for every selection that is not a plain dictionary lookup.
"""

from __future__ import annotations

from typing import Any, Final

from drachma.cel.runtime import faults, kinds, spelling, values

KEYS: Final = frozenset((str, int, values.UInt, float, bool))
"""The types of values that can select."""


def check_key(key: Any) -> None:
    """Refuse what cannot be a key, with upstream's message."""
    if key.__class__ not in KEYS:
        raise faults.Fault(f"invalid qualifier type: {kinds.go_name(key)}")


def select(value: Any, key: Any) -> Any:
    """Return the part of ``value`` under ``key``. Raises Fault where there is none."""
    kind = value.__class__
    if kind in kinds.MAPS:
        part = values.find(value, key)
        if part is not values.MISSING:
            return part
    elif kind in kinds.LISTS:
        index = _index(key)
        if 0 <= index < len(value):
            return value[index]
        raise faults.Fault(f"index out of bounds: {spelling.show(key)}")
    raise faults.Fault(f"no such key: {spelling.show(key)}")


def select_present(value: Any, key: Any) -> Any:
    """Like select(), or ``MISSING``. Raises Fault only for keys of a wrong type."""
    kind = value.__class__
    if kind in kinds.MAPS:
        return values.find(value, key)
    if kind in kinds.LISTS:
        index = _index(key)
        if 0 <= index < len(value):
            return value[index]
    return values.MISSING


def _index(key: Any) -> int:
    kind = key.__class__
    if kind is int:
        return int(key)
    if kind is float:
        if values.INT_MIN < key < 2.0**63 and int(key) == key:
            return int(key)
    elif kind is values.UInt:
        if key <= values.INT_MAX:
            return int(key)
    else:
        raise faults.Fault(f"unsupported index type '{kinds.name(key)}' in list")
    raise faults.Fault(f"unsupported index value {spelling.show(key)} in list")


def index(value: Any, key: Any) -> Any:
    """``value[key]`` on a value that may be optional, with every check."""
    check_key(key)
    return select(value, key)
