"""What an autoscaler knows about its groups: nodes that are on their way, and groups that are better left alone.

A node that does not come in time counts as a failure of its group, as a provider's error does. After a failure a group
is left alone, longer each time; a node that comes ends that.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec


class Pauses(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait, in seconds."""

    arrival: float = 900.0
    """For a node to come."""
    first: float = 300.0
    """With a group after a failure; twice as long after the next."""
    longest: float = 1800.0


class Upcoming(NamedTuple):
    """A node that was asked for."""

    name: str
    group: str
    deadline: float


class GroupLedger:
    """Nodes on their way, and failures, by group."""

    def __init__(self, pauses: Pauses) -> None:
        self._pauses: Final = pauses
        self._upcoming: Final[dict[str, Upcoming]] = {}
        self._failures: Final[dict[str, int]] = {}
        self._until: Final[dict[str, float]] = {}

    @property
    def upcoming(self) -> list[Upcoming]:
        """All nodes that were asked for and are not there."""
        return list(self._upcoming.values())

    def ask(self, name: str, *, group: str, now: float) -> None:
        """Note that a node was asked for."""
        self._upcoming[name] = Upcoming(name, group, now + self._pauses.arrival)

    def arrive(self, name: str) -> None:
        """Note that a node has come."""
        came = self._upcoming.pop(name, None)
        if came is not None:
            self._failures.pop(came.group, None)
            self._until.pop(came.group, None)

    def expire(self, now: float) -> list[Upcoming]:
        """The nodes that should have come by now: they are not expected any more, and their groups are left alone."""
        late = [each for each in self._upcoming.values() if each.deadline <= now]
        for each in late:
            del self._upcoming[each.name]
        for group in {each.group for each in late}:
            self.fail(group, now=now)
        return late

    def fail(self, group: str, *, now: float) -> float:
        """Note a failure; for how many seconds the group is left alone now."""
        count = self._failures.get(group, 0)
        self._failures[group] = count + 1
        seconds = float(min(self._pauses.first * 2 ** min(count, 64), self._pauses.longest))
        self._until[group] = now + seconds
        return seconds

    def is_left_alone(self, group: str, *, now: float) -> bool:
        """Whether a group is not to be asked for nodes at the moment."""
        return self._until.get(group, 0.0) > now
