"""Both stores behind one fixture, so that every test of the contract runs through each of them."""

import contextlib
import pathlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias

import pytest

from drachma import store

Open: TypeAlias = Callable[..., Awaitable[store.Store]]


@pytest.fixture(params=["memory", "sqlite"])
async def open_store(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> AsyncIterator[Open]:
    """Opens stores with the limits given, and closes them at the end."""
    async with contextlib.AsyncExitStack() as stack:
        count = 0

        async def open_one(limits: store.Limits | None = None) -> store.Store:
            nonlocal count
            count += 1
            made: store.MemoryStore | store.SqliteStore
            if request.param == "memory":
                made = store.MemoryStore(limits=limits)
            else:
                made = await store.SqliteStore.open(tmp_path / str(count), limits=limits)
            return await stack.enter_async_context(made)

        yield open_one


@pytest.fixture
async def objects(open_store: Open) -> store.Store:
    return await open_store()
