"""Conditions: time moves with the status only, and long messages are cut."""

from datetime import UTC, datetime

from drachma.api import meta
from drachma.queueing import conditions

_EARLY = datetime(2026, 1, 1, tzinfo=UTC)
_LATE = datetime(2026, 1, 2, tzinfo=UTC)


def _condition(status: conditions.Status, *, message: str = "", now: datetime = _EARLY) -> meta.Condition:
    return conditions.make("QuotaReserved", status, reason="R", message=message, generation=1, now=now)


def test_another_message_keeps_the_time() -> None:
    before = (_condition("False", message="one"),)

    after, is_change = conditions.put(before, _condition("False", message="two", now=_LATE))

    assert is_change
    assert after[0].message == "two"
    assert after[0].last_transition_time == _EARLY


def test_another_status_moves_the_time() -> None:
    after, is_change = conditions.put((_condition("False"),), _condition("True", now=_LATE))

    assert is_change
    assert after[0].last_transition_time == _LATE


def test_the_same_again_is_no_change() -> None:
    before = (_condition("False"),)

    assert conditions.put(before, _condition("False", now=_LATE)) == (before, False)


def test_a_message_is_cut_where_kubernetes_would_refuse_it() -> None:
    condition = _condition("False", message="ä" * 20_000)

    assert len(condition.message.encode()) <= 32 * 1024
    assert condition.message.endswith(" ...")
