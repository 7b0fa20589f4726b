"""What is found out for a write while it is decided: what others answered, and what was drawn by chance.

Deciding is a function of what it is shown, and may have to be done anew. A step that needs an answer from outside asks
for it by value: where the answer is there, it goes on; where it is not, deciding stops with :class:`PendingError`,
which carries the questions. Whoever has the write decided gets them answered and has it decided again, with the answers
at hand. So writes about which nobody is asked pay nothing, and nobody is asked the same twice.

Names and uids that are drawn for a new object stay the same, as long as they are of use: questions are about them.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, TypeVar

_T = TypeVar("_T")

_OPEN: Final = object()


class PendingError(Exception):
    """Deciding has to wait for answers to these questions, which belong to a consultation."""

    def __init__(self, consultation: "Consultation", questions: Sequence[Hashable]) -> None:
        super().__init__(f"{len(questions)} questions are to be answered first")
        self.consultation: Final = consultation
        self.questions: Final = questions


class Consultation:
    """One for each write."""

    __slots__ = ("_answers", "_drawn")

    def __init__(self) -> None:
        self._answers: dict[Hashable, Any] = {}
        self._drawn: dict[str, Any] = {}

    def answers(self, *questions: Hashable) -> list[Any]:
        """The answers to all questions, in their order.

        Raises:
            PendingError: some are not answered yet.
        """
        answers = [self._answers.get(each, _OPEN) for each in questions]
        open_ = [question for question, answer in zip(questions, answers, strict=True) if answer is _OPEN]
        if open_:
            raise PendingError(self, open_)
        return answers

    def forget(self, question: Hashable) -> None:
        """Has a question asked again."""
        self._answers.pop(question, None)

    def hear(self, question: Hashable, answer: object) -> None:
        """Takes the answer to a question."""
        self._answers[question] = answer

    def draw(self, what: str, make: Callable[[], _T]) -> _T:
        """What ``make`` draws, drawn once."""
        drawn = self._drawn
        if what not in drawn:
            drawn[what] = make()
        value: _T = drawn[what]
        return value

    def redraw(self) -> None:
        """Forgets what was drawn, because it cannot be used: the name is taken."""
        self._drawn.clear()
