"""Recorded REST scenarios of a real API server, step by step against ours: codes, bodies and warnings are the same.

What differs on purpose is taken out on both sides and listed in docs/differences.md: the texts that describe the
columns of tables, and the address that a server says it has. Managed fields are compared wherever a recording has them,
but for their times; most recordings were made without, and there ours are left out.
"""

import re
from typing import Any

from tests.conformance import managedfields, vectors
from tests.conformance.vectors import Line
from tests.unit.server import client

VOLATILE = frozenset(
    {"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "time", "selfLink", "continue"}
)
OWN = frozenset({"description", "serverAddress"})
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@vectors.each("wire")
async def test_wire(case: Line) -> None:
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
            assert _normal(managedfields.as_recorded(answer.body, want["body"])) == _normal(want["body"])


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
            if key not in OWN
        }
    if isinstance(value, list):
        return [_normal(item) for item in value]
    return UID.sub("<uid>", value) if isinstance(value, str) else value
