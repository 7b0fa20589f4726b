"""Desks: where large calls are read and decided, apart from the event loop.

A desk has a lane, and services for work in it: steps of its own, since those remember what they have read, on a store
that is asked from afar. The dispatcher gives calls to a desk by the size of their bodies and of what they are about;
everything that takes time in proportion to that is done there. Only the commit is made on the loop: what was looked up
has to be as it was, or it is decided anew.
"""

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from drachma.server.access.distantauthoriser import DistantAuthoriser
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
    """One lane and what is needed to decide in it."""

    def __init__(self, lane: Lane, services: Services, reader: DistantReader) -> None:
        """``services`` have ``reader`` to read the store, and no others do."""
        self._lane: Final = lane
        self._services: Final = services
        self._reader: Final = reader

    async def run(self, work: Callable[[], _T]) -> _T:
        """What ``work`` makes, in the desk's lane."""
        return await self._lane.run(work)

    async def plan(self, planner: Planner, call: Call) -> Plan:
        """What a planner makes of a call."""
        return await self._lane.run(lambda: planner(self._services, call))

    async def decide(self, intent: intents.Intent) -> tuple[intents.Decision, Lookups]:
        """What an intent decides, and what it has looked up for that."""
        return await self._lane.run(lambda: self._reader.noting(lambda: intent.decide(self._reader.get)))

    async def answer(self, plan: Plan, outcome: intents.Outcome) -> Answer:
        """How a plan answers."""
        return await self._lane.run(lambda: plan.answer(outcome))


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

    def of(self, call: Call) -> Desk | None:
        """The desk for a call; None for one that is decided on the spot."""
        size, target = len(call.body.data), call.target
        if target.name:
            stored = self._store.get(record.Key(target.resource.key, target.namespace or "", target.name))
            if stored is not None:
                size = max(size, len(stored.data))
        if size < self._lanes.least:
            return None
        lane = self._lanes.of(size)
        assert lane is not None, "what is not less than the least has a lane"
        return self._desks[lane]
