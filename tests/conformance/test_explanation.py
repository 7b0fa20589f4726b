"""Explanations agree with the allocator on every recorded case, and with themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from drachma.allocator import explanation
from drachma.allocator.explanation import report
from drachma.cli import case as cases
from tests.conformance import vectors

_CASES = [*vectors.lines("allocator.jsonl"), *vectors.lines("allocator-random.jsonl")]
_BATCH = 200


def _outcome(answer: dict[str, Any]) -> str:
    # With invalid pools nothing fits either; here that is a reason, not an error.
    if "error" in answer and answer["error"] != "invalid resource pools were encountered":
        return "Error"
    return "Fits" if "results" in answer else "DoesNotFit"


def _problems(document: dict[str, Any]) -> list[str]:
    case = cases.Case(document)
    answer = case.answer()
    found = explanation.Explainer(case.allocator).explain(case.node, case.claims)
    assert explanation.render(found)
    assert json.dumps(explanation.to_document(found))
    problems: list[str] = []
    if found.outcome != _outcome(answer):
        problems.append(f"outcome {found.outcome}")
    ways = [[way for request in claim.requests for way in request.alternatives] for claim in found.claims]
    problems += (
        f"{way.name}: devices do not add up"
        for claim in ways
        for way in claim
        if len(way.usable) + sum(entry.count for entry in way.obstacles) != way.considered
    )
    for claim, result in zip(ways, answer.get("results", ()), strict=False):
        usable = {(way.name, device) for way in claim for device in way.usable}
        for entry in result["devices"].get("results", ()):
            device = f"{entry['driver']}/{entry['pool']}/{entry['device']}"
            if (entry["request"], device) not in usable:
                problems.append(f"{entry['request']}: {device} was allocated and is not called usable")
    if found.outcome is report.Outcome.DOES_NOT_FIT:
        if found.conflict is None or not found.conflict.parts:
            problems.append("no conflict")
        if not found.is_complete:
            problems.append("the budget was not enough")
    return problems


@pytest.mark.parametrize(
    "some",
    [
        pytest.param(_CASES[start : start + _BATCH], id=f"{_CASES[start]['name']}-and-following")
        for start in range(0, len(_CASES), _BATCH)
    ],
)
def test_explanations_agree_with_answers(some: list[dict[str, Any]]) -> None:
    assert {case["name"]: problems for case in some if (problems := _problems(case))} == {}
