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


class NodeClasses(Generic[NodeT, AnswerT]):
    """The nodes by their answer to one question. An answer can be anything hashable but None."""

    __slots__ = ("_answers", "_ask", "_log", "_pending", "_position", "masks")

    def __init__(self, ask: Callable[[NodeT], AnswerT], log: changelog.ChangeLog) -> None:
        self._ask = ask
        self._log = log
        self._position = log.position
        self._pending = changelog.EVERYTHING
        self._answers: dict[int, AnswerT] = {}
        self.masks: dict[AnswerT, int] = {}
        """For each answer the nodes that gave it; of those asked for in the last :meth:`settle` it is complete."""

    def settle(self, nodes: Sequence[NodeT], among: int) -> dict[AnswerT, int]:
        """The classes, brought up to date for the nodes of ``among``; ``nodes`` are all nodes by slot."""
        changed = self._log.since(self._position)
        self._position = self._log.position
        if changed:
            self._forget(changed)
        todo = self._pending & among
        for slot in slots(todo):
            answer = self._answers[slot] = self._ask(nodes[slot])
            bit = 1 << slot
            self.masks[answer] = self.masks.get(answer, 0) | bit
            self._pending &= ~bit
        return self.masks

    def answer(self, slot: int) -> AnswerT | None:
        """The answer of one node, if it is up to date."""
        return self._answers.get(slot)

    def _forget(self, changed: int) -> None:
        self._pending |= changed
        if changed == changelog.EVERYTHING:
            self._answers.clear()
            self.masks.clear()
            return
        for slot in slots(changed):
            answer = self._answers.pop(slot, None)
            if answer is not None:
                left = self.masks[answer] & ~(1 << slot)
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
