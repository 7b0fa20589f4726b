"""Declared bounds on the sizes of a variable's parts, from which the cost estimate starts.

A bound is the largest number of characters, bytes, elements or entries that a value can have. Bounds form a tree
next to the type: fields of an object, keys and values of a map. ``find`` walks it by the path that the estimate
tracks (``device``, ``attributes``, ``@values``, ...).
"""

from __future__ import annotations

from collections.abc import Mapping

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


class Path:
    """A path that grows in place, shared with the paths it grew from.

    Upstream's paths share memory in this way, so that of two paths grown from one the later can overwrite the end of
    the earlier: in ``m.all(k, v, ...)`` the sizes of keys are at times looked up as sizes of values. Estimates only
    agree if that is kept.
    """

    __slots__ = ("length", "memory")

    def __init__(self, memory: list[str], length: int) -> None:
        self.memory = memory
        self.length = length

    def grown(self, name: str) -> Path:
        """Return the path with one more name at its end."""
        memory, length = self.memory, self.length
        if length < len(memory):
            memory[length] = name
        else:
            room = max(length, 1)
            memory = [*memory[:length], name, *[""] * (room - 1)]
        return Path(memory, length + 1)

    def separate(self) -> Path:
        """Return an independent copy of the path."""
        return Path(self.memory[: self.length], self.length)


NO_PATH = Path([], 0)


def find(roots: Mapping[str, Bound], path: Path) -> int | None:
    """Return the bound of the value that a path leads to, None where none is declared."""
    bound = roots.get(path.memory[0]) if path.length else None
    for name in path.memory[1 : path.length]:
        if bound is None:
            return None
        if name in ("@items", "@values"):
            bound = bound.element
        elif name == "@keys":
            bound = bound.key
        else:
            bound = bound.fields.get(name, bound.element if bound.any_name else None)
    return None if bound is None else bound.maximum
