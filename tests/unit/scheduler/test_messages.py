"""Texts of events."""

from drachma.scheduler import messages


def test_events_are_cut() -> None:
    assert messages.note("x" * 1024) == "x" * 1024
    assert messages.note("x" * 1025) == "x" * 1020 + " ..."
