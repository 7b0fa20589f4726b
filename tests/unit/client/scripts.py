"""A client whose answers to list and watch are written down beforehand, for tests of informers."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

from msgspec import structs

from drachma.api import meta, pod
from drachma.client import protocol, target
from drachma.client.protocol import Change, Event, Listing
from drachma.testing import pod as build_pod

Batch = Sequence[Event[Any]] | Exception


def version(name: str, revision: int, *, uid: str = "") -> pod.Pod:
    """A pod in one version."""
    built = build_pod(name).build()
    metadata = structs.replace(
        built.metadata, namespace="default", resource_version=str(revision), uid=uid or f"uid-of-{name}"
    )
    return structs.replace(built, metadata=metadata)


def added(name: str, revision: int) -> Event[pod.Pod]:
    return Event(Change.ADDED, version(name, revision))


def modified(name: str, revision: int) -> Event[pod.Pod]:
    return Event(Change.MODIFIED, version(name, revision))


def deleted(name: str, revision: int) -> Event[pod.Pod]:
    return Event(Change.DELETED, version(name, revision))


def bookmark(revision: int) -> Event[pod.Pod]:
    return Event(Change.BOOKMARK, pod.Pod(metadata=meta.ObjectMeta(resource_version=str(revision))))


def listing(revision: int, *items: pod.Pod, token: str = "") -> Listing[pod.Pod]:
    return Listing(items=items, resource_version=str(revision), continue_token=token)


class ScriptedClient:
    """Answers in the order written; ``calls`` has what was asked. After the last answer a watch stays silent."""

    def __init__(self, *, lists: Sequence[Listing[Any] | Exception], watches: Sequence[Sequence[Batch] | Exception]):
        self.calls: list[str] = []
        self.finished = asyncio.Event()
        self.after_first_batch: Callable[[], None] = lambda: None
        """Called once, when the first batch of a watch was handled."""
        self._lists = list(lists)
        self._watches = list(watches)

    @property
    def client(self) -> protocol.Client:
        """As what informers take; all other verbs would fail."""
        return cast(protocol.Client, self)

    async def list(
        self, kind: target.Target[Any], selection: protocol.Selection, *, limit: int = 0, continue_token: str = ""
    ) -> Listing[Any]:
        self.calls.append(f"list {kind.plural} limit={limit}" + (f" from={continue_token}" if continue_token else ""))
        answer = self._lists.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @asynccontextmanager
    async def watch(
        self, kind: target.Target[Any], selection: protocol.Selection, *, resource_version: str
    ) -> AsyncIterator["ScriptedWatch"]:
        self.calls.append(f"watch {kind.plural} from={resource_version}")
        answer = self._watches.pop(0) if self._watches else None
        if isinstance(answer, Exception):
            raise answer
        yield ScriptedWatch(answer, self)


class ScriptedWatch:
    def __init__(self, batches: Sequence[Batch] | None, script: ScriptedClient) -> None:
        self._batches = list(batches) if batches is not None else None
        self._script = script
        self._is_first = True

    async def batch(self) -> Sequence[Event[Any]]:
        if not self._is_first:
            self._script.after_first_batch()
            self._script.after_first_batch = lambda: None
        self._is_first = False
        if self._batches is None:
            self._script.finished.set()
            await asyncio.Event().wait()
            raise AssertionError("nobody sets this event")
        if not self._batches:
            return ()
        answer = self._batches.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer
