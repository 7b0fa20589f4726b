"""A fresh server for every test that wants one."""

from collections.abc import AsyncIterator

import pytest_asyncio

from tests.unit.server import client


@pytest_asyncio.fixture
async def server() -> AsyncIterator[client.Client]:
    started = await client.start()
    yield started
    await started.app.close()
    await started.store.close()
