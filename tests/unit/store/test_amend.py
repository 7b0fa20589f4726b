"""Amendments: changes of an object as it is by then, which many can make at once."""

import asyncio

import pytest

from drachma import errors, store

ACCOUNT = store.Key("accounts", "default", "a")


def key(name: str) -> store.Key:
    return store.Key("pods", "default", name)


def one_more(limit: int) -> store.Amend:
    """Counts up, as long as that stays within a limit."""
    return store.Amend(
        ACCOUNT,
        lambda account: int(account.data) < limit,
        lambda account, _revision: store.Body(b"%d" % (int(account.data) + 1)),
    )


async def test_amendments_that_come_together_share_a_batch(objects: store.Store) -> None:
    await objects.create(ACCOUNT, store.fixed(b"0"), uid="u")
    await asyncio.gather(
        *(objects.commit([store.Create(key(f"p{number}"), store.fixed(b""), ""), one_more(10)]) for number in range(10))
    )
    account = objects.get(ACCOUNT)
    assert account is not None
    assert (account.data, account.uid, account.create_revision) == (b"10", "u", 2)
    # Each has its own version, and nobody had to try twice.
    assert objects.revision == 22


async def test_no_more_hold_than_there_is_room_for(objects: store.Store) -> None:
    await objects.create(ACCOUNT, store.fixed(b"0"))
    outcomes = await asyncio.gather(
        *(objects.commit([store.Create(key(f"p{number}"), store.fixed(b""), ""), one_more(3)]) for number in range(8)),
        return_exceptions=True,
    )
    refusals = [each for each in outcomes if isinstance(each, BaseException)]
    assert len(refusals) == 5
    assert all(isinstance(each, errors.ConflictError) for each in refusals)
    assert len(objects.list("pods").records) == 3
    account = objects.get(ACCOUNT)
    assert account is not None
    assert account.data == b"3"


async def test_what_does_not_hold_leaves_nothing_behind(objects: store.Store) -> None:
    await objects.create(ACCOUNT, store.fixed(b"3"))
    with pytest.raises(errors.ConflictError, match="does not hold at revision 2"):
        await objects.commit([one_more(3), store.Create(key("p"), store.fixed(b""), "")])
    with pytest.raises(errors.NotFoundError):
        await objects.commit([one_more(9), store.Delete(key("p"))])
    assert objects.revision == 2


async def test_there_must_be_something_to_amend(objects: store.Store) -> None:
    with pytest.raises(errors.NotFoundError):
        await objects.commit([one_more(3)])
