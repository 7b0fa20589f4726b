"""Classes of nodes: remembered answers are those of the current nodes, in every fork."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from drachma.scheduler.snapshot import nodechanges, nodeclass

EVERYONE = (1 << 8) - 1


class Numbers:
    """Eight nodes that are numbers, and the questions they were asked."""

    def __init__(self, parent: Numbers | None = None) -> None:
        self.asked: list[int] = []
        if parent is None:
            self.values = [0] * 8
            self.memory = nodeclass.ClassMemory[int](self.values.__getitem__)
        else:
            self.values = list(parent.values)
            self.memory = nodeclass.ClassMemory(self.values.__getitem__, parent=parent.memory)

    def change(self, slot: int, value: int) -> None:
        self.values[slot] = value
        self.memory.changes.append(1 << slot)

    def ask(self, question: str, among: int = EVERYONE) -> dict[int, int]:
        self.asked.clear()
        return self.memory.classes(question, self._answer, among=among)

    def _answer(self, value: int) -> int:
        self.asked.append(value)
        return value


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["change", "change", "ask", "ask", "fork"]),
            st.integers(0, 4),  # of the forks there are by then
            st.integers(0, 255),
            st.integers(0, 3),
        ),
        max_size=40,
    )
)
def test_answers_are_those_of_the_nodes_as_they_are(steps: list[tuple[str, int, int, int]]) -> None:
    forks = [Numbers()]
    for step, which, number, value in steps:
        numbers = forks[which % len(forks)]
        match step:
            case "change":
                numbers.change(number % 8, value)
            case "fork":
                forks.append(Numbers(numbers))
            case "ask":
                classes = numbers.ask("value", number)
                for slot in nodeclass.slots(number):
                    assert classes[numbers.values[slot]] >> slot & 1
                    assert sum(nodes >> slot & 1 for nodes in classes.values()) == 1


def test_only_what_changed_is_asked_again() -> None:
    numbers = Numbers()
    numbers.ask("q")
    assert len(numbers.asked) == 8
    numbers.change(1, 11)
    numbers.change(6, 16)
    numbers.ask("q")
    assert numbers.asked == [11, 16]


def test_a_fork_asks_only_what_differs() -> None:
    numbers = Numbers()
    numbers.ask("q")
    fork = Numbers(numbers)
    fork.change(3, 33)
    numbers.change(4, 44)
    assert fork.ask("q") == {0: EVERYONE & ~0b1000, 33: 0b1000}
    assert fork.asked == [33, 0]
    assert numbers.ask("q") == {0: EVERYONE & ~0b10000, 44: 0b10000}
    assert numbers.asked == [44]


def test_who_falls_far_behind_asks_everybody_again() -> None:
    changes = nodechanges.NodeChanges()
    position = changes.position
    fork = nodechanges.NodeChanges(changes)
    for _ in range(20_000):
        changes.append(1)
    assert changes.since(position) == nodechanges.EVERYTHING
    assert changes.since(changes.position) == 0
    assert changes.since(changes.position - 3) == 1
    assert fork.differing() == nodechanges.EVERYTHING


def test_questions_of_long_ago_are_forgotten() -> None:
    numbers = Numbers()
    numbers.ask("first", 1)
    numbers.ask("second", 1)
    for number in range(2000):
        numbers.ask(str(number), 1)
        if number % 100 == 0:
            numbers.ask("first", 1)
            assert not numbers.asked
    numbers.ask("second", 1)
    assert numbers.asked
