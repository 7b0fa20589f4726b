"""Node classes: nodes that give the same answer to a question of a pod, so that it is answered once for all of them.

A question is something like "do these tolerations put up with the node's taints" or "how does this much fit", and its
answer follows from one node's state alone. :class:`ClassMemory` keeps, for the questions asked lately about one aspect
of nodes, the sets of nodes by answer; only nodes that changed since are asked again. The next pod with the same
question finds the sets ready.

A fork asks only the nodes that are not as in what it was forked from, and takes the answers of all others from there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Final, Generic, TypeVar

from drachma.scheduler.snapshot import nodechanges

AnswerT = TypeVar("AnswerT", bound=Hashable)
NodeT = TypeVar("NodeT")

_QUESTIONS_REMEMBERED: Final = 512

Groups = Callable[[int], Iterable[tuple[int, int]]]
"""Splits a set of nodes into sets that answer alike for a known reason, each with the slot of one of them."""


def slots(nodes: int) -> Iterator[int]:
    """The members of a set of nodes, lowest first."""
    while nodes:
        low = nodes & -nodes
        yield low.bit_length() - 1
        nodes ^= low


def one_by_one(nodes: int) -> Iterator[tuple[int, int]]:
    """The members of a set of nodes, lowest first, each also as a set of its own."""
    while nodes:
        low = nodes & -nodes
        yield low.bit_length() - 1, low
        nodes ^= low


class _Classes(Generic[AnswerT]):
    """What is known of the answers to one question."""

    __slots__ = ("is_recent", "masks", "pending", "position")

    def __init__(self, position: int) -> None:
        self.is_recent = False
        """Whether the question was asked again since others were last forgotten."""
        self.masks: dict[AnswerT, int] = {}
        """For each answer the nodes that gave it."""
        self.pending = nodechanges.EVERYTHING
        """The nodes that were not asked since they last changed."""
        self.position = position
        """How far changes are taken into account."""

    def forget(self, changed: int) -> None:
        if not changed:
            return
        self.pending |= changed
        for answer, nodes in tuple(self.masks.items()):
            left = nodes & ~changed
            if left:
                self.masks[answer] = left
            else:
                del self.masks[answer]


class ClassMemory(Generic[NodeT]):
    """What the nodes of one snapshot answered lately to questions about one aspect of them."""

    __slots__ = ("_by_question", "_groups", "_node_at", "_parent", "changes")

    def __init__(
        self,
        node_at: Callable[[int], NodeT],
        *,
        changes: nodechanges.NodeChanges | None = None,
        groups: Groups = one_by_one,
        parent: ClassMemory[NodeT] | None = None,
    ) -> None:
        """``node_at`` gives what is asked, by slot; ``parent`` is the memory of what the snapshot is a fork of."""
        self._node_at: Final = node_at
        self._groups: Final = groups
        self._parent: Final = parent
        self.changes: Final[nodechanges.NodeChanges] = changes or nodechanges.NodeChanges(
            None if parent is None else parent.changes
        )
        """What changed in this aspect."""
        self._by_question: dict[Hashable, _Classes[Any]] = {}

    def classes(self, key: Hashable, ask: Callable[[NodeT], AnswerT], *, among: int) -> dict[AnswerT, int]:
        """For each answer to a question the nodes that give it: all those of ``among``; others may be there too.

        ``key`` must be the same only for the same question, and ``ask`` may look at nothing but the node and what the
        key tells: the answers are kept for pods and snapshots to come. The result is to be read only, and at once.
        """
        classes = self._by_question.get(key)
        if classes is None:
            classes = self._by_question[key] = self._new_classes()
        else:
            classes.is_recent = True
        changes, parent = self.changes, self._parent
        if classes.position != changes.position:
            classes.forget(changes.since(classes.position))
            classes.position = changes.position
        if parent is None:
            unanswered = classes.pending & among
            if unanswered:
                self._settle(classes, ask, unanswered=unanswered)
            return classes.masks
        here = among & changes.differing()
        if classes.pending & here:
            self._settle(classes, ask, unanswered=classes.pending & here)
        elsewhere = among & ~here
        if not elsewhere:
            return classes.masks
        merged: dict[AnswerT, int] = dict(classes.masks)
        for answer, nodes in parent.classes(key, ask, among=elsewhere).items():
            same = nodes & elsewhere
            if same:
                merged[answer] = merged.get(answer, 0) | same
        return merged

    def _settle(self, classes: _Classes[AnswerT], ask: Callable[[NodeT], AnswerT], *, unanswered: int) -> None:
        masks = classes.masks
        # After most changes there is one node to ask.
        is_one = not unanswered & (unanswered - 1)
        for slot, same in ((unanswered.bit_length() - 1, unanswered),) if is_one else self._groups(unanswered):
            answer = ask(self._node_at(slot))
            masks[answer] = masks.get(answer, 0) | same
            classes.pending &= ~same

    def _new_classes(self) -> _Classes[Any]:
        if len(self._by_question) >= _QUESTIONS_REMEMBERED:
            # What was asked again since others were last forgotten may stay, at most half of all.
            recent = [entry for entry in self._by_question.items() if entry[1].is_recent]
            self._by_question = dict(recent[-_QUESTIONS_REMEMBERED // 2 :])
            for classes in self._by_question.values():
                classes.is_recent = False
        return _Classes(self.changes.position)
