"""Desks: threads that read and decide large calls outside the event loop.

A desk has a lane (a thread) and services for the work in it: steps of its own, because steps cache what they read, and
a reader that asks the store from another thread. The dispatcher chooses a desk by the size of the body and of the
stored object. Only the commit runs on the event loop; if the objects that were read have changed, the call is decided
again.

A small call can take long as well if it evaluates costly expressions or patterns. It is decided on the event loop with
an allowance of effort, and moves to the desk for costly calls if it exceeds that.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Hashable
from typing import Final, NamedTuple, TypeVar

import msgspec

from drachma.bounds import effort
from drachma.server import status
from drachma.server.access.authorization import DistantAuthoriser
from drachma.server.calls.call import Call
from drachma.server.lanes import Lane, Lanes
from drachma.server.pipeline import intent as intents
from drachma.server.pipeline.answer import Answer
from drachma.server.pipeline.plan import Plan, Planner
from drachma.server.pipeline.services import MakePhases, Services
from drachma.server.reads.distantreader import DistantReader, Lookups
from drachma.store import record

_T = TypeVar("_T")


class Desk:
    """One lane, and the services to decide in it."""

    def __init__(self, lane: Lane, services: Services, reader: DistantReader) -> None:
        """``services`` read the store through ``reader``, which belongs to them alone."""
        self._lane: Final = lane
        self._services: Final = services
        self._reader: Final = reader

    async def run(self, work: Callable[[], _T]) -> _T:
        """Run ``work`` in the desk's lane; a 413 if it takes more effort than a request may take."""
        allowance = effort.Allowance(effort.THREAD_UNITS)

        def begin() -> _T:
            try:
                with effort.limit(allowance):
                    return work()
            except effort.OverrunError:
                raise status.too_large("deciding takes more effort than a request may take") from None

        return await self._lane.run(begin)

    async def plan(self, planner: Planner, call: Call) -> Plan:
        """Run a planner on a call."""
        return await self.run(lambda: planner(self._services, call))

    async def decide(self, intent: intents.Intent) -> tuple[intents.Decision, Lookups]:
        """Decide an intent; return the decision and the reads that it depends on."""
        return await self.run(lambda: self._reader.run_recording(lambda: intent.decide(self._reader.get)))

    async def answer(self, plan: Plan, outcome: intents.Outcome) -> Answer:
        """Make the answer of a plan."""
        return await self.run(lambda: plan.answer(outcome))


class Desks:
    """All desks of an application, by the size of calls."""

    def __init__(self, lanes: Lanes, services: Services, *, make_phases: MakePhases) -> None:
        """``services`` are those of small calls. ``make_phases`` made their phases, and makes those of the desks."""
        self._lanes: Final = lanes
        self._store: Final = services.store
        authoriser = DistantAuthoriser(services.authoriser, lanes)

        def desk(lane: Lane) -> Desk:
            reader = DistantReader(services.store, lanes)
            phases = make_phases(reader, authoriser=authoriser)
            return Desk(lane, msgspec.structs.replace(services, store=reader, phases=phases), reader)

        self._desks: Final = {lane: desk(lane) for lane in lanes.all}
        self._costly: Final = desk(lanes.costly)
        self._room: Final = Room()

    def weigh(self, call: Call) -> int:
        """Return the bytes that a call is about: of its body, or of the object that it changes."""
        size = len(call.body.data)
        if call.target.name:
            existing = self._store.get(_key(call))
            if existing is not None:
                size = max(size, len(existing.data))
        return size

    def of(self, size: int) -> Desk | None:
        """Return the desk for a call of a size; None for one that is decided on the loop."""
        if size < self._lanes.least:
            return None
        lane = self._lanes.of(size)
        assert lane is not None, "sizes from the smallest limit on have a lane"
        return self._desks[lane]

    @property
    def costly(self) -> Desk:
        """Desk for a small call that takes long."""
        return self._costly

    def enter(self, call: Call, size: int) -> contextlib.AbstractAsyncContextManager[None]:
        """Wait for the memory that a call of a size takes at a desk, and for other calls about its object."""
        return self._room.enter(size, _key(call) if call.target.name else call)


def _key(call: Call) -> record.Key:
    target = call.target
    return record.Key(target.resource.key, target.namespace or "", target.name)


LIMIT: Final = 256 * 2**20
"""Bytes that all large calls of an application may use together."""

FACTOR: Final = 12
"""Bytes in memory for a byte of JSON, in all forms that a call holds it in."""


class _Turn(NamedTuple):
    """Call that waits to enter."""

    share: int
    key: Hashable
    admitted: asyncio.Future[None]


class Room:
    """Limit in bytes, given out in the order of arrival. For one event loop."""

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit: Final = limit
        self._waiting: Final[list[_Turn]] = []
        self._keys: Final[set[Hashable]] = set()
        self._used = 0

    @property
    def used(self) -> int:
        """Bytes that calls use now."""
        return self._used

    @contextlib.asynccontextmanager
    async def enter(self, size: int, key: Hashable) -> AsyncIterator[None]:
        """Hold room for a call about ``size`` bytes of JSON, alone of all calls about ``key``.

        A call that is larger than the room has the room alone.
        """
        turn = _Turn(min(size * FACTOR, self._limit), key, asyncio.get_running_loop().create_future())
        self._waiting.append(turn)
        self._admit()
        try:
            await turn.admitted
            yield
        finally:
            if turn in self._waiting:
                self._waiting.remove(turn)
            else:
                self._used -= turn.share
                self._keys.discard(turn.key)
            self._admit()

    def _admit(self) -> None:
        """Let calls in: the first ones that fit, but none ahead of a call that waits for bytes."""
        for turn in tuple(self._waiting):
            if turn.key in self._keys:
                continue
            if self._used + turn.share > self._limit:
                return
            self._waiting.remove(turn)
            self._used += turn.share
            self._keys.add(turn.key)
            if not turn.admitted.done():
                turn.admitted.set_result(None)
