"""Change logs: which nodes changed since somebody last looked, in one aspect.

A set of nodes is an integer with a bit for each node's slot. Readers keep a position and ask for everything since; a
reader that fell far behind is told that everything may have changed.
"""

from __future__ import annotations

from typing import Final

_REMEMBERED: Final = 16_384

EVERYTHING: Final = -1
"""The set of all nodes, whatever their number."""


class ChangeLog:
    """The changes of one aspect of nodes."""

    __slots__ = ("_changes", "_first", "position")

    def __init__(self) -> None:
        self._changes: list[int] = []
        self._first = 0
        self.position = 0
        """Where the log is now."""

    def append(self, nodes: int) -> None:
        """Note that these nodes changed."""
        if self.position - self._first >= _REMEMBERED:
            dropped = _REMEMBERED // 2
            del self._changes[:dropped]
            self._first += dropped
        self._changes.append(nodes)
        self.position += 1

    def since(self, position: int) -> int:
        """The nodes that changed since a position, or EVERYTHING where that is too long ago to tell."""
        if position < self._first:
            return EVERYTHING
        changed = 0
        for nodes in self._changes[position - self._first :]:
            changed |= nodes
        return changed
