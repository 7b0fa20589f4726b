"""Informers of a process: each selection of a kind is listed and watched once for all components.

Enter it as an async context to run all informers; those requested later start at once. Leaving it stops them. An
informer that fails cancels the context and raises in a group.
"""

import asyncio
import random
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from drachma.api import meta
from drachma.client import backoff, protocol, target
from drachma.runtime.clock import Clock, SystemClock
from drachma.runtime.informer import Informer

ObjectT = TypeVar("ObjectT", bound=meta.Object)


class Informers:
    """Shared informers on one client."""

    def __init__(
        self,
        client: protocol.Client,
        *,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        pauses: backoff.Backoff | None = None,
    ) -> None:
        self._client: Final = client
        self._clock: Final = clock or SystemClock()
        self._rng: Final = rng or random.Random()
        self._pauses: Final = pauses
        self._informers: Final[dict[tuple[target.Target[Any], protocol.Selection], Informer[Any]]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._tasks: Final[list[asyncio.Task[None]]] = []

    def of(
        self,
        kind: target.Of[ObjectT],
        selection: protocol.Selection = protocol.EVERYTHING,
        *,
        with_documents: bool = False,
    ) -> Informer[ObjectT]:
        """Return the informer of a selection, shared by all callers that name the same selection.

        With documents, ``Cache.entry`` gives the fields that the typed view does not have.

        Raises:
            errors.InvalidValueError: documents are wanted, and the informer has listed without them already.
        """
        key = (target.of(kind), selection)
        informer = self._informers.get(key)
        if informer is None:
            informer = Informer(
                self._client,
                kind,
                selection=selection,
                clock=self._clock,
                rng=self._rng,
                pauses=self._pauses,
            )
            self._informers[key] = informer
            self._start(informer)
        if with_documents:
            informer.keep_documents()
        return informer

    def observe(
        self, kind: target.Of[ObjectT], obj: ObjectT | protocol.StoredObject[ObjectT] | protocol.Document
    ) -> None:
        """Give an object that this process has just written to the informer of all objects of its kind, if any."""
        informer = self._informers.get((target.of(kind), protocol.EVERYTHING))
        if informer is not None:
            informer.observe(obj)

    async def wait_synced(self) -> None:
        """Return once every informer requested so far has its first list."""
        for informer in tuple(self._informers.values()):
            await informer.wait_synced()

    def problems(self) -> list[str]:
        """Return why components cannot rely on their caches: an informer that has not listed yet, or that fails."""
        return [problem for informer in self._informers.values() if (problem := informer.problem)]

    def absences(self) -> list[str]:
        """Return the kinds that the API server does not serve and that components can do without."""
        return [absence for informer in self._informers.values() if (absence := informer.absence)]

    async def __aenter__(self) -> Self:
        self._group = await asyncio.TaskGroup().__aenter__()
        for informer in self._informers.values():
            self._start(informer)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._group is not None, "entered before it is left"
        for task in self._tasks:
            task.cancel()
        group, self._group = self._group, None
        if kind is None or issubclass(kind, asyncio.CancelledError):
            await group.__aexit__(kind, error, trace)
        else:
            # An error in the context is raised as it is, not in a group.
            await group.__aexit__(None, None, None)

    def _start(self, informer: Informer[Any]) -> None:
        if self._group is not None:
            self._tasks.append(self._group.create_task(informer.run()))
