"""Trial memory: answers about single nodes from dry runs, for as long as the nodes stay as they were.

A dry run asks all filters about one node with other pods on it: with the pods nominated for it, or without the pods
that may be evicted. That costs about a millisecond, and the next pod of the same shape asks the same. The answer holds
while the node, its pods and the nominated pods are the same objects, so forks of a snapshot share the memory.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from drachma.api import node as nodes
from drachma.scheduler.snapshot import nodeinfo, podinfo

AnswerT = TypeVar("AnswerT")

_QUESTIONS_REMEMBERED: Final = 8


class _Kept(NamedTuple, Generic[AnswerT]):
    """Answer of a node, with everything that it depends on apart from the question."""

    node: nodes.Node
    revision: int
    nominees: Sequence[podinfo.PodInfo]
    answer: AnswerT

    def holds(self, info: nodeinfo.NodeInfo, nominees: Sequence[podinfo.PodInfo]) -> bool:
        return (
            self.revision == info.ledger.revision
            and self.node is info.node
            and len(self.nominees) == len(nominees)
            and all(map(operator.is_, self.nominees, nominees))
        )


class Answers(Generic[AnswerT]):
    """Answers of nodes to one question."""

    __slots__ = ("_by_node",)

    def __init__(self) -> None:
        self._by_node: Final[dict[str, _Kept[AnswerT]]] = {}

    def find(self, info: nodeinfo.NodeInfo, nominees: Sequence[podinfo.PodInfo]) -> AnswerT | None:
        """Return the answer of a node with these nominated pods, or None if it was not kept or may be outdated."""
        trial = self._by_node.get(info.name)
        return trial.answer if trial is not None and trial.holds(info, nominees) else None

    def keep(self, info: nodeinfo.NodeInfo, nominees: Sequence[podinfo.PodInfo], answer: AnswerT) -> None:
        """Keep the answer of a node as it is now."""
        self._by_node[info.name] = _Kept(info.node, info.ledger.revision, nominees, answer)


class TrialMemory:
    """Answers to recent questions."""

    def __init__(self) -> None:
        self._by_question: Final[dict[Hashable, Answers[object]]] = {}

    def answers(self, key: Hashable, kind: type[AnswerT]) -> Answers[AnswerT]:
        """Return the answers of one kind to a question. ``key`` must be equal only for equal questions."""
        question = kind, key
        answers = self._by_question.pop(question, None)
        if answers is None:
            answers = Answers()
            while len(self._by_question) >= _QUESTIONS_REMEMBERED:
                del self._by_question[next(iter(self._by_question))]
        # The questions stay in the order of their last use.
        self._by_question[question] = answers
        return answers  # type: ignore[return-value]
