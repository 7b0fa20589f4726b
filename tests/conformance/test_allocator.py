"""The allocator gives the answers of kube-scheduler's allocator, case by case, down to error messages."""

from __future__ import annotations

from drachma.offline import allocatorcase
from tests.conformance import vectors
from tests.conformance.vectors import Line


@vectors.each("allocator")
def test_allocator(case: Line) -> None:
    assert allocatorcase.AllocatorCase(case).answer() == recorded(case)


@vectors.each("allocator-random")
def test_allocator_random(case: Line) -> None:
    assert allocatorcase.AllocatorCase(case).answer() == recorded(case)


def recorded(case: Line) -> Line:
    """The recorded answer, with the share ids that answers have here."""
    answer: Line = {key: case[key] for key in ("results", "error") if key in case}
    for result in answer.get("results", ()):
        for device in result["devices"].get("results", ()):
            if "shareID" in device:
                device["shareID"] = allocatorcase.SHARE_ID
    return answer
