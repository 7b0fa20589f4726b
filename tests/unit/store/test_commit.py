"""The contract of commits of several writes, on both stores."""

import asyncio
import pathlib

import pytest

from drachma import errors, store
from drachma.store import engine

CLAIMS = "resource.k8s.io/resourceclaims"
PODS = "pods"


def claim(name: str) -> store.Key:
    return store.Key(CLAIMS, "default", name)


def pod(name: str) -> store.Key:
    return store.Key(PODS, "default", name)


def contents(objects: store.Store) -> dict[str, bytes]:
    return {str(item.key): item.data for resource in (CLAIMS, PODS) for item in objects.list(resource).records}


async def fill(objects: store.Store) -> None:
    """Two claims and a pod, at the revisions 2, 3 and 4."""
    await objects.create(claim("a"), store.fixed(b"a"), uid="ua")
    await objects.create(claim("b"), store.fixed(b"b"), uid="ub")
    await objects.create(pod("p"), store.fixed(b"p"), uid="up")


async def test_creates_updates_and_deletes_are_done_in_order(objects: store.Store) -> None:
    await fill(objects)
    changed, made, gone = await objects.commit(
        [
            store.Update(pod("p"), store.stamped({"status": "bound"}), revision=4),
            store.Create(claim("c"), store.stamped({"status": "new"}), uid="uc"),
            store.Delete(claim("a"), revision=2, uid="ua"),
        ]
    )
    assert [item.revision for item in (changed, made, gone)] == [5, 6, 7]
    assert [item.create_revision for item in (changed, made, gone)] == [4, 6, 2]
    assert [item.uid for item in (changed, made, gone)] == ["up", "uc", "ua"]
    assert objects.revision == 7
    assert contents(objects) == {
        f"{CLAIMS} default/b": b"b",
        f"{CLAIMS} default/c": b'{"status":"new","metadata":{"resourceVersion":"6"}}',
        "pods default/p": b'{"status":"bound","metadata":{"resourceVersion":"5"}}',
    }
    assert objects.get(pod("p")) is changed


async def test_events_come_in_the_order_of_the_commit(objects: store.Store) -> None:
    await fill(objects)
    claims, pods = objects.watch(CLAIMS, after=4), objects.watch(PODS, after=4)
    await objects.commit(
        [
            store.Delete(claim("b"), draft=lambda _last, revision: store.Body(b"%d" % revision)),
            store.Update(pod("p"), store.fixed(b"q"), revision=4),
            store.Update(claim("a"), store.fixed(b"c"), revision=2),
            store.Create(claim("0"), store.fixed(b"d")),
        ]
    )
    told = [(event.change, event.record.key.name, event.revision, event.record.data) for event in await claims.batch()]
    assert told == [("DELETED", "b", 5, b"5"), ("MODIFIED", "a", 7, b"c"), ("ADDED", "0", 8, b"d")]
    assert [(event.change, event.revision) for event in await pods.batch()] == [("MODIFIED", 6)]


async def test_nobody_meets_a_part_of_a_commit(objects: store.Store) -> None:
    """Every event that a watcher gets, it gets with all of its commit in place."""
    seen: list[tuple[int, int]] = []
    parts = 3

    async def look() -> None:
        with objects.watch(PODS, after=1) as watch:
            async for event in watch:
                seen.append((len(objects.list(CLAIMS).records), len(objects.list(PODS).records)))
                if event.record.key.name == "last":
                    return

    async def write(number: int) -> None:
        await objects.commit(
            [store.Create(pod(f"p{number}"), store.fixed(b"1"))]
            + [store.Create(claim(f"c{number}-{part}"), store.fixed(b"1")) for part in range(parts)]
        )

    looking = asyncio.create_task(look())
    for number in range(10):
        await asyncio.gather(write(2 * number), write(2 * number + 1))
    await objects.create(pod("last"), store.fixed(b"1"))
    await looking
    assert len(seen) == 21
    # The last pod is one without claims.
    assert all(claims == parts * min(pods, 20) for claims, pods in seen)


GOOD = store.Update(claim("a"), store.fixed(b"changed"), revision=2)


@pytest.mark.parametrize(
    ("bad", "want", "message"),
    [
        pytest.param(
            store.Create(claim("b"), store.fixed(b"x")),
            errors.AlreadyExistsError,
            f"{CLAIMS} default/b: already exists",
            id="create-of-a-key-that-is-taken",
        ),
        pytest.param(
            store.Update(claim("b"), store.fixed(b"x"), revision=2),
            errors.ConflictError,
            f"{CLAIMS} default/b: precondition failed: revision is 3, expected 2",
            id="update-of-an-older-revision",
        ),
        pytest.param(
            store.Update(pod("q"), store.fixed(b"x"), revision=2),
            errors.NotFoundError,
            "pods default/q: not found",
            id="update-of-nothing",
        ),
        pytest.param(
            store.Delete(claim("b"), revision=3, uid="other"),
            errors.ConflictError,
            f"{CLAIMS} default/b: precondition failed: uid is 'ub', expected 'other'",
            id="delete-of-another-uid",
        ),
        pytest.param(store.Delete(pod("q")), errors.NotFoundError, "pods default/q: not found", id="delete-of-nothing"),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2], ids=["first", "between", "last"])
async def test_one_write_that_does_not_hold_leaves_nothing_behind(
    objects: store.Store, *, bad: store.Write, want: type[errors.PreconditionError], message: str, place: int
) -> None:
    await fill(objects)
    before = contents(objects)
    drafts: list[int] = []

    def draft(revision: int) -> store.Body:
        drafts.append(revision)
        return store.Body(b"new")

    watch = objects.watch(CLAIMS, after=4)
    writes: list[store.Write] = [GOOD, store.Create(claim("new"), draft)]
    writes.insert(place, bad)
    with pytest.raises(want) as refusal:
        await objects.commit(writes)
    assert (refusal.value.key, str(refusal.value)) == (bad.key, message)
    assert contents(objects) == before
    assert (objects.revision, drafts, list(watch.ready())) == (4, [], [])
    made = await objects.create(claim("next"), store.fixed(b"1"))
    assert made.revision == 5
    assert [event.revision for event in await watch.batch()] == [5]


async def test_the_first_write_that_does_not_hold_is_named(objects: store.Store) -> None:
    await fill(objects)
    with pytest.raises(errors.PreconditionError) as refusal:
        await objects.commit([GOOD, store.Delete(pod("q")), store.Create(claim("b"), store.fixed(b"x"))])
    assert refusal.value.key == pod("q")


@pytest.mark.parametrize(
    ("writes", "want"),
    [
        pytest.param([], "commit: there is no write in it", id="nothing"),
        pytest.param(
            [GOOD, store.Delete(claim("a"))],
            f"{CLAIMS} default/a: written twice in one commit",
            id="one-object-twice",
        ),
        pytest.param(
            [store.Create(claim(f"c{n}"), store.fixed(b"1")) for n in range(1001)],
            "commit: 1001 writes, more than the limit of 1000",
            id="more-than-a-batch",
        ),
        pytest.param(
            [GOOD, store.Create(store.Key(PODS, "a/b", "c"), store.fixed(b"1"))],
            r"key \('pods', 'a/b', 'c'\): namespace and name must not contain a slash",
            id="a-key-that-cannot-be-stored",
        ),
        pytest.param(
            [GOOD, store.Update(pod("p"), store.fixed(bytes(2**24 + 1)), revision=4)],
            "pods default/p: the body has 16777217 bytes, more than the limit",
            id="a-body-that-cannot-be-stored",
        ),
    ],
)
async def test_commits_that_no_store_takes_are_refused(
    objects: store.Store, writes: list[store.Write], want: str
) -> None:
    await fill(objects)
    before = contents(objects)
    with pytest.raises(errors.InvalidValueError, match=want):
        await objects.commit(writes)
    assert (contents(objects), objects.revision) == (before, 4)
    assert (await objects.commit([GOOD]))[0].revision == 5


async def test_the_biggest_commit_is_taken(objects: store.Store) -> None:
    made = await objects.commit(
        [store.Create(claim(f"c{number}"), store.fixed(b"1")) for number in range(engine.MAX_WRITES)]
    )
    assert [item.revision for item in made] == list(range(2, engine.MAX_WRITES + 2))
    assert len(objects.list(CLAIMS).records) == engine.MAX_WRITES


async def test_a_draft_that_fails_leaves_no_trace_of_its_commit(objects: store.Store) -> None:
    await fill(objects)

    def draft(revision: int) -> store.Body:
        raise ValueError(f"no body for {revision}")

    with pytest.raises(ValueError, match="no body for 6"):
        await objects.commit([GOOD, store.Create(claim("c"), draft)])
    assert (await objects.commit([GOOD]))[0].revision == 5
    assert objects.get(claim("c")) is None


async def test_of_two_commits_that_meet_in_one_object_one_wins_whole(objects: store.Store) -> None:
    await fill(objects)

    def rival(name: str) -> list[store.Write]:
        return [
            store.Create(claim(name), store.fixed(name.encode())),
            store.Update(pod("p"), store.fixed(name.encode()), revision=4),
        ]

    results = await asyncio.gather(
        *(objects.commit(rival(f"r{number}")) for number in range(5)), return_exceptions=True
    )
    (winner,) = (result for result in results if not isinstance(result, BaseException))
    losers = [result for result in results if isinstance(result, errors.ConflictError)]
    assert [loser.key for loser in losers] == [pod("p")] * 4
    name = winner[0].key.name
    stored = objects.get(pod("p"))
    assert stored is not None
    assert stored.data == name.encode()
    assert [item.key.name for item in objects.list(CLAIMS).records] == ["a", "b", name]
    assert objects.revision == 6


async def test_a_single_write_that_comes_first_refuses_the_whole_commit(objects: store.Store) -> None:
    await fill(objects)
    single, several = await asyncio.gather(
        objects.update(pod("p"), store.fixed(b"single"), revision=4),
        objects.commit([GOOD, store.Update(pod("p"), store.fixed(b"several"), revision=4)]),
        return_exceptions=True,
    )
    assert isinstance(single, store.Record)
    assert isinstance(several, errors.ConflictError)
    assert (several.key, objects.revision) == (pod("p"), 5)
    unchanged = objects.get(claim("a"))
    assert unchanged is not None
    assert unchanged.data == b"a"


async def test_a_commit_may_follow_on_writes_of_the_same_batch(objects: store.Store) -> None:
    await fill(objects)
    _, made, last = await asyncio.gather(
        objects.delete(claim("a")),
        objects.commit([store.Create(claim("a"), store.fixed(b"2")), store.Delete(claim("b"))]),
        objects.commit([store.Create(claim("b"), store.fixed(b"3")), store.Delete(pod("p"))]),
    )
    assert [item.revision for item in (*made, *last)] == [6, 7, 8, 9]
    assert contents(objects) == {f"{CLAIMS} default/a": b"2", f"{CLAIMS} default/b": b"3"}


async def test_a_cancelled_writer_does_not_undo_its_commit(objects: store.Store) -> None:
    await fill(objects)
    writer = asyncio.create_task(objects.commit([GOOD, store.Delete(pod("p"))]))
    await asyncio.sleep(0)
    writer.cancel()
    with pytest.raises(errors.NotFoundError):
        await objects.delete(pod("p"))
    assert contents(objects) == {f"{CLAIMS} default/a": b"changed", f"{CLAIMS} default/b": b"b"}


async def test_a_list_from_inside_a_commit_shows_its_writes_up_to_there(objects: store.Store) -> None:
    await fill(objects)
    await objects.commit([GOOD, store.Delete(claim("b")), store.Create(claim("c"), store.fixed(b"c"))])
    listed = {
        revision: [item.data for item in objects.list(CLAIMS, revision=revision).records] for revision in range(4, 8)
    }
    assert listed == {4: [b"a", b"b"], 5: [b"changed", b"b"], 6: [b"changed"], 7: [b"changed", b"c"]}


async def test_close_finishes_accepted_commits_and_refuses_others(objects: store.Store) -> None:
    await fill(objects)
    accepted = asyncio.create_task(objects.commit([GOOD, store.Delete(pod("p"))]))
    await asyncio.sleep(0)
    closing = asyncio.create_task(objects.close())
    await asyncio.sleep(0)
    late = [store.Create(claim(name), store.fixed(b"1")) for name in ("x", "y", "z")]
    with pytest.raises(errors.StoreClosedError, match="resourceclaims default/x and 2 more: the store is closed"):
        await objects.commit(late)
    await closing
    assert [item.revision for item in await accepted] == [5, 6]
    with pytest.raises(errors.StoreClosedError):
        await objects.commit(late)
    assert contents(objects) == {f"{CLAIMS} default/a": b"changed", f"{CLAIMS} default/b": b"b"}


async def test_the_disk_has_what_was_committed_and_nothing_of_what_was_refused(tmp_path: pathlib.Path) -> None:
    async with await store.SqliteStore.open(tmp_path) as objects:
        await fill(objects)
        with pytest.raises(errors.NotFoundError):
            await objects.commit([GOOD, store.Delete(claim("b")), store.Delete(pod("q"))])
    async with await store.SqliteStore.open(tmp_path) as objects:
        assert objects.revision == 4
        assert contents(objects) == {
            f"{CLAIMS} default/a": b"a",
            f"{CLAIMS} default/b": b"b",
            "pods default/p": b"p",
        }
        await objects.commit([GOOD, store.Delete(claim("b")), store.Create(pod("q"), store.fixed(b"q"))])
    async with await store.SqliteStore.open(tmp_path) as objects:
        assert objects.revision == 7
        assert contents(objects) == {
            f"{CLAIMS} default/a": b"changed",
            "pods default/p": b"p",
            "pods default/q": b"q",
        }
        events = await objects.watch(CLAIMS, after=4).batch()
        assert [(event.change, event.revision) for event in events] == [("MODIFIED", 5), ("DELETED", 6)]
