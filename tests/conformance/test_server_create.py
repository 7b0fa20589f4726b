"""What a real API server answered to new objects, against ours over its whole path: code, causes, message, object.

The recordings were dry runs, all of the same name, on a cluster without nodes.
"""

from typing import Any

import pytest

from tests.conformance import vectors
from tests.unit.server import client

CASES = vectors.lines("apiserver-create.jsonl")
SERVER_SET = frozenset({"creationTimestamp", "managedFields", "uid"})


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in CASES])
async def test_create(case: dict[str, Any]) -> None:
    server = await client.start()
    answer = await server.call("POST", f"{case['path']}?dryRun=All", case["object"])
    assert answer.code == case["code"], answer.body
    if answer.code == 201:
        assert _stored(answer.body, case["object"]) == _stored(case["stored"], case["object"])
    else:
        want = case.get("status", {})
        assert _causes(answer.body) == _causes(want)
        assert answer.body["message"] == want.get("message", answer.body["message"])


def _causes(refusal: dict[str, Any]) -> set[tuple[str, str]]:
    causes = refusal.get("details", {}).get("causes", [])
    return {(cause.get("field", ""), cause["reason"]) for cause in causes}


def _stored(document: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The object without what is different every time; recordings leave out an empty status."""
    metadata = {key: value for key, value in document["metadata"].items() if key not in SERVER_SET}
    stored = {**_timeless(document, given), "metadata": metadata}
    if stored.get("status") == {}:
        del stored["status"]
    return stored


def _timeless(document: Any, given: Any) -> Any:
    """With the server's clock taken out, where the object had no time."""
    if isinstance(document, list):
        pairs = enumerate(document)
        return [_timeless(item, given[i] if isinstance(given, list) else None) for i, item in pairs]
    if not isinstance(document, dict):
        return document
    earlier = given if isinstance(given, dict) else {}
    return {
        key: "<now>" if key == "timeAdded" and key not in earlier else _timeless(value, earlier.get(key))
        for key, value in document.items()
    }
