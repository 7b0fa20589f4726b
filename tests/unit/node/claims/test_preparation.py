"""Locks of claims: exclusive, taken in one order, and removed after use."""

import asyncio

from drachma.node.claims.preparation import ClaimLocks
from drachma.node.claims.preparedclaims import Key

A, B = Key("default", "a"), Key("default", "b")


async def test_who_shares_a_claim_comes_one_after_the_other() -> None:
    locks, trace = ClaimLocks(), []

    async def use(name: str, keys: list[Key]) -> None:
        async with locks.hold(keys):
            trace.append(f"{name} in")
            await asyncio.sleep(0)
            trace.append(f"{name} out")

    await asyncio.gather(use("first", [A, B]), use("second", [B, A]))
    assert trace == ["first in", "first out", "second in", "second out"]


async def test_others_do_not_wait() -> None:
    locks = ClaimLocks()
    async with locks.hold([A]), asyncio.timeout(60), locks.hold([B]):
        pass


async def test_a_claim_that_is_named_twice_is_locked_once() -> None:
    locks = ClaimLocks()
    async with asyncio.timeout(60), locks.hold([A, A]):
        pass


async def test_who_gives_up_waiting_leaves_nothing_behind() -> None:
    locks = ClaimLocks()
    async with locks.hold([A]):
        second = asyncio.create_task(_hold(locks))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
    assert not locks._locks
    assert not locks._users


async def _hold(locks: ClaimLocks) -> None:
    async with locks.hold([B, A]):
        pass
