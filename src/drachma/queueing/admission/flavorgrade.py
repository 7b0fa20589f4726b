"""Grades of flavors: how well a flavor serves a workload, and which of two flavors the policy of a queue prefers."""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

from drachma.queueing.admission.flavorassignment import Mode, Possibility
from drachma.queueing.kinds import clusterqueue


class Rank(enum.IntEnum):
    """Availability of a flavor's resource; better ranks are greater."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    PREEMPT = 2
    RECLAIM = 3
    FIT = 4

    @property
    def mode(self) -> Mode:
        return _MODES[self]

    @property
    def possibility(self) -> Possibility | None:
        return None if self in (Rank.FIT, Rank.NO_FIT) else Possibility(self - 1)


_MODES: Final = (Mode.NO_FIT, Mode.PREEMPT, Mode.PREEMPT, Mode.PREEMPT, Mode.FIT)


class Grade(NamedTuple):
    """Availability of a flavor, and the height in the cohorts from which its quota would come."""

    rank: Rank
    borrow: int


WORST: Final = Grade(Rank.NO_FIT, 2**63 - 1)
BEST: Final = Grade(Rank.FIT, 0)


def is_good_enough(grade: Grade, policy: clusterqueue.FlavorFungibility) -> bool:
    """Return True if no further flavor has to be tried."""
    if grade.rank <= Rank.NO_CANDIDATES:
        return False
    if grade.rank is not Rank.FIT and policy.when_can_preempt == clusterqueue.TRY_NEXT_FLAVOR:
        return False
    return not (grade.borrow and policy.when_can_borrow == clusterqueue.TRY_NEXT_FLAVOR)


def is_preferred(one: Grade, other: Grade, policy: clusterqueue.FlavorFungibility) -> bool:
    """Return True if the first is better. A flavor without preemption candidates is worse than all available ones."""
    if one.rank is Rank.NO_FIT:
        return False
    if other.rank is Rank.NO_FIT:
        return True
    if (one.rank is Rank.NO_CANDIDATES) != (other.rank is Rank.NO_CANDIDATES):
        return other.rank is Rank.NO_CANDIDATES
    if policy.preference == clusterqueue.PREEMPTION_OVER_BORROWING:
        return (-one.borrow, one.rank) > (-other.borrow, other.rank)
    return (one.rank, -one.borrow) > (other.rank, -other.borrow)
