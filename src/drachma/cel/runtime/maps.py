"""Insertion into maps, which the two-variable macros ``transformMap`` and ``transformMapEntry`` are made of."""

from __future__ import annotations

from typing import Any, Final

from drachma.cel.runtime import faults, spelling, values


def _insert(mapping: Any, key: Any, value: Any) -> Any:
    if values.contains(mapping, key):
        raise faults.Fault(f"insert failed: key {spelling.show(key)} already exists")
    if mapping.__class__ is not values.GrowingMap:
        mapping = dict(mapping)
    mapping[values.encode_key(key)] = value
    return mapping


def _insert_all(mapping: Any, entries: Any) -> Any:
    for key, value in entries.items():
        mapping = _insert(mapping, values.decode_key(key), value)
    return mapping


IMPLEMENTATIONS: Final[dict[str, Any]] = {
    "@mapInsert_map_key_value": _insert,
    "@mapInsert_map_map": _insert_all,
}
