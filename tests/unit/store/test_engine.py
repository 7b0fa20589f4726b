"""Batches, and what happens to waiting writes when a commit fails, with a journal that answers when told to."""

import asyncio
import functools
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from drachma import errors, store
from drachma.store import engine, journal, state


class HeldJournal:
    """Holds each batch until the test answers for the disk."""

    def __init__(self, patience: float = 0.0) -> None:
        self.patience = patience
        self.batches: list[journal.Batch] = []
        self._done: journal.Done | None = None
        self.has_room = True
        self.times_asked = 0

    def commit(self, batch: journal.Batch, done: journal.Done) -> None:
        assert self._done is None, "a batch was handed over while another one is under way"
        self.batches.append(batch)
        self._done = done

    def answer(self, failure: errors.WriteFailedError | None = None) -> None:
        assert self._done is not None
        done, self._done = self._done, None
        done(failure)

    def regain_room(self, done: journal.TellRoom) -> None:
        self.times_asked += 1
        asyncio.get_running_loop().call_soon(functools.partial(done, has_room=self.has_room))

    def committed(self) -> list[list[int]]:
        return [[event.revision for event in batch.events] for batch in self.batches]

    async def close(self) -> None:
        assert self._done is None


def claim(name: str) -> store.Key:
    return store.Key("resource.k8s.io/resourceclaims", "default", name)


def held(limits: store.Limits | None = None, *, patience: float = 0.0) -> tuple[engine.Engine, HeldJournal]:
    log = HeldJournal(patience)
    return engine.Engine(state.State(), log, limits=limits or store.Limits()), log


_T = TypeVar("_T")


async def start(*writes: Coroutine[Any, Any, _T]) -> list[asyncio.Task[_T]]:
    """Begins writes and lets the event loop turn until the journal has what it gets."""
    tasks = [asyncio.ensure_future(write) for write in writes]
    await turn()
    return tasks


async def turn() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_writes_that_come_together_are_committed_together() -> None:
    objects, log = held()
    tasks = await start(*(objects.create(claim(f"c{n}"), store.fixed(b"1")) for n in range(3)))
    more = await start(*(objects.create(claim(f"d{n}"), store.fixed(b"1")) for n in range(2)))
    assert log.committed() == [[2, 3, 4]]
    assert objects.revision == 1
    log.answer()
    assert log.committed() == [[2, 3, 4], [5, 6]]
    assert [(await task).revision for task in tasks] == [2, 3, 4]
    assert objects.revision == 4
    assert not any(task.done() for task in more)
    log.answer()
    assert [(await task).revision for task in more] == [5, 6]


@pytest.mark.parametrize(
    ("patience", "want"),
    [
        pytest.param(60.0, [[2, 3, 4, 5]], id="a-patient-journal-waits-while-more-comes"),
        pytest.param(0.0, [[2]], id="an-impatient-one-does-not"),
    ],
)
async def test_writes_of_several_turns_share_a_batch(patience: float, want: list[list[int]]) -> None:
    objects, log = held(patience=patience)
    tasks = []
    for number in range(4):
        tasks.append(asyncio.ensure_future(objects.create(claim(f"c{number}"), store.fixed(b"1"))))
        await asyncio.sleep(0)
    await turn()
    assert log.committed() == want
    log.answer()
    await turn()
    if len(log.batches) > 1:
        log.answer()
    assert [(await task).revision for task in tasks] == [2, 3, 4, 5]


async def test_a_patient_journal_gets_a_full_batch_at_once() -> None:
    objects, log = held(patience=60.0)
    tasks = [asyncio.ensure_future(objects.create(claim(f"c{n}"), store.fixed(b"1"))) for n in range(1001)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert [len(batch.events) for batch in log.batches] == [1000]
    log.answer()
    await turn()
    log.answer()
    await asyncio.gather(*tasks)


async def test_a_batch_is_bounded() -> None:
    objects, log = held()
    tasks = await start(*(objects.create(claim(f"c{n}"), store.fixed(b"1")) for n in range(1001)))
    log.answer()
    log.answer()
    await asyncio.gather(*tasks)
    assert [len(batch.events) for batch in log.batches] == [1000, 1]


def creates(*names: str) -> list[store.Write]:
    return [store.Create(claim(name), store.fixed(b"1")) for name in names]


async def test_commits_share_a_batch_with_other_writes() -> None:
    objects, log = held()
    first, several, last = (
        asyncio.ensure_future(objects.create(claim("a"), store.fixed(b"1"))),
        asyncio.ensure_future(objects.commit(creates("b", "c"))),
        asyncio.ensure_future(objects.create(claim("d"), store.fixed(b"1"))),
    )
    await turn()
    assert log.committed() == [[2, 3, 4, 5]]
    log.answer()
    assert [item.revision for item in (await first, *await several, await last)] == [2, 3, 4, 5]


@pytest.mark.parametrize("patience", [0.0, 60.0], ids=["impatient", "patient"])
async def test_a_commit_that_does_not_fit_waits_for_the_next_batch_whole(patience: float) -> None:
    objects, log = held(patience=patience)
    singles = [asyncio.ensure_future(objects.create(claim(f"c{n}"), store.fixed(b"1"))) for n in range(998)]
    several = await start(objects.commit(creates("x", "y", "z")), objects.commit(creates("u", "v")))
    assert log.committed() == [list(range(2, 1000))]
    log.answer()
    await turn()
    assert log.committed()[1:] == [[1000, 1001, 1002, 1003, 1004]]
    assert objects.revision == 999
    log.answer()
    await asyncio.gather(*singles, *several)
    assert objects.revision == 1004


async def test_a_commit_that_fails_on_disk_fails_whole_and_gives_its_revisions_back() -> None:
    objects, log = held()
    (several,) = await start(objects.commit(creates("a", "b", "c")))
    (behind,) = await start(objects.commit([store.Delete(claim("b"), revision=3), *creates("d")]))
    log.answer(errors.DiskFullError("no room"))
    with pytest.raises(errors.DiskFullError, match=r"default/a and 2 more: not written: no room"):
        await several
    with pytest.raises(errors.DiskFullError, match=r"default/b and 1 more: not written: no room"):
        await behind
    assert (objects.revision, objects.list(claim("a").resource).records) == (1, [])
    (again,) = await start(objects.commit(creates("a", "d")))
    log.answer()
    assert [item.revision for item in await again] == [2, 3]


async def test_a_commit_goes_through_when_the_write_in_its_way_fails() -> None:
    objects, log = held()
    (first,) = await start(objects.create(claim("a"), store.fixed(b"1")))
    (several,) = await start(objects.commit(creates("x", "a", "b")))
    log.answer(errors.WriteFailedError("broken"))
    (second,) = await start(objects.create(claim("b"), store.fixed(b"2")))
    # Woken first, the commit has taken its keys, and now it is another write that waits.
    assert log.committed() == [[2], [2, 3, 4]]
    assert not second.done()
    log.answer()
    assert [item.revision for item in await several] == [2, 3, 4]
    with pytest.raises(errors.AlreadyExistsError):
        await second
    with pytest.raises(errors.WriteFailedError):
        await first


async def test_a_commit_that_waits_in_vain_is_refused_for_what_is_committed_then() -> None:
    objects, log = held()
    (first,) = await start(objects.create(claim("b"), store.fixed(b"1")))
    (several,) = await start(objects.commit(creates("a", "b")))
    assert not several.done()
    log.answer()
    with pytest.raises(errors.AlreadyExistsError) as refusal:
        await several
    assert refusal.value.key == claim("b")
    assert (await first).revision == objects.revision == 2
    assert log.committed() == [[2]]


async def test_a_failed_commit_fails_all_that_was_decided_on_it() -> None:
    objects, log = held()
    first = await start(objects.create(claim("a"), store.fixed(b"1")))
    behind = await start(objects.delete(claim("a")), objects.create(claim("b"), store.fixed(b"1")))
    log.answer(errors.DiskFullError("no room"))
    for task, name in zip(first + behind, "aab", strict=True):
        with pytest.raises(errors.DiskFullError, match=f"default/{name}: not written: no room"):
            await task
    assert objects.revision == 1
    assert objects.get(claim("a")) is None
    again = await start(objects.create(claim("b"), store.fixed(b"2")))
    log.answer()
    assert (await again[0]).revision == 2
    assert log.committed() == [[2], [2]]


async def test_a_refusal_waits_for_the_write_it_is_about() -> None:
    objects, log = held()
    first, rival = await start(
        objects.create(claim("a"), store.fixed(b"1")), objects.create(claim("a"), store.fixed(b"2"))
    )
    assert not rival.done()
    log.answer(errors.WriteFailedError("broken"))
    with pytest.raises(errors.WriteFailedError):
        await first
    await turn()
    log.answer()
    assert (await rival).data == b"2"


async def test_a_swap_against_a_write_that_fails_goes_through() -> None:
    objects, log = held()
    made = await start(objects.create(claim("a"), store.fixed(b"1")))
    log.answer()
    await made[0]
    swap, rival = await start(
        objects.update(claim("a"), store.fixed(b"2"), revision=2),
        objects.update(claim("a"), store.fixed(b"3"), revision=2),
    )
    log.answer(errors.WriteFailedError("broken"))
    await turn()
    log.answer()
    assert (await rival).data == b"3"
    with pytest.raises(errors.WriteFailedError):
        await swap


async def test_a_failed_commit_fails_compactions_and_forgets_nothing() -> None:
    objects, log = held()
    made = await start(objects.create(claim("a"), store.fixed(b"1")))
    log.answer()
    await made[0]
    compaction = asyncio.ensure_future(objects.compact(2))
    await turn()
    log.answer(errors.DiskFullError("no room"))
    with pytest.raises(errors.DiskFullError, match="compaction to 2: not done: no room"):
        await compaction
    assert objects.compacted == 1
    assert len(objects.list(claim("a").resource, revision=1).records) == 0


async def test_close_waits_for_writes_under_way() -> None:
    objects, log = held()
    made = await start(objects.create(claim("a"), store.fixed(b"1")))
    closing = asyncio.ensure_future(objects.close())
    await turn()
    assert not closing.done()
    log.answer()
    await closing
    assert (await made[0]).revision == 2


async def test_a_long_history_is_compacted_in_steps() -> None:
    objects, log = held()
    tasks = await start(*(objects.create(claim(f"c{n}"), store.fixed(b"1")) for n in range(2500)))
    for _ in range(3):
        log.answer()
    await asyncio.gather(*tasks)
    compaction = asyncio.ensure_future(objects.compact(2501))
    await turn()
    for _ in range(3):
        assert not compaction.done()
        log.answer()
    await compaction
    steps = [batch.compaction.revision for batch in log.batches if batch.compaction is not None]
    assert steps == [1001, 2001, 2501]


async def test_an_idle_watcher_survives_a_compaction_that_comes_with_its_event() -> None:
    objects, log = held(store.Limits(history_events=10))
    watch = objects.watch(claim("a").resource, "other", after=1)
    reader = asyncio.ensure_future(watch.batch())
    for number in range(12):
        task = await start(objects.create(claim(f"c{number}"), store.fixed(b"1")))
        log.answer()
        await task[0]
    late = store.Key(claim("a").resource, "other", "late")
    task = await start(objects.create(late, store.fixed(b"1")))
    assert log.batches[-1].compaction is not None
    log.answer()
    await task[0]
    assert [event.record.key.name for event in await reader] == ["late"]
