"""What people read."""

import pytest

from drachma.scheduler import messages
from drachma.scheduler.decision import Diagnosis
from drachma.scheduler.verdict import Rejection


@pytest.mark.parametrize(
    ("diagnosis", "after", "want"),
    [
        pytest.param(Diagnosis(0), "", "no nodes available to schedule pods", id="no-nodes"),
        pytest.param(
            Diagnosis(3, Rejection("P", ("something is missing",))),
            "preemption: no.",
            "0/3 nodes are available: something is missing. preemption: no.",
            id="before-any-node",
        ),
        pytest.param(
            Diagnosis(12, None, ((Rejection("P", ("b", "a")), 0b1), (Rejection("Q", ("a",)), 0b111_1111_1110))),
            "",
            "0/12 nodes are available: 1 b, 11 a.",
            id="reasons-are-counted-and-sorted-as-texts",
        ),
        pytest.param(
            Diagnosis(5, None, ((Rejection("P", ("a",)), 0b1),), (Rejection("Q", ("z",)), 4)),
            "",
            "0/5 nodes are available: 1 a, 4 z.",
            id="nodes-not-looked-at",
        ),
    ],
)
def test_unfit(diagnosis: Diagnosis, after: str, want: str) -> None:
    assert messages.unfit(diagnosis, after) == want


def test_events_are_cut() -> None:
    assert messages.note("x" * 1024) == "x" * 1024
    assert messages.note("x" * 1025) == "x" * 1020 + " ..."


def test_plugins_of_a_diagnosis() -> None:
    diagnosis = Diagnosis(5, None, ((Rejection("P", ("a",)), 0b11), (Rejection("Q", ("b",), True), 0b100)))
    assert diagnosis.plugins == {"P", "Q"}
    assert diagnosis.resolvable == 0b100
