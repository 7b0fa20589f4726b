"""The reading part of a store."""

from collections.abc import Callable
from typing import Protocol

from drachma.store import protocol, record


class Reader(Protocol):
    """The reading part of :class:`drachma.store.protocol.Store`, which documents the methods."""

    @property
    def revision(self) -> int: ...

    @property
    def compacted(self) -> int: ...

    def changed(self, resource: str) -> int: ...

    def get(self, key: record.Key) -> record.Record | None: ...

    def list(
        self,
        resource: str,
        namespace: str | None = None,
        *,
        revision: int | None = None,
        limit: int | None = None,
        after: record.Key | None = None,
        where: Callable[[record.Record], bool] | None = None,
    ) -> protocol.Page: ...

    def watch(self, resource: str, namespace: str | None = None, *, after: int) -> protocol.Watch: ...
