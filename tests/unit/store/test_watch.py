"""The contract of watches, on both stores."""

import asyncio

import pytest

from drachma import errors, store
from tests.unit.store import conftest

CLAIMS = "resource.k8s.io/resourceclaims"


def claim(name: str, namespace: str = "default") -> store.Key:
    return store.Key(CLAIMS, namespace, name)


def told(event: store.Event) -> tuple[str, str, int]:
    return (event.change, event.record.key.name, event.revision)


async def take(watch: store.Watch, count: int) -> list[tuple[str, str, int]]:
    return [told(await anext(watch)) for _ in range(count)]


async def test_a_watch_tells_past_and_new_events_in_order(objects: store.Store) -> None:
    made = await objects.create(claim("a"), store.fixed(b"1"))
    watch = objects.watch(CLAIMS, after=1)
    changed = await objects.update(claim("a"), store.fixed(b"2"), revision=2)
    await objects.create(store.Key("pods", "default", "p"), store.fixed(b"3"))
    reader = asyncio.create_task(take(watch, 3))
    await asyncio.sleep(0)
    await objects.delete(claim("a"))
    assert await reader == [("ADDED", "a", 2), ("MODIFIED", "a", 3), ("DELETED", "a", 5)]
    again = [await anext(objects.watch(CLAIMS, after=after)) for after in (1, 2, 4)]
    assert [event.previous for event in again] == [None, made, changed]


async def test_what_is_ready_is_handed_out_without_waiting_and_once(objects: store.Store) -> None:
    watch = objects.watch(CLAIMS, after=1)
    assert list(watch.ready()) == []
    await objects.create(claim("a"), store.fixed(b"1"))
    await objects.create(claim("b"), store.fixed(b"1"))
    assert told(await anext(watch)) == ("ADDED", "a", 2)
    assert [told(event) for event in watch.ready()] == [("ADDED", "b", 3)]
    assert list(watch.ready()) == []
    await objects.create(claim("c"), store.fixed(b"1"))
    watch.close()
    assert list(watch.ready()) == []


async def test_nothing_is_ready_for_who_fell_behind(objects: store.Store) -> None:
    watch = objects.watch(CLAIMS, after=1)
    await objects.create(claim("a"), store.fixed(b"1"))
    await objects.compact(2)
    assert list(watch.ready()) == []
    with pytest.raises(errors.GoneError):
        await watch.batch()


async def test_a_watch_of_a_namespace_tells_only_of_it(objects: store.Store) -> None:
    watch = objects.watch(CLAIMS, "a", after=1)
    reader = asyncio.create_task(take(watch, 2))
    await asyncio.sleep(0)
    for namespace in ("a", "b", "c", "a"):
        await objects.create(claim(f"of-{objects.revision}", namespace), store.fixed(b"1"))
    assert await reader == [("ADDED", "of-1", 2), ("ADDED", "of-4", 5)]


async def test_a_watch_from_a_revision_not_reached_skips_up_to_it(objects: store.Store) -> None:
    watch = objects.watch(CLAIMS, after=3)
    for name in ("a", "b", "c"):
        await objects.create(claim(name), store.fixed(b"1"))
    assert await take(watch, 1) == [("ADDED", "c", 4)]


async def test_events_are_told_once_they_are_committed_and_not_before(objects: store.Store) -> None:
    watch = objects.watch(CLAIMS, after=1)
    writer = asyncio.create_task(objects.create(claim("a"), store.fixed(b"1")))
    await asyncio.sleep(0)
    assert watch.revision == 1
    assert objects.get(claim("a")) is None
    event = await anext(watch)
    assert objects.get(claim("a")) is event.record
    assert await writer is event.record


async def test_the_revision_of_a_watch_is_fit_to_resume_from(objects: store.Store) -> None:
    watch = objects.watch(CLAIMS, "a", after=1)
    await objects.create(claim("x", "b"), store.fixed(b"1"))
    assert watch.revision == 2
    await objects.create(claim("y", "a"), store.fixed(b"1"))
    await objects.create(claim("z", "a"), store.fixed(b"1"))
    assert watch.revision == 2
    await anext(watch)
    assert watch.revision == 3
    assert await take(objects.watch(CLAIMS, "a", after=watch.revision), 1) == [("ADDED", "z", 4)]
    assert await take(watch, 1) == [("ADDED", "z", 4)]
    await objects.create(store.Key("pods", "a", "p"), store.fixed(b"1"))
    assert watch.revision == 5


async def test_a_watch_from_before_compaction_is_gone(objects: store.Store) -> None:
    await objects.create(claim("a"), store.fixed(b"1"))
    await objects.create(claim("b"), store.fixed(b"1"))
    await objects.compact(3)
    with pytest.raises(errors.GoneError, match="resourceclaims: revision 2 is compacted, the oldest kept is 3"):
        objects.watch(CLAIMS, after=2)
    objects.watch(CLAIMS, after=3)


async def test_a_slow_watcher_is_cut_and_others_are_not(open_store: conftest.Open) -> None:
    objects = await open_store(store.Limits(history_events=20))
    slow = objects.watch(CLAIMS, after=1)
    quick = objects.watch(CLAIMS, after=1)
    elsewhere = objects.watch(CLAIMS, "elsewhere", after=1)
    waiting = asyncio.create_task(take(elsewhere, 1))
    seen = []
    for number in range(100):
        await objects.create(claim(f"c{number}"), store.fixed(b"1"))
        seen += await take(quick, 1)
    assert [revision for _, _, revision in seen] == list(range(2, 102))
    with pytest.raises(errors.GoneError, match="revision 1 is compacted"):
        await anext(slow)
    with pytest.raises(StopAsyncIteration):
        await anext(slow)
    await objects.create(claim("late", "elsewhere"), store.fixed(b"1"))
    assert await waiting == [("ADDED", "late", 102)]


async def test_a_watcher_cut_in_a_batch_still_gets_the_batch_it_holds(open_store: conftest.Open) -> None:
    objects = await open_store(store.Limits(history_events=20))
    for number in range(4):
        await objects.create(claim(f"c{number}"), store.fixed(b"1"))
    slow = objects.watch(CLAIMS, after=1)
    await anext(slow)
    for number in range(4, 50):
        await objects.create(claim(f"c{number}"), store.fixed(b"1"))
    assert [revision for _, _, revision in await take(slow, 3)] == [3, 4, 5]
    with pytest.raises(errors.GoneError, match="revision 5 is compacted"):
        await anext(slow)


async def test_a_cancelled_reader_loses_no_event(objects: store.Store) -> None:
    watch = objects.watch(CLAIMS, after=1)
    reader = asyncio.create_task(take(watch, 1))
    await asyncio.sleep(0)
    writer = asyncio.create_task(objects.create(claim("a"), store.fixed(b"1")))
    await asyncio.sleep(0)
    reader.cancel()
    await writer
    assert await take(watch, 1) == [("ADDED", "a", 2)]


async def test_two_tasks_cannot_wait_on_one_watch(objects: store.Store) -> None:
    watch = objects.watch(CLAIMS, after=1)
    reader = asyncio.create_task(take(watch, 1))
    await asyncio.sleep(0)
    with pytest.raises(RuntimeError, match="two tasks wait on one watch"):
        await anext(watch)
    reader.cancel()


async def test_a_batch_holds_all_that_is_there_up_to_a_bound(objects: store.Store) -> None:
    await asyncio.gather(*(objects.create(claim(f"c{n}"), store.fixed(b"1")) for n in range(300)))
    watch = objects.watch(CLAIMS, after=1)
    sizes = [len(await watch.batch()), len(await watch.batch())]
    assert sizes == [256, 44]


async def test_closing_a_watch_ends_it(objects: store.Store) -> None:
    with objects.watch(CLAIMS, after=1) as watch:
        reader = asyncio.create_task(watch.batch())
        await asyncio.sleep(0)
    assert await reader == ()
    watch.close()
    await objects.create(claim("a"), store.fixed(b"1"))
    assert [event async for event in watch] == []


async def test_closing_the_store_ends_watches_after_their_last_event(objects: store.Store) -> None:
    idle, behind = objects.watch(CLAIMS, "other", after=1), objects.watch(CLAIMS, after=1)
    reader = asyncio.create_task(idle.batch())
    await objects.create(claim("a"), store.fixed(b"1"))
    await objects.close()
    assert await reader == ()
    assert [told(event) async for event in behind] == [("ADDED", "a", 2)]
    with pytest.raises(errors.StoreClosedError, match="the store is closed"):
        objects.watch(CLAIMS, after=1)
