"""What a real API server stored of the objects it accepted: our decode, defaults and canonical form give the same."""

from datetime import UTC, datetime
from typing import Any

from drachma.api import codec, defaults
from tests.conformance import vectors
from tests.conformance.vectors import Line

NOW = datetime(2001, 2, 3, 4, 5, 6, 789, tzinfo=UTC)

# Set by the server's request handling, not by defaulting.
SERVER_SET = frozenset(
    {"creationTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields", "namespace", "resourceVersion"}
    | {"selfLink", "uid"}
)


def _comparable(document: Any, given: Any) -> Any:
    """The document without server-set metadata, and with the recording's clock where the object gave no time."""
    if isinstance(document, list):
        return [_comparable(item, given[i] if isinstance(given, list) else None) for i, item in enumerate(document)]
    if not isinstance(document, dict):
        return document
    earlier = given if isinstance(given, dict) else {}
    return {
        key: "<now>" if key == "timeAdded" and key not in earlier else _comparable(value, earlier.get(key))
        for key, value in document.items()
    }


def _is_accepted(case: Line) -> bool:
    return bool(case["code"] == 201)


@vectors.each("apiserver-create", where=_is_accepted)
def test_apiserver_create_stored_object(case: Line) -> None:
    given = codec.decode(case["object"])
    ours = codec.encode(defaults.canonical(defaults.apply(given, now=NOW)))
    expected = _comparable(case["stored"], case["object"])
    actual = _comparable(ours, case["object"])
    for document in (expected, actual):
        document["metadata"] = {k: v for k, v in document["metadata"].items() if k not in SERVER_SET}
    assert actual == expected


@vectors.each("apiserver-create", where=_is_accepted)
def test_apiserver_create_round_trip(case: Line) -> None:
    assert codec.encode(codec.decode(case["stored"])) == case["stored"]
    assert codec.unknown_fields(case["stored"]) == ()
