"""Looking for stencils stops for a while where no two objects are alike; decisions leave nothing behind."""

import gc
import weakref

from drachma.server.pipeline import group, stencil


def _count_attempts(trial: stencil.Trial, intents: int, *, is_hit: bool) -> int:
    attempts = 0
    for _ in range(intents):
        if trial.is_due():
            attempts += 1
            trial.record(is_hit=is_hit)
    return attempts


def test_objects_that_are_alike_are_always_looked_for() -> None:
    assert _count_attempts(stencil.Trial(), 1000, is_hit=True) == 1000


def test_objects_that_differ_are_tried_now_and_then() -> None:
    trial = stencil.Trial()
    assert _count_attempts(trial, 64, is_hit=False) == 64
    assert _count_attempts(trial, 512, is_hit=False) == 0
    assert _count_attempts(trial, 528, is_hit=False) == 16


def test_a_hit_ends_the_pauses() -> None:
    trial = stencil.Trial()
    _count_attempts(trial, 64 + 512, is_hit=False)
    assert _count_attempts(trial, 100, is_hit=True) == 100


def test_a_group_is_freed_without_the_garbage_collector() -> None:
    decided = group.Group(lambda _key: None, stencil.Stencils())
    assert decided.decide([]) == []
    reference = weakref.ref(decided)
    gc.disable()
    try:
        del decided
        assert reference() is None
    finally:
        gc.enable()
