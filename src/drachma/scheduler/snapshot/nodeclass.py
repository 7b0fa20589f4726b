"""Node classes: nodes that give the same answer to a question of a pod, so that it is answered once for all of them.

A question is something like "do these tolerations put up with the node's taints" or "how does this much fit", and its
answer depends on one node's state alone. :class:`NodeClasses` keeps the answers of all nodes as sets of nodes by
answer and asks again only the nodes that changed since; the next pod with the same question finds the sets ready.
:class:`Questions` holds the classes of the questions asked lately.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Final, Generic, TypeVar

from drachma.scheduler import changelog

AnswerT = TypeVar("AnswerT", bound=Hashable)
NodeT = TypeVar("NodeT")

_QUESTIONS_REMEMBERED: Final = 512


def slots(nodes: int) -> Iterator[int]:
    """The members of a set of nodes, lowest first."""
    while nodes:
        low = nodes & -nodes
        yield low.bit_length() - 1
        nodes ^= low


Alike = Callable[[int], Iterator[tuple[NodeT, int]]]
"""Splits a set of nodes into sets that answer alike for a known reason, each with one node to ask."""


class NodeClasses(Generic[NodeT, AnswerT]):
    """The nodes by their answer to one question."""

    __slots__ = ("_alike", "_ask", "_log", "_pending", "_position", "masks")

    def __init__(
        self, ask: Callable[[NodeT], AnswerT], log: changelog.ChangeLog, *, alike: Alike[NodeT] | None = None
    ) -> None:
        self._ask = ask
        self._log = log
        self._alike = alike
        self._position = log.position
        self._pending = changelog.EVERYTHING
        self.masks: dict[AnswerT, int] = {}
        """For each answer the nodes that gave it; of those asked for in the last :meth:`settle` it is complete."""

    def settle(self, nodes: Sequence[NodeT], among: int) -> dict[AnswerT, int]:
        """The classes, brought up to date for the nodes of ``among``; ``nodes`` are all nodes by slot."""
        if self._position != self._log.position:
            self._forget(self._log.since(self._position))
            self._position = self._log.position
        todo = self._pending & among
        if todo:
            groups = self._alike(todo) if self._alike is not None else ((nodes[s], 1 << s) for s in slots(todo))
            for node, same in groups:
                answer = self._ask(node)
                self.masks[answer] = self.masks.get(answer, 0) | same
                self._pending &= ~same
        return self.masks

    def _forget(self, changed: int) -> None:
        if not changed:
            return
        self._pending |= changed
        for answer, nodes in tuple(self.masks.items()):
            left = nodes & ~changed
            if left:
                self.masks[answer] = left
            else:
                del self.masks[answer]


class Questions(Generic[NodeT]):
    """The questions asked lately about one aspect of nodes, each with its classes."""

    __slots__ = ("_classes", "_log")

    def __init__(self, log: changelog.ChangeLog) -> None:
        self._log = log
        self._classes: dict[Hashable, NodeClasses[NodeT, Any]] = {}

    def of(self, key: Hashable, ask: Callable[[NodeT], AnswerT]) -> NodeClasses[NodeT, AnswerT]:
        """The classes of a question; ``key`` must be the same only for the same question."""
        found = self._classes.pop(key, None) or NodeClasses(ask, self._log)
        # What was not asked for the longest time is at the front.
        if len(self._classes) >= _QUESTIONS_REMEMBERED:
            del self._classes[next(iter(self._classes))]
        self._classes[key] = found
        return found

    def clear(self) -> None:
        """Forget everything, because the answers depend on something that changed for all nodes."""
        self._classes.clear()
