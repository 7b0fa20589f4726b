"""Explanations agree with the allocator on every recorded case, and with themselves."""

from __future__ import annotations

import json

from drachma.allocator import explanation
from drachma.allocator.explanation import report
from drachma.offline import allocatorcase
from tests.conformance import vectors
from tests.conformance.vectors import Line


@vectors.each("allocator")
def test_allocator_explained(case: Line) -> None:
    assert problems(case) == []


@vectors.each("allocator-random")
def test_allocator_random_explained(case: Line) -> None:
    assert problems(case) == []


def problems(document: Line) -> list[str]:
    """What an explanation says that the answer does not, or that does not add up."""
    case = allocatorcase.AllocatorCase(document)
    answer = case.answer()
    explained = explanation.Explainer(case.allocator).explain(case.node, case.claims)
    assert explanation.render(explained)
    assert json.dumps(explanation.to_document(explained))
    result: list[str] = []
    if explained.outcome != _outcome(answer):
        result.append(f"outcome {explained.outcome}")
    ways = [[way for request in claim.requests for way in request.alternatives] for claim in explained.claims]
    result += (
        f"{way.name}: devices do not add up"
        for claim in ways
        for way in claim
        if len(way.usable) + sum(entry.count for entry in way.obstacles) != way.considered
    )
    for claim, allocation in zip(ways, answer.get("results", ()), strict=False):
        usable = {(way.name, device) for way in claim for device in way.usable}
        for entry in allocation["devices"].get("results", ()):
            device = f"{entry['driver']}/{entry['pool']}/{entry['device']}"
            if (entry["request"], device) not in usable:
                result.append(f"{entry['request']}: {device} was allocated and is not called usable")
    if explained.outcome is report.Outcome.DOES_NOT_FIT:
        if explained.conflict is None or not explained.conflict.parts:
            result.append("no conflict")
        if not explained.is_complete:
            result.append("the budget was not enough")
    return result


def _outcome(answer: Line) -> str:
    # With invalid pools nothing fits either; here that is a reason, not an error.
    if "error" in answer and answer["error"] != "invalid resource pools were encountered":
        return "Error"
    return "Fits" if "results" in answer else "DoesNotFit"
