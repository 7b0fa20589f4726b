"""The contract of reads and writes, on both stores."""

import asyncio

import pytest

from drachma import errors, store
from tests.unit.store import conftest

CLAIMS = "resource.k8s.io/resourceclaims"
PODS = "pods"


def claim(name: str, namespace: str = "default") -> store.Key:
    return store.Key(CLAIMS, namespace, name)


def names(page: store.Page) -> list[str]:
    return [f"{item.key.namespace}/{item.key.name}" for item in page.records]


async def test_an_empty_store_has_a_revision_that_is_not_zero(objects: store.Store) -> None:
    assert objects.revision == 1
    assert objects.get(claim("a")) is None
    assert objects.list(CLAIMS) == store.Page([], 1, None, 0)


async def test_writes_count_up_one_sequence_over_all_resources(objects: store.Store) -> None:
    made = await objects.create(claim("a"), store.fixed(b"1"), uid="u1")
    other = await objects.create(store.Key(PODS, "default", "p"), store.fixed(b"2"))
    changed = await objects.update(claim("a"), store.fixed(b"3"), revision=made.revision)
    gone = await objects.delete(claim("a"))
    assert [made.revision, other.revision, changed.revision, gone.revision] == [2, 3, 4, 5]
    assert [changed.create_revision, gone.create_revision] == [2, 2]
    assert (changed.uid, gone.uid, gone.data) == ("u1", "u1", b"3")
    assert objects.revision == 5
    assert objects.get(claim("a")) is None


async def test_the_newest_write_of_a_resource_is_known_beyond_its_history(objects: store.Store) -> None:
    assert objects.changed(CLAIMS) == 0
    await objects.create(claim("a"), store.fixed(b"1"))
    await objects.delete(claim("a"))
    assert (objects.changed(CLAIMS), objects.changed(PODS)) == (3, 0)
    await objects.create(store.Key(PODS, "default", "p"), store.fixed(b"2"))
    await objects.compact(4)
    assert (objects.changed(CLAIMS), objects.changed(PODS)) == (3, 4)


async def test_a_read_hands_out_the_bytes_and_the_value_that_were_written(objects: store.Store) -> None:
    spec = {"devices": {"requests": [{"name": "gpu"}]}}
    made = await objects.create(claim("a"), store.stamped({"metadata": {"name": "a"}, "spec": spec}))
    found = objects.get(claim("a"))
    assert found is made
    assert found.data == (
        b'{"metadata":{"name":"a","resourceVersion":"2"},"spec":{"devices":{"requests":[{"name":"gpu"}]}}}'
    )
    assert found.value["spec"] is spec
    assert found.value["metadata"] == {"name": "a", "resourceVersion": "2"}


async def test_a_deletion_is_stamped_with_its_own_revision(objects: store.Store) -> None:
    await objects.create(claim("a"), store.stamped({"metadata": {"name": "a"}}))
    last = await objects.delete(claim("a"), draft=store.make_deletion_body)
    assert last.value == {"metadata": {"name": "a", "resourceVersion": "3"}}


async def test_bytes_that_are_not_json_are_named_when_they_are_decoded(objects: store.Store) -> None:
    made = await objects.create(claim("a"), store.fixed(b"{"))
    with pytest.raises(errors.DecodeError, match="resourceclaims default/a at revision 2: not JSON"):
        _ = made.value


async def test_decoded_values_are_kept_within_a_bound(objects: store.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("drachma.store.record.DECODED_BYTES", 1000)
    made = [await objects.create(claim(f"c{number}"), store.stamped({"text": "x" * 300})) for number in range(5)]
    values = [item.value for item in made[-2:]]
    assert [item.value for item in made[-2:]] == values
    assert all(item.value is value for item, value in zip(made[-2:], values, strict=True))
    assert made[0].value["text"] == "x" * 300
    big = await objects.create(claim("big"), store.stamped({"text": "x" * 2000}))
    assert big.value == big.value
    assert big.value is not big.value


async def test_what_is_derived_from_a_record_is_made_once(objects: store.Store) -> None:
    made = await objects.create(claim("a"), store.fixed(b'{"labels":{"a":"b"}}'))
    calls = []

    def labels(item: store.Record) -> str:
        calls.append(item)
        return str(item.value["labels"])

    assert [made.derived(labels), made.derived(labels)] == ["{'a': 'b'}"] * 2
    assert calls == [made]
    assert made.derived(lambda item: item.revision) == 2
    assert made.derived(labels) == "{'a': 'b'}"


@pytest.mark.parametrize(
    ("key", "want"),
    [
        pytest.param(store.Key("", "default", "a"), "must not be empty", id="no-resource"),
        pytest.param(store.Key(PODS, "default", ""), "must not be empty", id="no-name"),
        pytest.param(store.Key(PODS, "a/b", "c"), "must not contain a slash", id="slash-in-namespace"),
        pytest.param(store.Key(PODS, "a", "b/c"), "must not contain a slash", id="slash-in-name"),
        pytest.param(store.Key(PODS, "a", "\ud800"), "not UTF-8", id="lone-surrogate"),
    ],
)
async def test_keys_that_cannot_be_stored_are_refused(objects: store.Store, key: store.Key, want: str) -> None:
    with pytest.raises(errors.InvalidValueError, match=want):
        await objects.create(key, store.fixed(b"1"))
    assert objects.revision == 1


async def test_bodies_that_cannot_be_stored_are_refused(objects: store.Store) -> None:
    with pytest.raises(errors.InvalidValueError, match="the body has 16777217 bytes, more than the limit"):
        await objects.create(claim("a"), store.fixed(bytes(2**24 + 1)))
    with pytest.raises(errors.InvalidValueError, match="the body must be bytes, not bytearray"):
        await objects.create(claim("a"), store.fixed(bytearray(b"1")))  # type: ignore[arg-type]
    assert (await objects.create(claim("a"), store.fixed(b""))).revision == 2


async def test_a_draft_that_fails_leaves_no_trace(objects: store.Store) -> None:
    def draft(revision: int) -> store.Body:
        raise ValueError(f"no body for {revision}")

    with pytest.raises(ValueError, match="no body for 2"):
        await objects.create(claim("a"), draft)
    assert (await objects.create(claim("a"), store.fixed(b"1"))).revision == 2


async def test_create_refuses_a_key_that_is_taken(objects: store.Store) -> None:
    await objects.create(claim("a"), store.fixed(b"1"))
    with pytest.raises(errors.AlreadyExistsError, match="resourceclaims default/a: already exists"):
        await objects.create(claim("a"), store.fixed(b"2"))
    assert objects.revision == 2


async def test_update_is_compare_and_swap(objects: store.Store) -> None:
    made = await objects.create(claim("a"), store.fixed(b"1"))
    await objects.update(claim("a"), store.fixed(b"2"), revision=made.revision)
    with pytest.raises(errors.ConflictError, match="revision is 3, expected 2"):
        await objects.update(claim("a"), store.fixed(b"3"), revision=made.revision)
    with pytest.raises(errors.NotFoundError, match="resourceclaims default/b: not found"):
        await objects.update(claim("b"), store.fixed(b"3"), revision=3)
    found = objects.get(claim("a"))
    assert found is not None
    assert (found.data, found.revision) == (b"2", 3)


async def test_delete_checks_its_preconditions(objects: store.Store) -> None:
    await objects.create(claim("a"), store.fixed(b"1"), uid="u1")
    with pytest.raises(errors.ConflictError, match="uid is 'u1', expected 'u2'"):
        await objects.delete(claim("a"), uid="u2")
    with pytest.raises(errors.ConflictError, match="revision is 2, expected 1"):
        await objects.delete(claim("a"), uid="u1", revision=1)
    with pytest.raises(errors.NotFoundError):
        await objects.delete(claim("b"))
    assert (await objects.delete(claim("a"), uid="u1", revision=2)).revision == 3


async def test_concurrent_creates_of_one_key_have_one_winner(objects: store.Store) -> None:
    results = await asyncio.gather(
        *(objects.create(claim("a"), store.fixed(b"%d" % number)) for number in range(20)),
        return_exceptions=True,
    )
    winners = [result for result in results if isinstance(result, store.Record)]
    assert len(winners) == 1
    assert sum(isinstance(result, errors.AlreadyExistsError) for result in results) == 19
    assert objects.get(claim("a")) is winners[0]


async def test_concurrent_swaps_of_one_key_lose_no_update(objects: store.Store) -> None:
    await objects.create(claim("a"), store.fixed(b"0"))
    tries = 0

    async def add_one() -> None:
        nonlocal tries
        while True:
            tries += 1
            assert tries < 1000
            found = objects.get(claim("a"))
            assert found is not None
            try:
                body = store.fixed(b"%d" % (int(found.data) + 1))
                await objects.update(claim("a"), body, revision=found.revision)
            except errors.ConflictError:
                continue
            return

    await asyncio.gather(*(add_one() for _ in range(20)))
    found = objects.get(claim("a"))
    assert found is not None
    assert (found.data, found.revision) == (b"20", 22)


async def test_delete_and_create_of_one_key_may_share_a_batch(objects: store.Store) -> None:
    await objects.create(claim("a"), store.fixed(b"1"), uid="u1")
    gone, made = await asyncio.gather(
        objects.delete(claim("a"), uid="u1"), objects.create(claim("a"), store.fixed(b"2"), uid="u2")
    )
    assert (gone.revision, made.revision, made.create_revision) == (3, 4, 4)
    assert objects.get(claim("a")) is made


async def test_a_cancelled_writer_does_not_undo_its_write(objects: store.Store) -> None:
    writer = asyncio.create_task(objects.create(claim("a"), store.fixed(b"1")))
    rival = asyncio.create_task(objects.create(claim("a"), store.fixed(b"2")))
    await asyncio.sleep(0)
    writer.cancel()
    with pytest.raises(errors.AlreadyExistsError):
        await rival
    found = objects.get(claim("a"))
    assert found is not None
    assert found.data == b"1"


async def fill(objects: store.Store) -> None:
    for namespace, name in [("a", "x"), ("a", "z"), ("a-b", "x"), ("b", "y")]:
        await objects.create(claim(name, namespace), store.fixed(b"1"))


async def test_lists_are_ordered_as_the_text_of_namespace_and_name(objects: store.Store) -> None:
    await fill(objects)
    assert names(objects.list(CLAIMS)) == ["a-b/x", "a/x", "a/z", "b/y"]
    assert names(objects.list(CLAIMS, "a")) == ["a/x", "a/z"]
    assert names(objects.list(CLAIMS, "c")) == []
    assert names(objects.list(PODS)) == []


@pytest.mark.parametrize(
    ("namespace", "want"),
    [
        pytest.param(None, [(["a-b/x", "a/x"], 2), (["a/z", "b/y"], 0)], id="all-namespaces"),
        pytest.param("a", [(["a/x", "a/z"], 0)], id="one-namespace"),
    ],
)
async def test_pages_follow_each_other(
    objects: store.Store, namespace: str | None, want: list[tuple[list[str], int]]
) -> None:
    await fill(objects)
    pages = []
    after: store.Key | None = None
    while True:
        page = objects.list(CLAIMS, namespace, revision=5, limit=2, after=after)
        pages.append((names(page), page.remaining))
        after = page.after
        if after is None:
            break
    assert pages == want


async def test_pages_of_one_revision_do_not_see_later_writes(objects: store.Store) -> None:
    await fill(objects)
    first = objects.list(CLAIMS, limit=1)
    await objects.create(claim("y", "a"), store.fixed(b"2"))
    await objects.create(claim("q", "c"), store.fixed(b"2"))
    await objects.delete(claim("y", "b"))
    await objects.delete(claim("x", "a-b"))
    await objects.update(claim("z", "a"), store.fixed(b"2"), revision=3)
    second = objects.list(CLAIMS, revision=first.revision, limit=2, after=first.after)
    third = objects.list(CLAIMS, revision=first.revision, limit=2, after=second.after)
    assert [names(page) for page in (first, second, third)] == [["a-b/x"], ["a/x", "a/z"], ["b/y"]]
    assert [page.remaining for page in (first, second, third)] == [3, 1, 0]
    assert {item.data for page in (first, second, third) for item in page.records} == {b"1"}
    assert names(objects.list(CLAIMS)) == ["a/x", "a/y", "a/z", "c/q"]


async def test_a_filter_fills_pages_with_what_it_lets_through(objects: store.Store) -> None:
    await fill(objects)
    first = objects.list(CLAIMS, limit=1, where=lambda item: item.key.name == "x")
    assert (names(first), first.remaining) == (["a-b/x"], None)
    second = objects.list(CLAIMS, limit=1, after=first.after, where=lambda item: item.key.name == "x")
    assert (names(second), second.after, second.remaining) == (["a/x"], None, 0)


async def test_lists_reach_back_to_the_compacted_revision(objects: store.Store) -> None:
    await fill(objects)
    await objects.compact(3)
    assert objects.compacted == 3
    assert names(objects.list(CLAIMS, revision=3)) == ["a/x", "a/z"]
    with pytest.raises(errors.GoneError, match="revision 2 is compacted, the oldest kept is 3"):
        objects.list(CLAIMS, revision=2)
    with pytest.raises(errors.FutureRevisionError, match="revision 6 has not been reached, the newest is 5"):
        objects.list(CLAIMS, revision=6)


async def test_compaction_goes_forward_only(objects: store.Store) -> None:
    await fill(objects)
    await objects.compact(4)
    await objects.compact(2)
    assert objects.compacted == 4
    with pytest.raises(errors.FutureRevisionError):
        await objects.compact(6)
    await objects.compact(5)
    assert names(objects.list(CLAIMS)) == ["a-b/x", "a/x", "a/z", "b/y"]


@pytest.mark.parametrize(
    "limits",
    [
        pytest.param(store.Limits(history_events=20), id="by-events"),
        pytest.param(store.Limits(history_bytes=2000), id="by-bytes"),
    ],
)
async def test_history_stays_within_its_limits(open_store: conftest.Open, limits: store.Limits) -> None:
    objects = await open_store(limits)
    made = await objects.create(claim("a"), store.fixed(bytes(100)))
    for _ in range(100):
        made = await objects.update(claim("a"), store.fixed(bytes(100)), revision=made.revision)
    assert objects.revision == 102
    assert 20 <= objects.revision - objects.compacted <= 23


async def test_close_finishes_accepted_writes_and_refuses_others(objects: store.Store) -> None:
    accepted = asyncio.create_task(objects.create(claim("a"), store.fixed(b"1")))
    await asyncio.sleep(0)
    closing = asyncio.create_task(objects.close())
    await asyncio.sleep(0)
    with pytest.raises(errors.StoreClosedError, match="resourceclaims default/b: the store is closed"):
        await objects.create(claim("b"), store.fixed(b"1"))
    await closing
    await objects.close()
    assert (await accepted).revision == 2
    assert names(objects.list(CLAIMS)) == ["default/a"]
