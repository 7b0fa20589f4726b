"""The ledger of a node: what it has, and what its pods take, in one account for pod requests and devices alike.

The cluster keeps one per node and books pods in and out; the fit check, scoring and preemption read it. What a pod
takes is worked out once, as a :class:`Demand`, from its requests and from what the devices of its claims mean for
node-allocatable resources (KEP-5517). Nothing is refused here: a node can be overdrawn, as in any cluster.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from drachma.accounting import policies, ports, requests, resourcenames
from drachma.api import node as nodes
from drachma.api import pod


class Demand(NamedTuple):
    """What one pod takes of a node."""

    amounts: resourcenames.Amounts
    scored_cpu: int
    """With a default for containers that do not say; only nodes' scores are made of it. Likewise for memory."""
    scored_memory: int
    ports: tuple[ports.HostPort, ...]
    pools: tuple[policies.PoolUse, ...] = ()
    """Pools of claims that it draws requests from; those are not among its amounts."""


def demand(of: pod.Pod, *, claims: requests.ClaimStatuses = (), settled: policies.Settlement | None = None) -> Demand:
    """What a pod takes, with what its claims add; ``settled`` says what it draws from pools."""
    scored = requests.for_scoring(of, claims=claims)
    return Demand(
        resourcenames.amounts(without(requests.total(of, claims=claims), settled)),
        resourcenames.counted(resourcenames.CPU, scored.get(resourcenames.CPU, 0)),
        resourcenames.counted(resourcenames.MEMORY, scored.get(resourcenames.MEMORY, 0)),
        ports.wanted(of),
        () if settled is None else settled.pools,
    )


def without(asked: resourcenames.Nanos, settled: policies.Settlement | None) -> resourcenames.Nanos:
    """What is left to ask of a node when something comes out of pools."""
    if settled is None or not settled.drawn:
        return asked
    return {name: max(amount - settled.drawn.get(name, 0), 0) for name, amount in asked.items()}


class Booking(NamedTuple):
    """A pod on a node."""

    pod: pod.Pod
    demand: Demand


class Pool:
    """What a claim holds on a node for its pods to draw from."""

    __slots__ = ("held", "users")

    def __init__(self, held: resourcenames.Amounts) -> None:
        self.held = held
        self.users: dict[str, resourcenames.Amounts] = {}
        """What each pod, by uid, takes of it."""

    def left(self) -> dict[str, int]:
        """What nobody takes."""
        found = dict(self.held)
        for taken in self.users.values():
            for name, amount in taken:
                found[name] = found.get(name, 0) - amount
        return found


class Ledger:
    """The account of one node."""

    __slots__ = (
        "allocatable", "allowed_pods", "bookings", "pools", "requested", "scored_cpu", "scored_memory", "used_ports",
    )  # fmt: skip

    def __init__(self, bookings: Iterable[Booking] = ()) -> None:
        self.allocatable: dict[str, int] = {}
        self.allowed_pods = 0
        self.requested: dict[str, int] = {}
        self.scored_cpu = 0
        self.scored_memory = 0
        self.bookings: dict[str, Booking] = {}
        """The pods of the node by uid."""
        self.used_ports: list[ports.HostPort] = []
        self.pools: dict[str, Pool] = {}
        """Pools by their claim."""
        for booking in bookings:
            self.book(booking)

    def measure(self, node: nodes.Node) -> None:
        """Take over what the node has."""
        self.allocatable = resourcenames.allocatable(node.status.allocatable)
        pods = node.status.allocatable.get(resourcenames.PODS)
        self.allowed_pods = 0 if pods is None else pods.as_int64()

    def book(self, booking: Booking) -> None:
        """Count a pod in, in place of what was booked for it before."""
        uid = booking.pod.metadata.uid
        if uid in self.bookings:
            self.cancel(uid)
        self.bookings[uid] = booking
        self._count(booking.demand, 1)
        self.used_ports += booking.demand.ports
        for use in booking.demand.pools:
            pool = self.pools.get(use.claim)
            if pool is None:
                pool = self.pools[use.claim] = Pool(use.held)
                self._change(use.held, 1)
            pool.users[uid] = use.taken

    def cancel(self, uid: str) -> Booking | None:
        """Count a pod out; None if it was not in."""
        booking = self.bookings.pop(uid, None)
        if booking is not None:
            self._count(booking.demand, -1)
            for port in booking.demand.ports:
                self.used_ports.remove(port)
            for use in booking.demand.pools:
                pool = self.pools[use.claim]
                pool.users.pop(uid, None)
                if not pool.users:
                    del self.pools[use.claim]
                    self._change(pool.held, -1)
        return booking

    def copy(self) -> Ledger:
        """The same account, to be changed apart: for what-if questions."""
        other = Ledger()
        other.allocatable, other.allowed_pods = self.allocatable, self.allowed_pods
        other.requested = dict(self.requested)
        other.scored_cpu, other.scored_memory = self.scored_cpu, self.scored_memory
        other.bookings = dict(self.bookings)
        other.used_ports = list(self.used_ports)
        for claim, pool in self.pools.items():
            other.pools[claim] = Pool(pool.held)
            other.pools[claim].users = dict(pool.users)
        return other

    def left(self, name: str) -> int:
        """What is left of a resource; negative where the node is overdrawn."""
        return self.allocatable.get(name, 0) - self.requested.get(name, 0)

    def _count(self, demand: Demand, sign: int) -> None:
        self._change(demand.amounts, sign)
        self.scored_cpu += sign * demand.scored_cpu
        self.scored_memory += sign * demand.scored_memory

    def _change(self, amounts: resourcenames.Amounts, sign: int) -> None:
        requested = self.requested
        for name, amount in amounts:
            total = requested.get(name, 0) + sign * amount
            if total:
                requested[name] = total
            else:
                requested.pop(name, None)
