"""Pauses between tries."""

import random

from drachma.client import backoff


def test_pauses_grow_to_a_limit_and_begin_anew() -> None:
    pauses = backoff.Pauses(backoff.Backoff(initial=1, factor=3, maximum=10, jitter=0), random.Random(1))
    assert [pauses.next() for _ in range(4)] == [1, 3, 9, 10]
    pauses.reset()
    assert pauses.next() == 1


def test_jitter_spreads_and_never_shortens() -> None:
    pauses = backoff.Pauses(backoff.Backoff(initial=1, factor=1, maximum=1, jitter=0.5), random.Random(1))
    seconds = [pauses.next() for _ in range(200)]
    assert all(1 <= pause <= 1.5 for pause in seconds)
    assert max(seconds) - min(seconds) > 0.4
