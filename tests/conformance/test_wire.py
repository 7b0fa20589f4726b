"""Recorded REST scenarios of a real API server, step by step against ours: codes, bodies and warnings are the same.

What differs on purpose is taken out on both sides and listed in docs/differences.md: the texts that describe the
columns of tables, and the address that a server says it has.
"""

import re
from typing import Any

import pytest

from tests.conformance import vectors
from tests.unit.server import client

CASES = vectors.lines("wire.jsonl")
VOLATILE = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "time", "selfLink", "continue"}
)
OWN = frozenset({"description", "serverAddress"})
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES])
async def test_scenario(case: dict[str, Any]) -> None:
    server = await client.start()
    saved: dict[str, str] = {}
    for step, want in zip(case["steps"], case["answers"], strict=True):
        filled = _filled(step, saved)
        answer = await server.call(
            filled["method"],
            filled["path"],
            filled.get("body"),
            content_type=filled.get("contentType", "application/json"),
            headers={"accept": filled.get("accept", "application/json")},
        )
        saved.update({name: _dig(answer.body, path) for name, path in step.get("save", {}).items()})
        assert answer.code == want["code"], answer.body
        assert answer.header("warning") == want["warning"]
        if want["body"] is not None:
            assert _normal(answer.body) == _normal(want["body"])


def _filled(value: Any, saved: dict[str, str]) -> Any:
    if isinstance(value, str):
        for name, text in saved.items():
            value = value.replace("${" + name + "}", text)
        return value
    if isinstance(value, dict):
        return {key: _filled(item, saved) for key, item in value.items()}
    return [_filled(item, saved) for item in value] if isinstance(value, list) else value


def _dig(value: Any, path: str) -> str:
    for name in path.split("."):
        value = value[int(name)] if isinstance(value, list) else value[name]
    return str(value)


def _normal(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: f"<{key}>" if key in VOLATILE and item not in (None, "") else _normal(item)
            for key, item in value.items()
            if key not in OWN and key != "managedFields"
        }
    if isinstance(value, list):
        return [_normal(item) for item in value]
    return UID.sub("<uid>", value) if isinstance(value, str) else value
