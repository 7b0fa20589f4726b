"""Node changes: the nodes that changed in one aspect since a reader last looked, in one snapshot.

A set of nodes is an integer with a bit for each node's slot. Readers keep a position and ask for all changes since
then. A reader that fell far behind gets the set of all nodes. A fork has changes of its own, and knows the nodes that
may differ from its parent.
"""

from __future__ import annotations

from typing import Final

_REMEMBERED: Final = 16_384

EVERYTHING: Final = -1
"""Set of all nodes, whatever their number."""


class NodeChanges:
    """Changes of one aspect of nodes."""

    __slots__ = ("_differing", "_first", "_log", "_parent", "_parent_position", "position")

    def __init__(self, parent: NodeChanges | None = None) -> None:
        """With a ``parent`` this belongs to a fork of its snapshot."""
        self._log: list[int] = []
        self._first = 0
        self.position = 0
        """Current position of the log."""
        self._parent = parent
        self._parent_position = 0 if parent is None else parent.position
        self._differing = EVERYTHING if parent is None else 0

    def append(self, nodes: int) -> None:
        """Note that nodes changed."""
        if self.position - self._first >= _REMEMBERED:
            dropped = _REMEMBERED // 2
            del self._log[:dropped]
            self._first += dropped
        self._log.append(nodes)
        self.position += 1
        self._differing |= nodes

    def since(self, position: int) -> int:
        """Return the nodes that changed since a position, or EVERYTHING if the position is too old."""
        if position == self.position - 1:
            return self._log[-1]
        if position < self._first:
            return EVERYTHING
        changed = 0
        for nodes in self._log[position - self._first :]:
            changed |= nodes
        return changed

    def differing(self) -> int:
        """Return the nodes that may differ from the parent: changed here, or there since the fork.

        Without a parent that is EVERYTHING.
        """
        parent = self._parent
        if parent is not None and parent.position != self._parent_position:
            self._differing |= parent.since(self._parent_position)
            self._parent_position = parent.position
        return self._differing
