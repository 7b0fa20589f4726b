"""Fair queuing inside a priority level: flows that wait take turns by the time that they have used.

A waiting request goes to the shortest queue of its flow's hand. The next request to run is that of the queue with the
least time used. A queue that was empty starts with the time of the queue that was served last, so that it neither
saves up time nor has to catch up. Queues exist while requests wait in them or run from them.
"""

from typing import Final, Generic, TypeVar

from drachma.server.flowcontrol import dealer

_Ticket = TypeVar("_Ticket")

ESTIMATED_SECONDS: Final = 0.003
"""Time that a request is expected to take, until it has run."""


class Queue(Generic[_Ticket]):
    """Requests of flows that were dealt the same queue."""

    __slots__ = ("executing", "number", "used", "waiting")

    def __init__(self, number: int, used: float) -> None:
        self.number: Final = number
        self.used = used
        self.executing = 0
        self.waiting: dict[_Ticket, None] = {}


class FairQueue(Generic[_Ticket]):
    """The queues of a level."""

    def __init__(self, *, queues: int, hand: int, length_limit: int) -> None:
        self._count: Final = queues
        self._hand: Final = hand
        self._length_limit: Final = length_limit
        self._queues: Final[dict[int, Queue[_Ticket]]] = {}
        self._last_used = 0.0
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def enqueue(self, flow: int, ticket: _Ticket) -> Queue[_Ticket] | None:
        """Return the queue in which the ticket waits; None if the shortest queue of the flow's hand is full."""
        hand = dealer.deal(flow, queues=self._count, hand=self._hand)
        number = min(hand, key=self._load)
        queue = self._queues.get(number)
        if queue is None:
            queue = self._queues[number] = Queue(number, self._last_used)
        elif len(queue.waiting) >= self._length_limit:
            return None
        queue.waiting[ticket] = None
        self._length += 1
        return queue

    def dequeue(self) -> tuple[_Ticket, Queue[_Ticket]] | None:
        """Return the ticket whose turn it is, which counts as running in its queue; None if none waits."""
        waiting_queues = (queue for queue in self._queues.values() if queue.waiting)
        queue = min(waiting_queues, key=lambda each: each.used, default=None)
        if queue is None:
            return None
        ticket = next(iter(queue.waiting))
        del queue.waiting[ticket]
        self._length -= 1
        queue.executing += 1
        self._last_used = queue.used
        queue.used += ESTIMATED_SECONDS
        return ticket, queue

    def remove(self, queue: Queue[_Ticket], ticket: _Ticket) -> bool:
        """Take a ticket out of its queue; return False if it does not wait any more."""
        if ticket not in queue.waiting:
            return False
        del queue.waiting[ticket]
        self._length -= 1
        self._forget(queue)
        return True

    def finish(self, queue: Queue[_Ticket], seconds: float) -> None:
        """Charge a queue for a request that has run."""
        queue.executing -= 1
        queue.used += seconds - ESTIMATED_SECONDS
        self._forget(queue)

    def _load(self, number: int) -> int:
        queue = self._queues.get(number)
        return len(queue.waiting) + queue.executing if queue is not None else 0

    def _forget(self, queue: Queue[_Ticket]) -> None:
        if not queue.waiting and not queue.executing and self._queues.get(queue.number) is queue:
            del self._queues[queue.number]
