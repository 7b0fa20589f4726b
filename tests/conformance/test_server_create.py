"""What a real API server answered to new objects, against ours over its whole path: code, causes, message, object.

The recordings were dry runs, all of the same name, on a cluster without nodes.
"""

from typing import Any

from tests.conformance import managedfields, vectors
from tests.conformance.vectors import Line
from tests.unit.server import client

SERVER_SET = frozenset({"creationTimestamp", "uid"})


@vectors.each("apiserver-create")
async def test_apiserver_create(case: Line) -> None:
    server = await client.start()
    answer = await server.call("POST", f"{case['path']}?dryRun=All", case["object"])
    assert answer.code == case["code"], answer.body
    if answer.code == 201:
        ours = managedfields.as_recorded(answer.body, case["stored"])
        assert _stored(ours, case["object"]) == _stored(case["stored"], case["object"])
    else:
        # A recorded Status has no more than what differs from one refusal to another.
        assert {key: answer.body.get(key) for key in case["status"]} == case["status"]


def _stored(document: Line, given: Line) -> Line:
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
