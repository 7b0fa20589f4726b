"""Informers: a selection of one kind kept in memory, with handlers that are called for every change in order.

An informer lists once, then watches from there. When the watch ends it resumes at the last resource version, which
bookmarks keep recent. Only if the server no longer has that history it lists again and calls handlers for the
differences. Failures are retried with growing pauses and never raised, because a component cannot work without its
informers. :attr:`Informer.failure` reports the current failure.

Handlers are plain functions that return quickly, preferably by putting a key in a queue. A handler that raises has a
defect: it is reported, and the handler is called again for this object with growing pauses, while all others go on.
"""

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable
from typing import Final, Generic, TypeVar

from drachma import errors
from drachma.api import codec, meta
from drachma.client import absences, backoff, bodies, protocol, target, wire
from drachma.runtime import cache, defects, deliveries, resourceversion
from drachma.runtime.clock import Clock

ObjectT = TypeVar("ObjectT", bound=meta.Object)
AnswerT = TypeVar("AnswerT")

_log = logging.getLogger(__name__)

PAGE: Final = 500
"""Objects requested at once when listing; between pages other tasks run."""

_SHORT_SECONDS: Final = 1.0
"""A watch that ends this soon and without an event is not repeated at once."""


_FIRST_SILENCE: Final = 5.0
_LONGEST_SILENCE: Final = 60.0
"""Seconds between two log lines about the same failure, at first and at most."""


Handler = deliveries.Handler
"""Functions that users of an informer have called for each change."""


class Informer(Generic[ObjectT]):
    """One selection of one kind. Made and run by :class:`drachma.runtime.informers.Informers`."""

    def __init__(
        self,
        client: protocol.Client,
        kind: target.Of[ObjectT],
        *,
        selection: protocol.Selection = protocol.EVERYTHING,
        clock: Clock,
        rng: random.Random,
        pauses: backoff.Backoff | None = None,
    ) -> None:
        self.cache: Final[cache.Cache[ObjectT]] = cache.Cache()
        self._client: Final = client
        self._target: Final = target.of(kind)
        self._selection: Final = selection
        self._clock: Final = clock
        self._pauses: Final = backoff.Pauses(pauses or backoff.Backoff(), rng)
        self._handlers: Final[deliveries.Handlers[ObjectT]] = deliveries.Handlers(self._target.qualified)
        self._retries: asyncio.Task[None] | None = None
        self._synced: Final = asyncio.Event()
        self._keeps_documents = False
        self._resource_version = ""
        self._failure: errors.DrachmaError | None = None
        self._logged_text = ""
        self._log_pause = self._next_log = 0.0

    @property
    def is_synced(self) -> bool:
        """True if the first list is complete and handlers have been called for all of it."""
        return self._synced.is_set()

    @property
    def target(self) -> target.Target[ObjectT]:
        """The resource that the informer follows."""
        return self._target

    @property
    def resource_version(self) -> str:
        """Resource version that the cache has reached; empty before the first list."""
        return self._resource_version

    @property
    def failure(self) -> errors.DrachmaError | None:
        """Current failure of list or watch, or None."""
        return self._failure

    @property
    def problem(self) -> str:
        """Reason why the cache cannot be relied on: the current failure, or a first list under way; else empty."""
        if self._failure is not None and not self._is_absence(self._failure):
            return f"{self._target.qualified}: {self._failure}"
        return "" if self.is_synced else f"{self._target.qualified}: not listed yet"

    @property
    def absence(self) -> str:
        """Kind that the API server does not serve, and what does not work because of that; empty if it serves it."""
        if self._failure is None or not self._is_absence(self._failure):
            return ""
        name = self._target.qualified
        return f"{name}: the API server does not serve this kind: {absences.consequence(name)}"

    async def wait_synced(self) -> None:
        """Return once the first list is complete."""
        await self._synced.wait()

    def add_handler(self, handler: Handler[ObjectT]) -> None:
        """Call a handler for every object in the cache, and then for every change, in the order of handlers."""
        self._handlers.add(handler, self.cache)
        self._plan_retry()

    def keep_documents(self) -> None:
        """Keep the JSON of every object next to its typed view, for ``Cache.entry``. Ask for it before the first list.

        Raises:
            errors.InvalidValueError: the informer has listed without documents already, or reads metadata only.
        """
        if self._target.model is meta.Object:
            raise errors.InvalidValueError(f"informer of {self._target.qualified}: reads metadata only")
        if not self._keeps_documents and self._resource_version:
            raise errors.InvalidValueError(f"informer of {self._target.qualified}: has listed without documents")
        self._keeps_documents = True

    def observe(self, obj: ObjectT | protocol.StoredObject[ObjectT] | protocol.Document) -> ObjectT:
        """Take in an object that this process has just written, before the watch reports it. Return its typed form.

        Decisions on the cache then rest on the process's own writes. The object must belong to the selection. It is
        ignored if the watch has come past it: then the cache has this version, a newer one, or the object is gone.
        If the informer keeps documents of a kind with partial views, give the document or the stored object that the
        write returned.

        Raises:
            errors.InvalidValueError: the document is needed, and the object is a partial view.
        """
        new, data = self._both_forms(obj)
        if resourceversion.is_newer(new.metadata.resource_version, self._resource_version):
            self._put(new, data)
        return new

    def _both_forms(
        self, answer: ObjectT | protocol.StoredObject[ObjectT] | protocol.Document
    ) -> tuple[ObjectT, bytes | None]:
        """Return a written object in both of its forms."""
        if isinstance(answer, protocol.StoredObject):
            return answer.object, answer.source.data if self._keeps_documents else None
        if isinstance(answer, dict):
            version = answer["apiVersion"].rpartition("/")[2]
            data = bodies.encode(answer)
            return wire.reader(self._target, version).object(data), data
        if not self._keeps_documents:
            return answer, None
        if not self._target.is_complete:
            name = f"{self._target.qualified} {cache.key_of(answer)}"
            raise errors.InvalidValueError(f"{name}: is a partial view: observe the document that was written")
        api_version = self._target.api_version(self._target.versions[0])
        return answer, codec.encode_json(answer, api_version=api_version)

    async def run(self) -> None:
        """Keep the cache up to date until cancelled."""
        try:
            while True:
                try:
                    if not self._resource_version:
                        await self._list()
                    await self._watch()
                except _UnansweredError as interruption:
                    self._fail(interruption.failure)
                    await self._clock.sleep(self._pauses.next())
        finally:
            if self._retries is not None:
                self._retries.cancel()

    def _fail(self, failure: errors.DrachmaError) -> None:
        self._failure = failure
        if isinstance(failure, errors.HistoryGoneError):
            self._resource_version = ""
        elif self._is_absence(failure):
            if not self.is_synced:
                _log.info("%s", self.absence)
            self._synced.set()
        else:
            self._report(failure)

    def _is_absence(self, failure: errors.DrachmaError) -> bool:
        """Return True if the cluster does not serve this kind at present, and components can do without it."""
        return self._target.is_optional and isinstance(failure, errors.ObjectNotFoundError)

    def _report(self, failure: errors.DrachmaError) -> None:
        """Log a failure when it begins, and then as often as its pauses grow, at most once a minute."""
        text, now = str(failure), self._clock.monotonic()
        if text == self._logged_text and now < self._next_log:
            return
        self._log_pause = min(self._log_pause * 2, _LONGEST_SILENCE) if text == self._logged_text else _FIRST_SILENCE
        self._logged_text, self._next_log = text, now + self._log_pause
        _log.warning("%s: %s; trying again", self._target.qualified, failure)

    def _recover(self) -> None:
        self._failure = None
        if self._logged_text:
            _log.info("%s: the API server answers again", self._target.qualified)
            self._logged_text = ""

    # Listing

    async def _list(self) -> None:
        """Replace the cache by a new list, and call handlers for the differences."""
        listed, resource_version = await _request(self._everything())
        if self.cache:
            keys = {cache.key_of(each) for each, _ in listed}
            age = resourceversion.number(resource_version)
            for each in self.cache:
                # An object that was written after the list was made is observed, not gone.
                is_listed = cache.key_of(each) in keys
                if not is_listed and resourceversion.number(each.metadata.resource_version) <= age:
                    self._drop(each)
        for each, data in listed:
            self._put(each, data)
        self._resource_version = resource_version
        self._recover()
        self._synced.set()

    async def _everything(self) -> tuple[list[tuple[ObjectT, bytes | None]], str]:
        try:
            return await self._pages(limit=PAGE)
        except errors.HistoryGoneError:
            # The first page is too old for the next ones: list without pages.
            return await self._pages(limit=0)

    async def _pages(self, *, limit: int) -> tuple[list[tuple[ObjectT, bytes | None]], str]:
        objects: list[tuple[ObjectT, bytes | None]] = []
        token = ""
        while True:
            page = await self._client.list(self._target, self._selection, limit=limit, continue_token=token)
            if self._keeps_documents:
                objects += zip(page.items, (source.data for source in page.sources), strict=True)
            else:
                objects += ((each, None) for each in page.items)
            token = page.continue_token
            if not token:
                return objects, page.resource_version

    # Watching

    async def _watch(self) -> None:
        """Follow one watch to its end."""
        began = self._clock.monotonic()
        is_silent = True
        async with contextlib.AsyncExitStack() as stack:
            watch = self._client.watch(self._target, self._selection, resource_version=self._resource_version)
            events = await _request(stack.enter_async_context(watch))
            self._recover()
            while batch := await _request(events.batch()):
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
            source = event.source if self._keeps_documents else None
            self._put(event.object, source.data if source is not None else None)
        self._resource_version = event.object.metadata.resource_version

    def _put(self, new: ObjectT, data: bytes | None) -> None:
        metadata = new.metadata
        cached = self.cache.get(metadata.name, namespace=metadata.namespace)
        if cached is not None:
            current = cached.metadata
            if current.resource_version == metadata.resource_version and current.uid == metadata.uid:
                # The version was observed before.
                return
            if resourceversion.is_newer(current.resource_version, metadata.resource_version):
                # A newer version was observed before.
                return
        old = self.cache.put(new, data)
        if old is not None and old.metadata.uid != metadata.uid:
            # Deleted and created again between two watches: every handler learns of the one before the other.
            self._tell(old, None)
            old = None
        self._tell(old, new)

    def _drop(self, deleted: ObjectT) -> None:
        metadata = deleted.metadata
        cached = self.cache.get(metadata.name, namespace=metadata.namespace)
        if cached is None or resourceversion.is_newer(cached.metadata.resource_version, metadata.resource_version):
            return
        if self.cache.drop(deleted) is not None:
            self._tell(deleted, None)

    # Handlers

    def _tell(self, old: ObjectT | None, new: ObjectT | None) -> None:
        self._handlers.deliver(old, new)
        if self._handlers.is_behind:
            self._plan_retry()

    def _plan_retry(self) -> None:
        if self._handlers.is_behind and self._retries is None:
            self._retries = asyncio.get_running_loop().create_task(self._retry())

    async def _retry(self) -> None:
        """Call handlers again until none of them is behind."""
        pause = defects.FIRST_PAUSE_SECONDS
        while self._handlers.is_behind:
            await self._clock.sleep(pause)
            pause = min(2 * pause, defects.LONGEST_PAUSE_SECONDS)
            self._handlers.retry(lambda key: self.cache.get(key.name, namespace=key.namespace))
        self._retries = None


class _UnansweredError(Exception):
    """The server did not answer; distinct from errors that handlers raise."""

    def __init__(self, failure: errors.DrachmaError) -> None:
        super().__init__(str(failure))
        self.failure: Final = failure


async def _request(answer: Awaitable[AnswerT]) -> AnswerT:
    try:
        return await answer
    except (errors.RequestError, errors.UnreachableError, errors.AccessError, errors.DecodeError) as failure:
        raise _UnansweredError(failure) from failure
