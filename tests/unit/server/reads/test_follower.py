"""An index that follows the store misses no change, also if it is interrupted."""

import pytest

from drachma.bounds import effort
from drachma.server.reads import follower
from drachma.store import memory, record

RESOURCE = "configmaps"


class _Names:
    """Index of names, whose next update can overrun its allowance of effort."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.overruns = False

    def clear(self) -> None:
        self.names.clear()

    def put(self, existing: record.Record) -> None:
        if self.overruns:
            self.overruns = False
            raise effort.OverrunError
        self.names.add(existing.key.name)

    def drop(self, deleted: record.Record) -> None:
        self.names.discard(deleted.key.name)


async def test_changes_are_read_again_after_an_interruption() -> None:
    store, index = memory.MemoryStore(), _Names()
    following = follower.Follower(store, (RESOURCE,), index)
    await store.create(record.Key(RESOURCE, "default", "old"), record.fixed(b"{}"))
    following.catch_up()
    await store.create(record.Key(RESOURCE, "default", "new"), record.fixed(b"{}"))
    index.overruns = True
    with pytest.raises(effort.OverrunError):
        following.catch_up()
    following.catch_up()
    assert index.names == {"old", "new"}
    await store.close()
