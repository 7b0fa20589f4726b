"""Seats: how many requests of each priority level run at once.

The server has a fixed number of seats. Every level has a nominal number by its shares. Of these it keeps some in any
case, and lends the others while it does not need them; a level that needs more borrows up to its limit. A seat that
becomes free goes to a level below its nominal number first, and then to one that borrows.

Differs from upstream: seats are lent and given back request by request, and not by an adjustment every ten seconds.
Every request takes one seat; upstream estimates more for large lists.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

import msgspec

from drachma.server.flowcontrol.fairqueue import FairQueue, Queue

_Ticket = TypeVar("_Ticket")


class Queuing(msgspec.Struct, frozen=True):
    """Number of queues, size of a hand, and requests that may wait in one queue."""

    queues: int
    hand: int
    length_limit: int


class LevelSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of a priority level. Without ``queuing``, requests that find no seat are refused."""

    name: str
    uid: str = ""
    is_exempt: bool = False
    shares: int = 0
    lendable_percent: int = 0
    borrowing_percent: int | None = None
    queuing: Queuing | None = None


def parse_level(name: str, uid: str, spec: Mapping[str, Any]) -> LevelSpec:
    """Return the configuration of a stored spec."""
    if spec["type"] == "Exempt":
        return LevelSpec(name=name, uid=uid, is_exempt=True)
    limited = spec["limited"]
    queuing = (limited.get("limitResponse") or {}).get("queuing")
    return LevelSpec(
        name=name,
        uid=uid,
        shares=limited.get("nominalConcurrencyShares") or 0,
        lendable_percent=limited.get("lendablePercent") or 0,
        borrowing_percent=limited.get("borrowingLimitPercent"),
        queuing=Queuing(queuing["queues"], queuing["handSize"], queuing["queueLengthLimit"]) if queuing else None,
    )


class Level(Generic[_Ticket]):
    """A priority level: its limits in seats, the requests that run and those that wait."""

    __slots__ = ("_queuing", "executing", "is_removed", "kept", "most", "nominal", "queue", "spec")

    def __init__(self, spec: LevelSpec) -> None:
        self.spec = spec
        self.nominal = self.kept = self.most = 0
        self.executing = 0
        self.is_removed = False
        self.queue: FairQueue[_Ticket] | None = None
        self._queuing: Queuing | None = None

    @property
    def waiting(self) -> int:
        """Requests that wait for a seat."""
        return len(self.queue) if self.queue is not None else 0

    def open_queue(self) -> FairQueue[_Ticket] | None:
        """Return the queues for another request; queues of an older configuration stay while requests wait in them."""
        queuing = self.spec.queuing
        if queuing != self._queuing and not self.waiting:
            self._queuing = queuing
            self.queue = (
                FairQueue(queues=queuing.queues, hand=queuing.hand, length_limit=queuing.length_limit)
                if queuing is not None
                else None
            )
        return self.queue

    def limit(self, nominal: int, total: int) -> None:
        """Set the limits in seats that follow from a nominal number."""
        spec = self.spec
        self.nominal = nominal
        self.kept = nominal - _percentage(nominal, spec.lendable_percent)
        borrowed = spec.borrowing_percent
        self.most = total if borrowed is None else nominal + _percentage(nominal, borrowed)


def _percentage(number: int, percent: int) -> int:
    return (number * percent + 50) // 100


class Seats(Generic[_Ticket]):
    """All seats of a server, and the levels that share them."""

    def __init__(self, total: int) -> None:
        self.total: Final = total
        self.levels: Final[dict[str, Level[_Ticket]]] = {}
        self._committed = 0
        """Seats that are taken, or that a level keeps for itself."""

    def configure(self, specs: Iterable[LevelSpec]) -> None:
        """Take on the levels of a cluster; a level that is gone stays until its requests are done."""
        new_specs = {spec.name: spec for spec in specs}
        for name, spec in new_specs.items():
            level = self.levels.get(name)
            if level is None:
                level = self.levels[name] = Level(spec)
            level.spec = spec
        for name, level in list(self.levels.items()):
            level.is_removed = name not in new_specs
            self._forget(level)
        limited = [level for level in self.levels.values() if not level.spec.is_exempt and not level.is_removed]
        shares = sum(level.spec.shares for level in limited)
        for level in limited:
            level.limit(math.ceil(self.total * level.spec.shares / shares) if shares else 0, self.total)
        self._committed = sum(
            max(level.executing, level.kept) for level in self.levels.values() if not level.spec.is_exempt
        )

    def start(self, level: Level[_Ticket]) -> bool:
        """Take a seat if one is free for a level; return False if the request has to wait or to be refused."""
        if not level.spec.is_exempt:
            if (level.queue is not None and len(level.queue)) or not self._has_seat(level):
                return False
            if level.executing >= level.kept:
                self._committed += 1
        level.executing += 1
        return True

    def finish(self, level: Level[_Ticket]) -> None:
        """Give a seat back. Tickets that can run now are returned by :meth:`dispatch`."""
        if not level.spec.is_exempt and level.executing > level.kept:
            self._committed -= 1
        level.executing -= 1
        if level.is_removed:
            self._forget(level)

    def dispatch(self) -> Iterator[tuple[_Ticket, Level[_Ticket], Queue[_Ticket]]]:
        """Yield the tickets that have got a seat, each as soon as it has one."""
        while True:
            candidates = [level for level in self.levels.values() if level.waiting and self._has_seat(level)]
            if not candidates:
                return
            level = min(candidates, key=lambda each: each.executing / each.nominal if each.nominal else math.inf)
            assert level.queue is not None, "requests wait in queues"
            dequeued = level.queue.dequeue()
            assert dequeued is not None, "requests wait"
            if level.executing >= level.kept:
                self._committed += 1
            level.executing += 1
            yield dequeued[0], level, dequeued[1]

    def _has_seat(self, level: Level[_Ticket]) -> bool:
        if level.executing < level.kept:
            return True
        return level.executing < level.most and self._committed < self.total

    def _forget(self, level: Level[_Ticket]) -> None:
        if level.is_removed and not level.executing and not level.waiting:
            self.levels.pop(level.spec.name, None)
