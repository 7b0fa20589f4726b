"""Caches share one limit in bytes."""

import gc

import pytest

from drachma import errors
from drachma.bounds import memory

MIB = 2**20


def test_a_value_is_found_again() -> None:
    cache = memory.Cache[str, int]("numbers", memory.Memory())
    cache.put("one", 1, size=10)
    assert cache.get("one") == 1
    assert cache.get("two") is None


def test_the_least_recently_used_entry_goes_first() -> None:
    cache = memory.Cache[str, int]("numbers", memory.Memory(MIB))
    for name in "abcdefghi":
        cache.put(name, 1, size=MIB // 9)
        cache.get("a")
    assert cache.get("a") == 1
    assert cache.get("b") is None
    assert cache.size <= MIB


def test_caches_share_the_limit_and_the_largest_gives_way() -> None:
    room = memory.Memory(MIB)
    large, small = memory.Cache[int, int]("large", room), memory.Cache[int, int]("small", room)
    small.put(0, 0, size=1000)
    for number in range(100):
        large.put(number, number, size=20_000)
    assert small.get(0) == 0
    assert sum(room.sizes().values()) <= MIB
    assert large.get(99) == 99


def test_an_entry_that_is_too_large_is_not_kept_and_drives_nothing_out() -> None:
    cache = memory.Cache[str, int]("numbers", memory.Memory(MIB))
    cache.put("small", 1, size=10)
    cache.put("large", 2, size=MIB // 2)
    assert cache.get("large") is None
    assert cache.get("small") == 1


def test_a_new_value_takes_the_place_of_the_old_one() -> None:
    cache = memory.Cache[str, int]("numbers", memory.Memory())
    cache.put("one", 1, size=10_000)
    cache.put("one", 2, size=10)
    assert (cache.get("one"), len(cache), cache.size) == (2, 1, 10 + memory.ENTRY_OVERHEAD)


def test_removed_entries_and_caches_hold_nothing() -> None:
    room = memory.Memory()
    cache = memory.Cache[str, int]("numbers", room)
    cache.put("one", 1, size=10)
    cache.put("two", 2, size=10)
    cache.remove("one")
    cache.remove("three")
    assert room.sizes() == {"numbers": 10 + memory.ENTRY_OVERHEAD}
    cache.clear()
    assert room.sizes() == {"numbers": 0}
    del cache
    gc.collect()
    assert room.sizes() == {}


def test_caches_of_one_name_are_counted_together() -> None:
    room = memory.Memory()
    caches = [memory.Cache[int, int]("numbers", room) for _ in range(2)]
    for cache in caches:
        cache.put(1, 1, size=44)
    assert room.sizes() == {"numbers": 2 * (44 + memory.ENTRY_OVERHEAD)}


def test_a_lower_limit_takes_effect_at_once() -> None:
    room = memory.Memory(8 * MIB)
    cache = memory.Cache[int, int]("numbers", room)
    for number in range(8):
        cache.put(number, number, size=MIB // 2)
    room.limit = MIB
    assert cache.size <= MIB
    assert cache.get(7) == 7


def test_a_limit_that_holds_nothing_is_refused() -> None:
    with pytest.raises(errors.InvalidValueError, match="cache limit 10: must be at least 1048576 bytes"):
        memory.Memory().limit = 10


def test_results_for_long_texts_are_not_kept() -> None:
    calls: list[str] = []

    @memory.remember(entries=10, longest=3)
    def shout(text: str) -> str:
        calls.append(text)
        return text.upper()

    assert [shout(text) for text in ("abc", "abc", "abcd", "abcd")] == ["ABC", "ABC", "ABCD", "ABCD"]
    assert calls == ["abc", "abcd", "abcd"]
