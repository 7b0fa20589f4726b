"""Diagnoses: reasons why pods fit nowhere, and the messages for users."""

import pytest

from drachma.scheduler.framework.diagnosis import Diagnosis
from drachma.scheduler.framework.verdict import Rejection


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
def test_message(diagnosis: Diagnosis, after: str, want: str) -> None:
    assert diagnosis.message(after) == want


def test_plugins_of_a_diagnosis() -> None:
    diagnosis = Diagnosis(5, None, ((Rejection("P", ("a",)), 0b11), (Rejection("Q", ("b",), True), 0b100)))
    assert diagnosis.plugins == {"P", "Q"}
    assert diagnosis.resolvable == 0b100
