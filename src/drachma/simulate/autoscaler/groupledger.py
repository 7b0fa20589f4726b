"""Ledger of an autoscaler: requested nodes, and paused groups.

A node that does not arrive in time counts as a failure of its group, like an error of the provider. After a failure a
group is paused, longer each time. A node that arrives ends that.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec


class Pauses(msgspec.Struct, frozen=True, kw_only=True):
    """Time limits and pauses, in seconds."""

    arrival: float = 900.0
    """Time limit for a node to arrive."""
    first: float = 300.0
    """Pause of a group after a failure; doubled after each further one."""
    longest: float = 1800.0


class Upcoming(NamedTuple):
    """Requested node."""

    name: str
    group: str
    deadline: float


class GroupLedger:
    """Requested nodes and failures, by group."""

    def __init__(self, pauses: Pauses) -> None:
        self._pauses: Final = pauses
        self._upcoming: Final[dict[str, Upcoming]] = {}
        self._failures: Final[dict[str, int]] = {}
        self._until: Final[dict[str, float]] = {}

    @property
    def upcoming(self) -> list[Upcoming]:
        """All requested nodes that have not arrived."""
        return list(self._upcoming.values())

    def ask(self, name: str, *, group: str, now: float) -> None:
        """Note that a node was requested."""
        self._upcoming[name] = Upcoming(name, group, now + self._pauses.arrival)

    def rename(self, name: str, new_name: str) -> None:
        """Note that a requested node exists under another name. Its deadline stays."""
        self._upcoming[new_name] = self._upcoming.pop(name)._replace(name=new_name)

    def arrive(self, name: str) -> None:
        """Note that a node has arrived."""
        came = self._upcoming.pop(name, None)
        if came is not None:
            self._failures.pop(came.group, None)
            self._until.pop(came.group, None)

    def expire(self, now: float) -> list[Upcoming]:
        """Return the nodes that are overdue. They are not expected any more, and their groups are paused."""
        late = [each for each in self._upcoming.values() if each.deadline <= now]
        for each in late:
            del self._upcoming[each.name]
        for group in {each.group for each in late}:
            self.fail(group, now=now)
        return late

    def fail(self, group: str, *, now: float) -> float:
        """Note a failure, and return the pause of the group in seconds."""
        count = self._failures.get(group, 0)
        self._failures[group] = count + 1
        seconds = float(min(self._pauses.first * 2 ** min(count, 64), self._pauses.longest))
        self._until[group] = now + seconds
        return seconds

    def is_left_alone(self, group: str, *, now: float) -> bool:
        """Return True if a group is paused."""
        return self._until.get(group, 0.0) > now
