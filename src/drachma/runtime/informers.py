"""A process's informers: each selection of a kind is listed and watched once, however many components want it.

Enter it as an async context and all informers run; those asked for later start at once. Leaving it stops them;
an informer that fails cancels the context and raises in a group.
"""

import asyncio
import random
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from drachma.api import meta
from drachma.client import backoff, protocol, target
from drachma.runtime import clock
from drachma.runtime.informer import Informer

ObjectT = TypeVar("ObjectT", bound=meta.Object)


class Informers:
    """The shared informers on one client."""

    def __init__(
        self,
        client: protocol.Client,
        *,
        time: clock.Clock | None = None,
        chance: random.Random | None = None,
        pauses: backoff.Backoff | None = None,
    ) -> None:
        self._client: Final = client
        self._clock: Final = time or clock.SystemClock()
        self._chance: Final = chance or random.Random()
        self._pauses: Final = pauses
        self._informers: Final[dict[tuple[target.Target[Any], protocol.Selection], Informer[Any]]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._tasks: Final[list[asyncio.Task[None]]] = []

    def of(self, kind: target.Of[ObjectT], selection: protocol.Selection = protocol.EVERYTHING) -> Informer[ObjectT]:
        """The informer of a selection; the same one for all who ask for the same."""
        key = (target.of(kind), selection)
        informer = self._informers.get(key)
        if informer is None:
            informer = Informer(
                self._client,
                kind,
                selection=selection,
                time=self._clock,
                chance=self._chance,
                pauses=self._pauses,
            )
            self._informers[key] = informer
            self._start(informer)
        return informer

    def observe(self, kind: target.Of[ObjectT], written: ObjectT) -> None:
        """Give an object that this process has just written to the informer of all objects of its kind, if any."""
        informer = self._informers.get((target.of(kind), protocol.EVERYTHING))
        if informer is not None:
            informer.observe(written)

    async def wait_synced(self) -> None:
        """Returns once every informer asked for so far has its first list."""
        for informer in tuple(self._informers.values()):
            await informer.wait_synced()

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
            # What went wrong in the context is raised as it is, not as one of a group.
            await group.__aexit__(None, None, None)

    def _start(self, informer: Informer[Any]) -> None:
        if self._group is not None:
            self._tasks.append(self._group.create_task(informer.run()))
