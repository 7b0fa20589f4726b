"""Node changes: which nodes changed since somebody last looked, in one aspect, in one snapshot.

A set of nodes is an integer with a bit for each node's slot. Readers keep a position and ask for everything since; a
reader that fell far behind is told that everything may have changed. A fork has changes of its own, and knows which
nodes may no longer be as they are where it was forked from.
"""

from __future__ import annotations

from typing import Final

_REMEMBERED: Final = 16_384

EVERYTHING: Final = -1
"""The set of all nodes, whatever their number."""


class NodeChanges:
    """The changes of one aspect of nodes."""

    __slots__ = ("_differing", "_first", "_log", "_parent", "_parent_position", "position")

    def __init__(self, parent: NodeChanges | None = None) -> None:
        """``parent`` has the changes of what this one's snapshot is a fork of, as it is now."""
        self._log: list[int] = []
        self._first = 0
        self.position = 0
        """Where the log is now."""
        self._parent = parent
        self._parent_position = 0 if parent is None else parent.position
        self._differing = EVERYTHING if parent is None else 0

    def append(self, nodes: int) -> None:
        """Note that these nodes changed."""
        if self.position - self._first >= _REMEMBERED:
            dropped = _REMEMBERED // 2
            del self._log[:dropped]
            self._first += dropped
        self._log.append(nodes)
        self.position += 1
        self._differing |= nodes

    def since(self, position: int) -> int:
        """The nodes that changed since a position, or EVERYTHING where that is too long ago to tell."""
        if position == self.position - 1:
            return self._log[-1]
        if position < self._first:
            return EVERYTHING
        changed = 0
        for nodes in self._log[position - self._first :]:
            changed |= nodes
        return changed

    def differing(self) -> int:
        """The nodes that may not be as they are in the parent: changed here, or there since the fork.

        Without a parent that is EVERYTHING.
        """
        parent = self._parent
        if parent is not None and parent.position != self._parent_position:
            self._differing |= parent.since(self._parent_position)
            self._parent_position = parent.position
        return self._differing
