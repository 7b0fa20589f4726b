"""Membership: the schedulers that work at the same time, and which of them looks after a pod.

Every scheduler keeps a lease of its own; one that was not renewed for as long as it is valid, on the clock of whoever
looks, belongs to a dead one. Pods are dealt out to the living of one ``schedulerName`` by a hash, so that a scheduler
that comes or goes moves no pods between the others. Who looks at different moments may see different members: that
costs a try in vain and nothing else, because a pod has to be announced before anything is done with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from drachma.api import lease, pod
from drachma.scheduler.snapshot import gangs

SCHEDULER_ANNOTATION: Final = "drachma/scheduler-name"
"""The ``schedulerName`` that the holder of a lease schedules for."""

_VALID_SECONDS: Final = 15.0


class _Member(msgspec.Struct, frozen=True):
    scheduler: str
    seen: float
    valid: float


class Membership:
    """Who is there, as one scheduler sees it."""

    def __init__(self, own: str, *, scheduler: str, monotonic: Callable[[], float], has_gangs: bool = False) -> None:
        """``own`` is the name of this scheduler's lease, ``scheduler`` its ``schedulerName``."""
        self._own: Final = own
        self._scheduler: Final = scheduler
        self._monotonic: Final = monotonic
        self._has_gangs: Final = has_gangs
        self._members: Final[dict[str, _Member]] = {}
        self._colleagues: tuple[str, ...] = (own,)
        self.everybody: tuple[str, ...] = (own,)
        """The leases of all living schedulers of any name, this one included."""

    def heard(self, known: lease.Lease) -> bool:
        """A lease was made or renewed; whether that changes who looks after which pod."""
        scheduler = known.metadata.annotations.get(SCHEDULER_ANNOTATION, "")
        valid = float(known.spec.lease_duration_seconds or _VALID_SECONDS)
        self._members[known.metadata.name] = _Member(scheduler, self._monotonic(), valid)
        return self._count()

    def gone(self, name: str) -> bool:
        """A lease was deleted; whether that changes who looks after which pod."""
        self._members.pop(name, None)
        return self._count()

    def silent(self) -> list[str]:
        """The leases that nobody renews any more; they are forgotten."""
        now = self._monotonic()
        names = [
            name for name, member in self._members.items() if name != self._own and member.seen + member.valid <= now
        ]
        for name in names:
            del self._members[name]
        self._count()
        return names

    def is_responsible(self, waiting: pod.Pod) -> bool:
        """Whether this scheduler looks after a pod of its name."""
        return len(self._colleagues) == 1 or _first(self._colleagues, self._subject(waiting)) == self._own

    def _subject(self, waiting: pod.Pod) -> str:
        """What decides: the pods of a gang go to one scheduler, and so do pods that share a claim.

        The former are placed together, and the latter would be in each other's way.
        """
        gang = gangs.key_of(waiting) if self._has_gangs else None
        if gang is not None:
            return f"{gang.source.value}/{gang}"
        for entry in waiting.spec.resource_claims:
            if entry.resource_claim_name:
                return f"{waiting.metadata.namespace}/{entry.resource_claim_name}"
        return str(waiting.metadata.uid)

    def is_home(self, node: str) -> bool:
        """Whether this scheduler is the first of all to choose a node."""
        return _first(self.everybody, node) == self._own

    def _count(self) -> bool:
        before = self._colleagues
        names = {name for name, member in self._members.items() if member.scheduler == self._scheduler}
        self._colleagues = tuple(sorted(names | {self._own}))
        self.everybody = tuple(sorted({*self._members, self._own}))
        return self._colleagues != before


def _first(names: Iterable[str], subject: str) -> str:
    """Who comes first for something: each name for about as many subjects, in an order without pattern."""
    return max(names, key=lambda name: hashlib.blake2b(f"{name}/{subject}".encode(), digest_size=8).digest())
