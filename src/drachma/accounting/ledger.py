"""The ledger of a node: its resources, and the demands of its pods, for pod requests and devices alike.

The cluster keeps one per node, and books pods in and out. The fit check, scoring and preemption read it. The demand of
a pod is computed once, as a :class:`Demand`, from its requests and from the footprints of its claims' devices
(KEP-5517). Nothing is refused here: a node can be overdrawn, as in any cluster. Checks of requests and of mapped
devices ask :func:`lacking_resources`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from drachma.accounting import policies, ports, requests, resourcenames
from drachma.api import node as nodes
from drachma.api import pod

_REVISIONS: Final = itertools.count(1)


class Demand(NamedTuple):
    """Resources that one pod uses on its node."""

    amounts: resourcenames.Amounts
    scored_cpu: int
    """Requested cpu with a default for containers without a request, for scoring only. Likewise for memory."""
    scored_memory: int
    ports: tuple[ports.HostPort, ...]
    pools: tuple[policies.PoolUse, ...] = ()
    """Pools of claims from which it draws requests, which are not among its amounts."""


def demand(
    requesting: pod.Pod, *, claims: requests.ClaimStatuses = (), settled: policies.Settlement | None = None
) -> Demand:
    """Return the demand of a pod with its claims. ``settled`` has the amounts that it draws from pools."""
    scored = requests.scoring_total(requesting, claims=claims)
    return Demand(
        resourcenames.amounts(without(requests.total(requesting, claims=claims), settled)),
        resourcenames.counted(resourcenames.CPU, scored.get(resourcenames.CPU, 0)),
        resourcenames.counted(resourcenames.MEMORY, scored.get(resourcenames.MEMORY, 0)),
        ports.host_ports(requesting),
        () if settled is None else settled.pools,
    )


def without(requested: resourcenames.Nanos, settled: policies.Settlement | None) -> resourcenames.Nanos:
    """Return the amounts that the node must provide after those from pools."""
    if settled is None or not settled.drawn:
        return requested
    return {name: max(amount - settled.drawn.get(name, 0), 0) for name, amount in requested.items()}


class Booking(msgspec.Struct, frozen=True):
    """Pod on a node."""

    pod: pod.Pod
    demand: Demand


class Pool:
    """Resources that a claim reserves on a node for its pods."""

    __slots__ = ("held", "users")

    def __init__(self, reserved: resourcenames.Amounts) -> None:
        self.held = reserved
        self.users: dict[str, resourcenames.Amounts] = {}
        """Amounts of each pod, by uid."""

    def left(self) -> dict[str, int]:
        """Return the amounts left."""
        amounts = dict(self.held)
        for drawn in self.users.values():
            for name, amount in drawn:
                amounts[name] = amounts.get(name, 0) - amount
        return amounts


class Ledger:
    """Account of one node."""

    __slots__ = (
        "allocatable", "allowed_pods", "bookings", "pools", "requested", "revision", "scored_cpu", "scored_memory",
        "used_ports",
    )  # fmt: skip

    def __init__(self, bookings: Iterable[Booking] = ()) -> None:
        self.allocatable: dict[str, int] = {}
        self.allowed_pods = 0
        self.requested: dict[str, int] = {}
        self.scored_cpu = 0
        self.scored_memory = 0
        self.bookings: dict[str, Booking] = {}
        """Pods of the node by uid."""
        self.used_ports: list[ports.HostPort] = []
        self.pools: dict[str, Pool] = {}
        """Pools by their claim."""
        self.revision = 0
        """Number that is equal only for ledgers with the same bookings."""
        for booking in bookings:
            self.book(booking)

    def measure(self, node: nodes.Node) -> None:
        """Take the node's capacity from its object."""
        self.allocatable = resourcenames.allocatable(node.status.allocatable)
        pods = node.status.allocatable.get(resourcenames.PODS)
        self.allowed_pods = 0 if pods is None else pods.as_int64()

    def book(self, booking: Booking) -> None:
        """Book a pod in, replacing its earlier booking."""
        uid = booking.pod.metadata.uid
        if uid in self.bookings:
            self.cancel(uid)
        self.revise(booking)
        self._count(booking.demand, 1)
        self.used_ports += booking.demand.ports
        for use in booking.demand.pools:
            pool = self.pools.get(use.claim)
            if pool is None:
                pool = self.pools[use.claim] = Pool(use.held)
                self._change(use.held, 1)
            pool.users[uid] = use.taken

    def revise(self, booking: Booking) -> None:
        """Replace the booking of a pod by one with the same demand."""
        self.bookings[booking.pod.metadata.uid] = booking
        self.revision = next(_REVISIONS)

    def cancel(self, uid: str) -> Booking | None:
        """Book a pod out. Return None if it was not booked."""
        booking = self.bookings.pop(uid, None)
        if booking is not None:
            self.revision = next(_REVISIONS)
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
        """Return a copy that can be changed separately, for what-if questions."""
        copy = Ledger()
        copy.allocatable, copy.allowed_pods = self.allocatable, self.allowed_pods
        copy.requested = dict(self.requested)
        copy.scored_cpu, copy.scored_memory = self.scored_cpu, self.scored_memory
        copy.bookings = dict(self.bookings)
        copy.revision = self.revision
        copy.used_ports = list(self.used_ports)
        for claim, pool in self.pools.items():
            copy.pools[claim] = Pool(pool.held)
            copy.pools[claim].users = dict(pool.users)
        return copy

    def left(self, name: str) -> int:
        """Return the amount left of a resource; negative if the node is overdrawn."""
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


def lacking_resources(
    amounts: resourcenames.Amounts, account: Ledger, *, delegated: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Return the resources of which a node has too little left. It need not have ``delegated`` ones at all."""
    allocatable, requested = account.allocatable, account.requested
    short = []
    for name, amount in amounts:
        has = allocatable.get(name, 0)
        if amount > has - requested.get(name, 0) and not (has == 0 and name in delegated):
            short.append(name)
    return tuple(short)


def could_fit_empty(short: Iterable[str], requested: resourcenames.Amounts, *, account: Ledger) -> bool:
    """Return True if the empty node would be large enough."""
    amounts = dict(requested)
    return all(amounts[name] <= account.allocatable.get(name, 0) for name in short)
