"""Desks: where large calls are read and decided, apart from the event loop.

A desk has a lane, and services for work in it: steps of its own, since those remember what they have read, on a store
that is asked from afar. The dispatcher gives calls to a desk by the size of their bodies and of what they are about;
everything that takes time in proportion to that is done there. Only the commit is made on the loop: what was looked up
has to be as it was, or it is decided anew.

Small calls can take long as well, if they have costly expressions or patterns in them. They are decided on the loop
with an allowance of effort, and at the desk for costly calls if they use it up.
"""

import contextlib
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from drachma.bounds import effort
from drachma.server import status
from drachma.server.access.distantauthoriser import DistantAuthoriser
from drachma.server.calls.call import Call
from drachma.server.lanes import Lane, Lanes
from drachma.server.pipeline import intent as intents
from drachma.server.pipeline.answer import Answer
from drachma.server.pipeline.plan import Plan, Planner
from drachma.server.pipeline.services import MakePhases, Services
from drachma.server.reads.distantreader import DistantReader, Lookups
from drachma.server.room import Room
from drachma.store import record

_T = TypeVar("_T")


class Desk:
    """One lane and what is needed to decide in it."""

    def __init__(self, lane: Lane, services: Services, reader: DistantReader) -> None:
        """``services`` have ``reader`` to read the store, and no others do."""
        self._lane: Final = lane
        self._services: Final = services
        self._reader: Final = reader

    async def run(self, work: Callable[[], _T]) -> _T:
        """What ``work`` makes, in the desk's lane; a 413 for work that takes longer than others can wait for."""
        allowance = effort.Allowance(effort.THREAD_UNITS)

        def begin() -> _T:
            try:
                with effort.limit(allowance):
                    return work()
            except effort.OverrunError:
                raise status.too_large("deciding takes more effort than a request may take") from None

        return await self._lane.run(begin)

    async def plan(self, planner: Planner, call: Call) -> Plan:
        """What a planner makes of a call."""
        return await self.run(lambda: planner(self._services, call))

    async def decide(self, intent: intents.Intent) -> tuple[intents.Decision, Lookups]:
        """What an intent decides, and what it has looked up for that."""
        return await self.run(lambda: self._reader.noting(lambda: intent.decide(self._reader.get)))

    async def answer(self, plan: Plan, outcome: intents.Outcome) -> Answer:
        """How a plan answers."""
        return await self.run(lambda: plan.answer(outcome))


class Desks:
    """The desks of one application, by what is large enough for each."""

    def __init__(self, lanes: Lanes, services: Services, *, make_phases: MakePhases) -> None:
        """``services`` are those of calls that are not large, with phases that ``make_phases`` has made, too."""
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
            stored = self._store.get(_key(call))
            if stored is not None:
                size = max(size, len(stored.data))
        return size

    def of(self, size: int) -> Desk | None:
        """Return the desk for a call of a size; None for one that is decided on the loop."""
        if size < self._lanes.least:
            return None
        lane = self._lanes.of(size)
        assert lane is not None, "what is not less than the least has a lane"
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
