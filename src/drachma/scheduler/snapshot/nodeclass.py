"""Node classes: nodes with the same answer to a question of a pod, so that it is answered once for all of them.

A question is for example "do these tolerations match the node's taints" or "how does this demand fit". Its answer
depends on the state of one node only. :class:`ClassMemory` keeps the sets of nodes by answer for recent questions about
one aspect of nodes. Only nodes that changed since are asked again, so the next pod with the same question finds the
sets ready.

A fork asks only the nodes that differ from its parent, and takes all other answers from there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, Final, Generic, TypeVar

from drachma.scheduler.snapshot import nodechanges

AnswerT = TypeVar("AnswerT", bound=Hashable)
NodeT = TypeVar("NodeT")

_QUESTIONS_REMEMBERED: Final = 512
_MANY: Final = 64
"""Size of sets from which on members are read from the digits, not by arithmetic on the whole set for each member."""

Groups = Callable[[int], Iterable[tuple[int, int]]]
"""Function that splits a set of nodes into sets with the same answer, each with the slot of one member."""


def slots(nodes: int) -> Iterator[int]:
    """Yield the members of a set of nodes, lowest first."""
    if nodes.bit_count() >= _MANY:
        digits = f"{nodes:b}"[::-1]
        slot = digits.find("1")
        while slot >= 0:
            yield slot
            slot = digits.find("1", slot + 1)
        return
    while nodes:
        low = nodes & -nodes
        yield low.bit_length() - 1
        nodes ^= low


def one_by_one(nodes: int) -> Iterator[tuple[int, int]]:
    """Yield the members of a set of nodes, lowest first, each also as a set of its own."""
    for slot in slots(nodes):
        yield slot, 1 << slot


class _Classes(Generic[AnswerT]):
    """Known answers to one question."""

    __slots__ = ("is_recent", "masks", "pending", "position")

    def __init__(self, position: int) -> None:
        self.is_recent = False
        """True if the question was asked since the last clean-up."""
        self.masks: dict[AnswerT, int] = {}
        """Nodes by answer."""
        self.pending = nodechanges.EVERYTHING
        """Nodes that were not asked since they last changed."""
        self.position = position
        """Position up to which changes are taken into account."""

    def forget(self, changed: int) -> None:
        if not changed:
            return
        self.pending |= changed
        if changed == nodechanges.EVERYTHING:
            self.masks.clear()
            return
        for answer, nodes in tuple(self.masks.items()):
            hit = nodes & changed
            if hit == nodes:
                del self.masks[answer]
            elif hit:
                self.masks[answer] = nodes ^ hit


class ClassMemory(Generic[NodeT]):
    """Recent answers of the nodes of one snapshot about one aspect."""

    __slots__ = ("_by_question", "_groups", "_node_at", "_parent", "changes")

    def __init__(
        self,
        node_at: Callable[[int], NodeT],
        *,
        changes: nodechanges.NodeChanges | None = None,
        groups: Groups = one_by_one,
        parent: ClassMemory[NodeT] | None = None,
    ) -> None:
        """``node_at`` returns the state of a slot. ``parent`` is the memory of the snapshot that this is a fork of."""
        self._node_at: Final = node_at
        self._groups: Final = groups
        self._parent: Final = parent
        self.changes: Final[nodechanges.NodeChanges] = changes or nodechanges.NodeChanges(
            None if parent is None else parent.changes
        )
        """Changes of this aspect."""
        self._by_question: dict[Hashable, _Classes[Any]] = {}

    def classes(self, key: Hashable, ask: Callable[[NodeT], AnswerT], *, among: int) -> dict[AnswerT, int]:
        """Return nodes by their answer to a question. All nodes of ``among`` are included, and others may be.

        ``key`` must be equal only for equal questions, and ``ask`` may read nothing but the node and the key: the
        answers are kept for later pods and snapshots. The result must only be read, and at once.
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
        if self._groups is one_by_one and unanswered.bit_count() >= _MANY:
            self._settle_many(classes, ask, unanswered=unanswered)
            return
        # After most changes there is one node to ask.
        is_one = not unanswered & (unanswered - 1)
        for slot, same in ((unanswered.bit_length() - 1, unanswered),) if is_one else self._groups(unanswered):
            answer = ask(self._node_at(slot))
            masks[answer] = masks.get(answer, 0) | same
            classes.pending &= ~same

    def _settle_many(self, classes: _Classes[AnswerT], ask: Callable[[NodeT], AnswerT], *, unanswered: int) -> None:
        """Ask many nodes. The time grows with their number, not with its square."""
        size = (unanswered.bit_length() + 7) // 8
        members: dict[AnswerT, bytearray] = {}
        for slot in slots(unanswered):
            answer = ask(self._node_at(slot))
            content = members.get(answer)
            if content is None:
                content = members[answer] = bytearray(size)
            content[slot >> 3] |= 1 << (slot & 7)
        masks = classes.masks
        for answer, content in members.items():
            masks[answer] = masks.get(answer, 0) | int.from_bytes(content, "little")
        classes.pending &= ~unanswered

    def _new_classes(self) -> _Classes[Any]:
        if len(self._by_question) >= _QUESTIONS_REMEMBERED:
            # Questions asked since the last clean-up may stay, at most half of all.
            recent = [entry for entry in self._by_question.items() if entry[1].is_recent]
            self._by_question = dict(recent[-_QUESTIONS_REMEMBERED // 2 :])
            for classes in self._by_question.values():
                classes.is_recent = False
        return _Classes(self.changes.position)
