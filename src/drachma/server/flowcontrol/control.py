"""Flow control on the event loop: classifies requests by the stored configuration, and lets them wait for seats.

It follows the stored flow schemas and priority levels at the moment that it is asked, and adds the two mandatory ones
of each where they are not stored. It belongs to one event loop.
"""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from drachma.server.flowcontrol import classification, dealer, measures, seats
from drachma.server.flowcontrol.classification import Classifier, Inquiry, Schema
from drachma.server.flowcontrol.fairqueue import Queue
from drachma.server.reads import follower
from drachma.server.reads.reader import Reader
from drachma.server.user import User
from drachma.store import record
from drachma.validation import flowcontrol

SCHEMAS: Final = "flowcontrol.apiserver.k8s.io/flowschemas"
LEVELS: Final = "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations"

_CATCH_ALL: Final = "catch-all"
_HEADERS: Final = (b"x-kubernetes-pf-flowschema-uid", b"x-kubernetes-pf-prioritylevel-uid")

_REMEMBERED: Final = 2048
_REMEMBERED_CHARACTERS: Final = 2048
"""Flows that are remembered, and the length of the user's name, groups and path beyond which none is."""

_Ticket: TypeAlias = "asyncio.Future[Queue[Any]]"


class RefusedError(Exception):
    """A request that gets no seat: its level has no room, or it waited too long."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason: Final = reason


class Flow:
    """A class of requests: those of one schema that share a queue. ``headers`` tell clients about it."""

    __slots__ = ("_counts", "_level", "_name", "_schema", "headers", "is_exempt")

    def __init__(self, schema: Schema, level: seats.Level[_Ticket], counts: measures.Counts, *, name: str) -> None:
        self._schema: Final = schema
        self._level: Final = level
        self._counts: Final = counts
        self._name: Final = name
        self.is_exempt: Final = level.spec.is_exempt
        uids = (schema.uid, level.spec.uid)
        self.headers: Final = tuple((name, uid.encode()) for name, uid in zip(_HEADERS, uids, strict=True) if uid)


class Seat:
    """A seat that a request has."""

    __slots__ = ("_control", "_flow", "_is_released", "_queue", "_started")

    def __init__(self, control: "FlowControl", flow: Flow, started: float, *, queue: Queue[Any] | None = None) -> None:
        self._control: Final = control
        self._flow: Final = flow
        self._queue: Final = queue
        self._started: Final = started
        self._is_released = False

    def release(self) -> None:
        """Give the seat back, and let others run; a second call does nothing."""
        if not self._is_released:
            self._is_released = True
            self._control._finish(self._flow, self._queue, self._started)


class FlowControl:
    """Classifies requests and gives them seats."""

    def __init__(self, store: Reader, *, total: int, wait_seconds: float, clock: Callable[[], float]) -> None:
        """``total`` seats; requests wait at most ``wait_seconds`` by ``clock``."""
        self._clock: Final = clock
        self._wait_seconds: Final = wait_seconds
        self._index: Final = _Index()
        self._follower: Final = follower.Follower(store, (SCHEMAS, LEVELS), self._index)
        self._seats: Final[seats.Seats[_Ticket]] = seats.Seats(total)
        self._classifier = Classifier(())
        self._flows: Final[dict[tuple[str, tuple[str, ...], Inquiry], Flow]] = {}
        self._waiting = 0
        self.measures: Final = measures.Measures(self._seats)

    def classify(self, user: User, inquiry: Inquiry) -> Flow:
        """Return the flow of a request."""
        self._follower.catch_up()
        if self._index.is_changed:
            self._configure()
        key = (user.name, user.groups, inquiry)
        flow = self._flows.get(key)
        if flow is None:
            flow = self._new_flow(user, inquiry)
            length = len(user.name) + sum(map(len, user.groups)) + sum(map(len, inquiry))
            if length <= _REMEMBERED_CHARACTERS:
                if len(self._flows) >= _REMEMBERED:
                    self._flows.clear()
                self._flows[key] = flow
        return flow

    def _new_flow(self, user: User, inquiry: Inquiry) -> Flow:
        schema = self._classifier.classify(user, inquiry)
        if schema is None:
            # A user without any group matches no schema for all users.
            schema = self._index.schemas[_CATCH_ALL]
        level = self._seats.levels[schema.level]
        counts = self.measures.counts_of(schema.level, schema.name)
        return Flow(schema, level, counts, name=schema.flow_of(user, inquiry))

    def start(self, flow: Flow) -> Seat | None:
        """Return a seat if one is free, else None."""
        if not self._seats.start(flow._level):
            return None
        flow._counts.at_once += 1
        return Seat(self, flow, self._clock())

    async def wait(self, flow: Flow) -> Seat:
        """Return a seat once one is free.

        Raises:
            RefusedError: the level does not queue, its queues are full, or the time to wait is over.
        """
        counts, queues = flow._counts, flow._level.open_queue()
        if queues is None:
            raise self._refuse(counts, "concurrency-limit")
        ticket: _Ticket = asyncio.get_running_loop().create_future()
        began = self._clock()
        queue = queues.enqueue(dealer.hash_flow(flow._schema.name, flow._name), ticket)
        if queue is None:
            raise self._refuse(counts, "queue-full")
        counts.waiting += 1
        self._waiting += 1
        try:
            async with asyncio.timeout(self._wait_seconds):
                await ticket
        except TimeoutError:
            if ticket.cancelled():
                queues.remove(queue, ticket)
                raise self._refuse(counts, "time-out", waited=self._clock() - began) from None
        except asyncio.CancelledError:
            queues.remove(queue, ticket)
            if not ticket.cancelled():
                # It has a seat that it does not use.
                counts.waited.observe(self._clock() - began)
                self._finish(flow, queue, self._clock())
            raise
        finally:
            counts.waiting -= 1
            self._waiting -= 1
        started = self._clock()
        counts.waited.observe(started - began)
        return Seat(self, flow, started, queue=queue)

    def _finish(self, flow: Flow, queue: Queue[Any] | None, started: float) -> None:
        seconds = self._clock() - started
        flow._counts.durations.observe(seconds)
        level = flow._level
        if queue is not None and level.queue is not None:
            level.queue.finish(queue, seconds)
        self._seats.finish(level)
        if self._waiting:
            self._dispatch()

    def _dispatch(self) -> None:
        for ticket, level, queue in self._seats.dispatch():
            if not ticket.cancelled():
                ticket.set_result(queue)
                continue
            # Its request has just given up, and has not left the queue yet.
            if level.queue is not None:
                level.queue.finish(queue, 0.0)
            self._seats.finish(level)

    def _refuse(self, counts: measures.Counts, reason: str, *, waited: float = 0.0) -> RefusedError:
        counts.refuse(reason, waited)
        return RefusedError(reason)

    def _configure(self) -> None:
        self._index.is_changed = False
        self._seats.configure(self._index.levels.values())
        # A schema whose level is not there matches nothing.
        schemas = [schema for schema in self._index.schemas.values() if schema.level in self._index.levels]
        self._classifier = Classifier(schemas)
        self._flows.clear()
        self._dispatch()


class _Index:
    """The stored configuration, with the mandatory objects."""

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}
        self.levels: dict[str, seats.LevelSpec] = {}
        self.is_changed = True
        self.clear()

    def clear(self) -> None:
        self.schemas = {schema.name: schema for schema in _mandatory_schemas()}
        self.levels = {level.name: level for level in _mandatory_levels()}
        self.is_changed = True

    def put(self, entry: record.Record) -> None:
        name, document = entry.key.name, entry.value
        uid, spec = document["metadata"].get("uid", ""), document["spec"]
        if entry.key.resource == SCHEMAS:
            self.schemas[name] = classification.parse_schema(name, uid, spec)
        else:
            self.levels[name] = seats.parse_level(name, uid, spec)
        self.is_changed = True

    def drop(self, entry: record.Record) -> None:
        name = entry.key.name
        if entry.key.resource == SCHEMAS:
            self.schemas.pop(name, None)
            self.schemas.update((each.name, each) for each in _mandatory_schemas() if each.name == name)
        else:
            self.levels.pop(name, None)
            self.levels.update((each.name, each) for each in _mandatory_levels() if each.name == name)
        self.is_changed = True


def _mandatory_schemas() -> Iterator[Schema]:
    for name, spec in flowcontrol.MANDATORY_SCHEMAS.items():
        yield classification.parse_schema(name, "", spec)


def _mandatory_levels() -> Iterator[seats.LevelSpec]:
    for name, spec in flowcontrol.MANDATORY_LEVELS.items():
        yield seats.parse_level(name, "", spec)
