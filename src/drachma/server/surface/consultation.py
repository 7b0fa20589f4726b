"""Answers and random values that a write depends on, kept while the write is decided.

Deciding a write is a pure function that may run several times. A step that needs an answer from outside, for instance
from a webhook, looks it up by value. If the answer is absent, deciding stops with :class:`PendingError`, which carries
the questions; the caller has them answered and decides again. So a write without questions costs nothing, and no
question is asked twice.

Random names and uids of a new object stay the same across decisions, because questions depend on them.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, TypeVar

_T = TypeVar("_T")

_OPEN: Final = object()


class PendingError(Exception):
    """Deciding needs answers to these questions first."""

    def __init__(self, consultation: "Consultation", questions: Sequence[Hashable]) -> None:
        super().__init__(f"{len(questions)} questions are to be answered first")
        self.consultation: Final = consultation
        self.questions: Final = questions


class Consultation:
    """Answers and random values of one write."""

    __slots__ = ("_answers", "_drawn")

    def __init__(self) -> None:
        self._answers: dict[Hashable, Any] = {}
        self._drawn: dict[str, Any] = {}

    def answers(self, *questions: Hashable) -> list[Any]:
        """Return the answers to all questions, in order.

        Raises:
            PendingError: some are absent.
        """
        answers = [self._answers.get(each, _OPEN) for each in questions]
        open_ = [question for question, answer in zip(questions, answers, strict=True) if answer is _OPEN]
        if open_:
            raise PendingError(self, open_)
        return answers

    def forget(self, question: Hashable) -> None:
        """Drop an answer, so that the question is asked again."""
        self._answers.pop(question, None)

    def record_answer(self, question: Hashable, answer: object) -> None:
        """Record the answer to a question."""
        self._answers[question] = answer

    def draw(self, what: str, make: Callable[[], _T]) -> _T:
        """Return the random value of a name, made by ``make`` the first time."""
        drawn = self._drawn
        if what not in drawn:
            drawn[what] = make()
        value: _T = drawn[what]
        return value

    def redraw(self) -> None:
        """Drop all random values, because the name is already in use."""
        self._drawn.clear()
