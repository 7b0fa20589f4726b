"""Informers: a selection of one kind kept in memory, with handlers that hear of every change in order.

An informer lists once, then watches from there. When the watch ends it goes on from the last resource version, which
bookmarks keep recent; only when the server no longer has that history it lists again and tells handlers the
difference. Failures are waited out with growing pauses; they are never raised, because a component without its
informers has nothing better to do than wait. :attr:`Informer.failure` says what is wrong meanwhile.

Handlers are plain functions that return quickly, best by putting a key in a queue. One that raises ends the informer:
it is a defect, and going on would hide that an event was lost.
"""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

import msgspec

from drachma import errors
from drachma.api import meta
from drachma.client import backoff, protocol, target
from drachma.runtime import cache, clock, resourceversion

ObjectT = TypeVar("ObjectT", bound=meta.Object)
AnswerT = TypeVar("AnswerT")

PAGE: Final = 500
"""Objects asked for at once when listing; between pages other tasks get their turn."""

_SHORT_SECONDS: Final = 1.0
"""A watch that ends this soon and without an event is not tried again at once."""


def _nothing(*_: object) -> None:
    return None


class Handler(msgspec.Struct, Generic[ObjectT], frozen=True, kw_only=True):
    """What to call for each change; ``deleted`` gets the last known state."""

    added: Callable[[ObjectT], None] = _nothing
    updated: Callable[[ObjectT, ObjectT], None] = _nothing
    deleted: Callable[[ObjectT], None] = _nothing


class Informer(Generic[ObjectT]):
    """One selection of one kind. Made and run by :class:`drachma.runtime.informers.Informers`."""

    def __init__(
        self,
        client: protocol.Client,
        kind: target.Of[ObjectT],
        *,
        selection: protocol.Selection = protocol.EVERYTHING,
        time: clock.Clock,
        chance: random.Random,
        pauses: backoff.Backoff | None = None,
    ) -> None:
        self.cache: Final[cache.Cache[ObjectT]] = cache.Cache()
        self._client: Final = client
        self._target: Final = target.of(kind)
        self._selection: Final = selection
        self._clock: Final = time
        self._pauses: Final = backoff.Pauses(pauses or backoff.Backoff(), chance)
        self._handlers: Final[list[Handler[ObjectT]]] = []
        self._synced: Final = asyncio.Event()
        self._resource_version = ""
        self._failure: errors.DrachmaError | None = None

    @property
    def is_synced(self) -> bool:
        """Whether the first list is complete and handlers have heard of all of it."""
        return self._synced.is_set()

    @property
    def resource_version(self) -> str:
        """How far the cache has come; empty before the first list."""
        return self._resource_version

    @property
    def failure(self) -> errors.DrachmaError | None:
        """Why nothing comes in at the moment, or None while all is well."""
        return self._failure

    async def wait_synced(self) -> None:
        """Returns once the first list is complete."""
        await self._synced.wait()

    def add_handler(self, handler: Handler[ObjectT]) -> None:
        """Hears of every change from now on, in the order of handlers, and first of all that is there already."""
        self._handlers.append(handler)
        for each in self.cache:
            handler.added(each)

    def observe(self, written: ObjectT) -> None:
        """Take in an object that this process has just written, before the watch reports it.

        Decisions on the cache then rest on the process's own writes. The object must belong to the selection. It is
        ignored if the watch has come past it: then the cache has this version, a newer one, or the object is gone.
        """
        if resourceversion.number(written.metadata.resource_version) > resourceversion.number(self._resource_version):
            self._put(written)

    async def run(self) -> None:
        """Keeps the cache up to date until cancelled."""
        while True:
            try:
                if not self._resource_version:
                    await self._list()
                await self._watch()
            except _UnansweredError as interruption:
                self._failure = interruption.failure
                if isinstance(interruption.failure, errors.HistoryGoneError):
                    self._resource_version = ""
                if self._target.is_optional and isinstance(interruption.failure, errors.ObjectNotFoundError):
                    # The cluster does without this kind, for now.
                    self._synced.set()
                await self._clock.sleep(self._pauses.next())

    # Listing

    async def _list(self) -> None:
        """Replaces what is known by what there is, and tells handlers the difference."""
        listed, resource_version = await _asked(self._everything())
        if self.cache:
            keys = set(map(cache.key_of, listed))
            age = resourceversion.number(resource_version)
            for each in self.cache:
                # An object that was written after the list was made is observed, not gone.
                is_listed = cache.key_of(each) in keys
                if not is_listed and resourceversion.number(each.metadata.resource_version) <= age:
                    self._drop(each)
        for each in listed:
            self._put(each)
        self._resource_version = resource_version
        self._failure = None
        self._synced.set()

    async def _everything(self) -> tuple[list[ObjectT], str]:
        try:
            return await self._pages(limit=PAGE)
        except errors.HistoryGoneError:
            # The first page is already too old for the next ones: all in one go, then.
            return await self._pages(limit=0)

    async def _pages(self, *, limit: int) -> tuple[list[ObjectT], str]:
        objects: list[ObjectT] = []
        token = ""
        while True:
            page = await self._client.list(self._target, self._selection, limit=limit, continue_token=token)
            objects += page.items
            token = page.continue_token
            if not token:
                return objects, page.resource_version

    # Watching

    async def _watch(self) -> None:
        """Follows one watch to its end."""
        began = self._clock.monotonic()
        is_silent = True
        async with contextlib.AsyncExitStack() as stack:
            watch = self._client.watch(self._target, self._selection, resource_version=self._resource_version)
            events = await _asked(stack.enter_async_context(watch))
            self._failure = None
            while batch := await _asked(events.batch()):
                is_silent = False
                self._pauses.reset()
                for event in batch:
                    self._handle(event)
        if is_silent and self._clock.monotonic() - began < _SHORT_SECONDS:
            await self._clock.sleep(self._pauses.next())

    def _handle(self, event: protocol.Event[ObjectT]) -> None:
        if event.change is protocol.Change.DELETED:
            self._drop(event.object)
        elif event.change is not protocol.Change.BOOKMARK:
            self._put(event.object)
        self._resource_version = event.object.metadata.resource_version

    def _put(self, new: ObjectT) -> None:
        if self._is_outdated(new):
            return
        old = self.cache.put(new)
        if old is None:
            for handler in self._handlers:
                handler.added(new)
        elif old.metadata.uid != new.metadata.uid:
            # Deleted and made anew while nobody watched: two objects, and handlers must not take them for one.
            for handler in self._handlers:
                handler.deleted(old)
            for handler in self._handlers:
                handler.added(new)
        elif old.metadata.resource_version != new.metadata.resource_version:
            for handler in self._handlers:
                handler.updated(old, new)

    def _drop(self, gone: ObjectT) -> None:
        if not self._is_outdated(gone) and self.cache.drop(gone) is not None:
            for handler in self._handlers:
                handler.deleted(gone)

    def _is_outdated(self, reported: ObjectT) -> bool:
        """Return True if the cache has a newer version of an object, because it was observed before."""
        metadata = reported.metadata
        known = self.cache.get(metadata.name, namespace=metadata.namespace)
        if known is None or known.metadata.resource_version == metadata.resource_version:
            return False
        return resourceversion.number(known.metadata.resource_version) > resourceversion.number(
            metadata.resource_version
        )


class _UnansweredError(Exception):
    """The server could not be asked; kept apart from what handlers raise."""

    def __init__(self, failure: errors.DrachmaError) -> None:
        super().__init__(str(failure))
        self.failure: Final = failure


async def _asked(answer: Awaitable[AnswerT]) -> AnswerT:
    try:
        return await answer
    except (errors.RequestError, errors.UnreachableError, errors.AccessError, errors.DecodeError) as failure:
        raise _UnansweredError(failure) from failure
