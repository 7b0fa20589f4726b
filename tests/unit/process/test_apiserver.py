"""The API server on a store: where the history of a cluster begins."""

import datetime as dt
import random

from drachma.process import apiserver
from drachma.server.wire import app
from drachma.store import memory, record


async def _build(store: memory.MemoryStore) -> app.Application:
    return await apiserver.build(store, utc=lambda: dt.datetime(2026, 1, 1, tzinfo=dt.UTC), chance=random.Random(1))


async def test_the_history_of_a_new_cluster_begins_when_it_is_complete() -> None:
    store = memory.MemoryStore()
    await _build(store)
    assert store.compacted == store.revision > 1, "older resource versions are too old, as in upstream"


async def test_a_restart_keeps_the_history() -> None:
    store = memory.MemoryStore()
    await _build(store)
    begin = store.revision
    key = record.Key("configmaps", "default", "a")
    await store.create(key, record.fixed(b"{}"))
    await _build(store)
    assert store.compacted == begin < store.revision, "clients go on where they were"
