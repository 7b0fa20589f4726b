"""Classes of nodes, change logs and scores over sets of nodes."""

from hypothesis import given, settings
from hypothesis import strategies as st

from drachma.scheduler import changelog, nodeclass, scoring


@settings(max_examples=60)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("change"), st.integers(0, 7), st.integers(0, 3)),
            st.tuples(st.just("settle"), st.integers(0, 255), st.just(0)),
        ),
        max_size=40,
    )
)
def test_answers_are_those_of_the_nodes_as_they_are(steps: list[tuple[str, int, int]]) -> None:
    log = changelog.ChangeLog()
    nodes = [0] * 8
    asked: list[int] = []

    def ask(value: int) -> int:
        asked.append(value)
        return value

    classes: nodeclass.NodeClasses[int, int] = nodeclass.NodeClasses(ask, log)
    for step, number, value in steps:
        if step == "change":
            nodes[number] = value
            log.append(1 << number)
        else:
            masks = classes.settle(nodes, number)
            for slot in nodeclass.slots(number):
                assert masks[nodes[slot]] >> slot & 1
                assert sum(mask >> slot & 1 for mask in masks.values()) == 1


def test_only_what_changed_is_asked_again() -> None:
    log = changelog.ChangeLog()
    nodes = list(range(100))
    asked: list[int] = []

    def ask(node: int) -> bool:
        asked.append(node)
        return True

    classes: nodeclass.NodeClasses[int, bool] = nodeclass.NodeClasses(ask, log)
    everyone = (1 << 100) - 1
    classes.settle(nodes, everyone)
    asked.clear()
    log.append(1 << 7 | 1 << 70)
    classes.settle(nodes, everyone)
    assert asked == [7, 70]


def test_who_falls_far_behind_asks_everybody_again() -> None:
    log = changelog.ChangeLog()
    position = log.position
    for _ in range(20_000):
        log.append(1)
    assert log.since(position) == changelog.EVERYTHING
    assert log.since(log.position) == 0
    assert log.since(log.position - 3) == 1


def test_questions_of_long_ago_are_forgotten() -> None:
    questions: nodeclass.Questions[int] = nodeclass.Questions(changelog.ChangeLog())
    first = questions.of("first", bool)
    for number in range(2000):
        questions.of(number, bool)
        if number % 100 == 0:
            assert questions.of("first", bool) is first
    assert questions.of(1999, bool) is not questions.of(0, bool)


def test_normalized_scores() -> None:
    scores = {0: 0b0001, 5: 0b0010, 10: 0b0100, 20: 0b1000}
    assert scoring.normalized(scores, among=0b0111) == {0: 0b0001, 50: 0b0010, 100: 0b0100}
    assert scoring.normalized(scores, among=0b0111, less_is_better=True) == {100: 0b0001, 50: 0b0010, 0: 0b0100}
    assert scoring.normalized({0: 0b11}, among=0b11) == {0: 0b11}
    assert scoring.normalized({0: 0b11}, among=0b11, less_is_better=True) == {100: 0b11}


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12), st.integers(0, 20))
def test_the_best_total_wins(nodes: list[tuple[int, int]], start: int) -> None:
    first: dict[int, int] = {}
    second: dict[int, int] = {}
    for slot, (left, right) in enumerate(nodes):
        first[left] = first.get(left, 0) | 1 << slot
        second[right] = second.get(right, 0) | 1 << slot
    classes = scoring.split([(0, (1 << len(nodes)) - 1)], first, weight=3)
    best = scoring.best(scoring.split(classes, second))
    totals = [3 * left + right for left, right in nodes]
    # A plugin that says the same about all nodes changes nothing.
    assert [totals[slot] for slot in nodeclass.slots(best)] == [max(totals)] * best.bit_count()
    chosen = scoring.pick(best, start)
    assert best >> chosen & 1
