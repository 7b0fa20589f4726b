"""The allocator gives the answers of kube-scheduler's allocator, case by case, down to error messages."""

from __future__ import annotations

from typing import Any

import pytest

from drachma.cli import case as cases
from tests.conformance import vectors

_NAMED = vectors.lines("allocator.jsonl")
_RANDOM = vectors.lines("allocator-random.jsonl")
_BATCH = 100


def _recorded(case: dict[str, Any]) -> dict[str, Any]:
    recorded: dict[str, Any] = {key: case[key] for key in ("results", "error") if key in case}
    for result in recorded.get("results", ()):
        for device in result["devices"].get("results", ()):
            if "shareID" in device:
                device["shareID"] = cases.SHARE_ID
    return recorded


def _restore(case: dict[str, Any]) -> dict[str, Any]:
    """Put back what recording lost: JSON leaves an empty list out, and the case is about one."""
    if case["name"] == "list-attributes-distinct-constaint-with-empty-or-unknown-type":
        case["slices"][0]["spec"]["devices"][0]["attributes"]["driverVersion"]["versions"] = []
    return case


@pytest.mark.parametrize("case", [pytest.param(_restore(case), id=case["name"]) for case in _NAMED])
def test_named_case(case: dict[str, Any]) -> None:
    assert cases.Case(case).answer() == _recorded(case)


@pytest.mark.parametrize(
    "some",
    [
        pytest.param(_RANDOM[start : start + _BATCH], id=f"{_RANDOM[start]['name']}-and-following")
        for start in range(0, len(_RANDOM), _BATCH)
    ],
)
def test_random_cases(some: list[dict[str, Any]]) -> None:
    answers = {case["name"]: cases.Case(case).answer() for case in some}
    wanted = {case["name"]: _recorded(case) for case in some}
    assert {name: (answers[name], wanted[name]) for name in answers if answers[name] != wanted[name]} == {}
