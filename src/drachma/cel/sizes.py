"""Declared bounds on the sizes of a variable's parts, from which the cost estimate starts.

A bound is the largest number of characters, bytes, elements or entries that a value can have. Bounds form a tree
beside the type: fields of an object, keys and values of a map. ``find`` walks it by the path that the estimate
tracks (``device``, ``attributes``, ``@values``, ...).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec


class Bound(msgspec.Struct, frozen=True, eq=False):
    """The largest size of a value, and the bounds of what is in it; compared by identity.

    ``any_name`` marks a map whose values are all alike, whatever key is selected with a dot.
    """

    maximum: int
    fields: Mapping[str, Bound] = {}
    key: Bound | None = None
    element: Bound | None = None
    any_name: bool = False


def find(roots: Mapping[str, Bound], path: Sequence[str]) -> int | None:
    """The bound of the value that a path leads to, None where none is declared."""
    bound = roots.get(path[0]) if path else None
    for name in path[1:]:
        if bound is None:
            return None
        if name in ("@items", "@values"):
            bound = bound.element
        elif name == "@keys":
            bound = bound.key
        else:
            bound = bound.fields.get(name, bound.element if bound.any_name else None)
    return None if bound is None else bound.maximum
