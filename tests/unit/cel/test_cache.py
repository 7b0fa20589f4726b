"""The cache of compiled programs."""

import threading

import pytest

from drachma import cel
from drachma.bounds import memory
from tests.unit.cel import running


def test_a_program_is_compiled_once() -> None:
    cache = cel.Cache(running.ENV)
    assert cache.selector("true") is cache.selector("true")
    assert cache.selector("true") is not cache.derivation("true")
    assert len(cache) == 2


def test_the_least_recently_used_go_first() -> None:
    cache = cel.Cache(running.ENV, limits=memory.Memory(memory.LEAST_LIMIT))
    first, second = cache.selector("true"), cache.selector("false")
    for number in range(60):
        assert cache.selector("true") is first
        cache.selector(f"{number} == {number}")
    assert len(cache) < 62
    assert cache.selector("true") is first
    assert cache.selector("false") is not second


def test_refusals_are_remembered_and_raised_anew() -> None:
    cache = cel.Cache(running.ENV)
    caught = []
    for _ in range(2):
        with pytest.raises(cel.CompilationError) as refused:
            cache.selector('int("x") == 1')
        caught.append(refused.value)
    assert caught[0] is not caught[1]
    assert str(caught[0]) == str(caught[1])
    assert caught[0].internal
    assert caught[1].internal
    assert len(cache) == 1


def test_a_long_expression_takes_more_room_than_a_short_one() -> None:
    room = memory.Memory()
    cache = cel.Cache(running.ENV, limits=room)
    cache.selector("true")
    short = room.sizes()["expressions"]
    cache.selector(" && ".join(["true"] * 100))
    assert room.sizes()["expressions"] > 10 * short


def test_threads_share_one_program() -> None:
    cache = cel.Cache(running.ENV)
    start = threading.Barrier(8)
    found: list[cel.Program] = []

    def work() -> None:
        start.wait()
        found.extend(cache.selector(f"{number} == {number}") for number in range(20))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cache) == 20
    assert len(found) == 160
    assert len(set(map(id, found))) == 20
