"""The allocator gives the answers of kube-scheduler's allocator, case by case, down to error messages."""

from __future__ import annotations

from drachma.cli import case as cases
from tests.conformance import vectors
from tests.conformance.vectors import Line


@vectors.each("allocator")
def test_allocator(case: Line) -> None:
    assert cases.Case(case).answer() == recorded(case)


@vectors.each("allocator-random")
def test_allocator_random(case: Line) -> None:
    assert cases.Case(case).answer() == recorded(case)


def recorded(case: Line) -> Line:
    """The recorded answer, with the share ids that answers have here."""
    answer: Line = {key: case[key] for key in ("results", "error") if key in case}
    for result in answer.get("results", ()):
        for device in result["devices"].get("results", ()):
            if "shareID" in device:
                device["shareID"] = cases.SHARE_ID
    return answer
