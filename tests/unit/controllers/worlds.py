"""A cluster for tests of controllers: the real server on the memory store, in process, on a clock that tests move."""

import asyncio
import contextlib
import logging
import random
from collections.abc import AsyncIterator, Callable
from typing import Any, Final, TypeVar, cast

from msgspec import structs

from drachma.api import event, meta
from drachma.api import gates as features
from drachma.client import Client, patches
from drachma.process import embedded
from drachma.runtime import Surroundings, controller
from drachma.store import memory
from drachma.testing import manualclock as clocks
from tests import clusterview, firstalpha

ObjectT = TypeVar("ObjectT", bound=meta.Object)

Make = Callable[[Surroundings], controller.Controller]


NEEDING_CREDENTIALS: Final = frozenset(
    {
        "certificatesigningrequest-signing-controller",
        "root-ca-certificate-publisher-controller",
        "serviceaccount-token-controller",
    }
)
"""Controllers that a process has only if it may make tokens or certificates, or knows an authority."""


class _Defects(logging.Handler):
    """What controllers log when they fail in a way that nobody foresaw."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.found.append(self.format(record))


class World(clusterview.ClusterView):
    """The cluster, what a test does to it and what it sees of it. ``settle`` lets controllers come to rest."""

    def __init__(self, client: Client, clock: clocks.ManualClock, *, components: Client, gates: features.Gates) -> None:
        super().__init__(client)
        self.clock = clock
        self.surroundings: Surroundings
        self._components = components
        self._gates = gates
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, *make: Make) -> None:
        """Starts controllers that know nothing yet, and lets them come to rest."""
        self.launch(*make)
        await clocks.settle()

    def launch(self, *make: Make) -> None:
        """Starts controllers and goes on at once."""
        self.surroundings = Surroundings(self._components, clock=self.clock, rng=random.Random(2), gates=self._gates)
        controllers = [each(self.surroundings) for each in make]
        self._tasks.append(asyncio.create_task(_run(self.surroundings, controllers)))

    async def stop(self) -> None:
        """Stops all controllers wherever they are; what one of them failed with is raised."""
        for task in self._tasks:
            if task.done():
                await task
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._tasks.clear()

    async def settle(self) -> None:
        await clocks.settle()

    async def advance(self, seconds: float) -> None:
        await self.clock.advance(seconds)

    async def create(self, made: ObjectT) -> ObjectT:
        """Creates an object, with its status."""
        return await self.create_with_status(made)

    async def patch(self, known: ObjectT, content: Any) -> ObjectT:
        return await self.client.patch(
            type(known), known.metadata.name, patch=patches.merge(content), namespace=known.metadata.namespace
        )

    async def get(self, known: ObjectT) -> ObjectT:
        return await self.client.get(type(known), known.metadata.name, namespace=known.metadata.namespace)

    async def exists(self, known: meta.Object) -> bool:
        stored = await self.find(type(known), known.metadata.name, known.metadata.namespace)
        return stored is not None and stored.metadata.uid == known.metadata.uid

    async def delete(self, known: meta.Object, **options: Any) -> None:
        await self.client.delete(type(known), known.metadata.name, namespace=known.metadata.namespace, **options)

    async def events(self) -> list[str]:
        """All events, without those that repeat."""
        return sorted(f"{e.type} {e.reason}: {e.message}" for e in await self.all_of(event.Event))

    def metric(self, name: str, /, **labels: str) -> float | None:
        return self.surroundings.registry.get_sample_value(name, labels)


@contextlib.asynccontextmanager
async def world(
    *make: Make,
    gates: features.Gates = features.ALL,
    wrap: Callable[[Client], Client] = lambda client: client,
) -> AsyncIterator[World]:
    """A cluster with these controllers running; ``wrap`` puts something between them and the server.

    ``gates`` are those of the controllers; the server can do everything.
    """
    clock = clocks.ManualClock()
    async with embedded.server(
        memory.MemoryStore(), time=clock, rng=random.Random(7), gates=firstalpha.GATES, manager="tester"
    ) as server:
        made = World(server.client, clock, components=wrap(server.client), gates=gates)
        defects, log = _Defects(), logging.getLogger("drachma")
        log.addHandler(defects)
        try:
            await made.start(*make)
            yield made
        finally:
            log.removeHandler(defects)
            await made.stop()
        assert not defects.found, "\n".join(defects.found)


async def _run(surroundings: Surroundings, controllers: list[controller.Controller]) -> None:
    async with surroundings.informers:
        await controller.run_all(surroundings, controllers)


_VERBS = (
    "create",
    "create_document",
    "update",
    "update_document",
    "patch",
    "patch_document",
    "patch_stored",
    "delete",
    "delete_collection",
    "get",
    "list",
    "bind",
)


class Meddler:
    """A client that does what another does, but calls ``before`` first and ``after`` last, with verb and arguments.

    It makes one change at a time, as clients of servers elsewhere do.
    """

    def __init__(self, client: Client, before: Callable[..., Any], after: Callable[..., Any]) -> None:
        self._client = client
        self._before = before
        self._after = after

    def __getattr__(self, name: str) -> Any:
        if name == "commit":
            raise AttributeError(name)
        method = getattr(self._client, name)
        if name not in _VERBS:
            return method

        async def meddled(*args: Any, **kwargs: Any) -> Any:
            outcome = self._before(name, *args, **kwargs)
            if asyncio.iscoroutine(outcome):
                await outcome
            answer = await method(*args, **kwargs)
            self._after(name, *args, **kwargs)
            return answer

        return meddled


def _nothing(*_: Any, **__: Any) -> None:
    return None


def meddling(
    before: Callable[..., Any] = _nothing, *, after: Callable[..., Any] = _nothing
) -> Callable[[Client], Client]:
    """Puts a meddler between components and the server."""
    return lambda client: cast(Client, Meddler(client, before, after))


def renamed(made: ObjectT, **metadata: Any) -> ObjectT:
    """With other metadata."""
    return structs.replace(made, metadata=structs.replace(made.metadata, **metadata))
