"""Setting a condition, typed and as a document."""

import datetime as dt
from collections.abc import Sequence

import msgspec
import pytest

from drachma.api import hooks, meta
from drachma.claims import conditions

EARLIER = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
NOW = dt.datetime(2026, 1, 2, 3, 4, 5, 678, tzinfo=dt.UTC)
SECOND = NOW.replace(microsecond=0)


def a_condition(kind: str, status: str, since: dt.datetime, reason: str = "Old") -> meta.Condition:
    return meta.Condition(type=kind, status=status, reason=reason, message="m", last_transition_time=since)


PUT = [
    pytest.param([], a_condition("A", "True", SECOND), [a_condition("A", "True", SECOND)], id="the-first"),
    pytest.param(
        [a_condition("A", "True", EARLIER)],
        a_condition("B", "True", SECOND),
        [a_condition("A", "True", EARLIER), a_condition("B", "True", SECOND)],
        id="another-type-goes-to-the-end",
    ),
    pytest.param(
        [a_condition("A", "True", EARLIER), a_condition("B", "True", EARLIER)],
        a_condition("A", "False", SECOND, reason="New"),
        [a_condition("A", "False", SECOND, reason="New"), a_condition("B", "True", EARLIER)],
        id="another-status-has-a-new-time",
    ),
    pytest.param(
        [a_condition("A", "True", EARLIER)],
        a_condition("A", "True", SECOND, reason="New"),
        [a_condition("A", "True", EARLIER, reason="New")],
        id="the-same-status-keeps-its-time",
    ),
]


@pytest.mark.parametrize(("before", "new", "want"), PUT)
def test_put(before: Sequence[meta.Condition], new: meta.Condition, want: Sequence[meta.Condition]) -> None:
    assert conditions.put(before, new) == tuple(want)


@pytest.mark.parametrize(("before", "new", "want"), PUT)
def test_put_document(before: Sequence[meta.Condition], new: meta.Condition, want: Sequence[meta.Condition]) -> None:
    documents = [msgspec.to_builtins(each, enc_hook=hooks.encode) for each in before]
    result = conditions.put_document(documents, msgspec.to_builtins(new, enc_hook=hooks.encode))
    assert result == [msgspec.to_builtins(each, enc_hook=hooks.encode) for each in want]


@pytest.mark.parametrize(
    ("before", "want"),
    [
        pytest.param(None, "2026-01-02T03:04:05Z", id="new"),
        pytest.param(a_condition("A", "False", EARLIER), "2026-01-02T03:04:05Z", id="changed"),
        pytest.param(a_condition("A", "True", EARLIER), "2026-01-01T00:00:00Z", id="unchanged"),
    ],
)
def test_document(before: meta.Condition | None, want: str) -> None:
    made = conditions.document("A", "True", reason="R", message="m", now=NOW, before=before)
    assert made == {"type": "A", "status": "True", "lastTransitionTime": want, "reason": "R", "message": "m"}
