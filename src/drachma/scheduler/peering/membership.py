"""Membership: the schedulers that work at the same time, and their responsibility for pods.

Every scheduler keeps a lease of its own. A lease that was not renewed for its duration, on the clock of the reader,
belongs to a dead scheduler. Pods are divided among the living schedulers of one ``schedulerName`` by a hash, so that a
scheduler that comes or goes moves no pods between the others. Schedulers may see different members for a moment. That
costs a failed attempt and nothing else, because a pod must be announced before anything is written for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from drachma.api import lease, pod
from drachma.scheduler.snapshot import gangs

SCHEDULER_ANNOTATION: Final = "drachma/scheduler-name"
"""``schedulerName`` of the holder of a lease."""

_VALID_SECONDS: Final = 15.0


class _Member(msgspec.Struct, frozen=True):
    scheduler: str
    renewed_at: float
    valid: float


class Membership:
    """Members, as one scheduler sees them."""

    def __init__(self, own: str, *, scheduler: str, monotonic: Callable[[], float], has_gangs: bool = False) -> None:
        """``own`` is the name of this scheduler's lease, ``scheduler`` its ``schedulerName``."""
        self._own: Final = own
        self._scheduler: Final = scheduler
        self._monotonic: Final = monotonic
        self._has_gangs: Final = has_gangs
        self._members: Final[dict[str, _Member]] = {}
        self._colleagues: tuple[str, ...] = (own,)
        self.living: tuple[str, ...] = (own,)
        """Leases of all living schedulers of any name, including this one."""

    def heard(self, peer_lease: lease.Lease) -> bool:
        """Note that a lease was created or renewed. Return True if that changes the responsibility for pods."""
        scheduler = peer_lease.metadata.annotations.get(SCHEDULER_ANNOTATION, "")
        valid = float(peer_lease.spec.lease_duration_seconds or _VALID_SECONDS)
        self._members[peer_lease.metadata.name] = _Member(scheduler, self._monotonic(), valid)
        return self._count()

    def gone(self, name: str) -> bool:
        """Note that a lease was deleted. Return True if that changes the responsibility for pods."""
        self._members.pop(name, None)
        return self._count()

    def silent(self) -> list[str]:
        """Return and forget the leases that are no longer renewed."""
        now = self._monotonic()
        names = [
            name
            for name, member in self._members.items()
            if name != self._own and member.renewed_at + member.valid <= now
        ]
        for name in names:
            del self._members[name]
        self._count()
        return names

    def is_responsible(self, waiting_pod: pod.Pod) -> bool:
        """Return True if this scheduler is responsible for a pod of its name."""
        return len(self._colleagues) == 1 or _first(self._colleagues, self._subject(waiting_pod)) == self._own

    def _subject(self, waiting_pod: pod.Pod) -> str:
        """Return the key that decides: the same for pods of a gang, and for pods that share a claim.

        The pods of a gang are placed together, and pods that share a claim would be in each other's way.
        """
        gang = gangs.key_of(waiting_pod) if self._has_gangs else None
        if gang is not None:
            return f"{gang.source.value}/{gang}"
        for entry in waiting_pod.spec.resource_claims:
            if entry.resource_claim_name:
                return f"{waiting_pod.metadata.namespace}/{entry.resource_claim_name}"
        return str(waiting_pod.metadata.uid)

    def is_home(self, node: str) -> bool:
        """Return True if this scheduler is the first to choose a node."""
        return _first(self.living, node) == self._own

    def _count(self) -> bool:
        before = self._colleagues
        names = {name for name, member in self._members.items() if member.scheduler == self._scheduler}
        self._colleagues = tuple(sorted(names | {self._own}))
        self.living = tuple(sorted({*self._members, self._own}))
        return self._colleagues != before


def _first(names: Iterable[str], subject: str) -> str:
    """Return the name that comes first for a subject. Each name is first for about as many subjects."""
    return max(names, key=lambda name: hashlib.blake2b(f"{name}/{subject}".encode(), digest_size=8).digest())
