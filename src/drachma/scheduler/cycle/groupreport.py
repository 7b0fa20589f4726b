"""Reports about PodGroups that do not fit, in upstream's words: messages of the group, of its children and of its pods.

Upstream tries the pods of a group one after the other and stops as soon as too few are left. A pod that did not fit is
told why, a pod that fitted is told about the group, and a pod that was not tried only gets the count. The condition of
the group also has the outcome of preemption.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from drachma.scheduler.cycle.decision import Unfit
from drachma.scheduler.snapshot import gangs

NO_PLACEMENTS: Final = "no feasible placements found"

_UNSCHEDULABLE: Final = "pod group is unschedulable"


class GroupReport(NamedTuple):
    """Outcome of trying a PodGroup or a CompositePodGroup that does not fit."""

    key: gangs.GangKey
    message: str
    """Reason of the group, without preemption."""
    unfit: tuple[Unfit, ...] = ()
    """Pods that fit on no node."""
    fitted: frozenset[str] = frozenset()
    """Uids of pods that would have got a node."""
    members: frozenset[str] = frozenset()
    """Uids of all waiting pods of the group."""
    children: tuple[GroupReport, ...] = ()
    """Reports of children that do not fit, or were not tried."""
    placed_children: tuple[gangs.Gang, ...] = ()
    """Children that would have got their nodes."""
    conflict: str = ""
    """Constraints on the devices of all pods without which the group fits. They are part of the message too."""

    def over(self, count: int) -> GroupReport:
        """Return the report of the first of several placements, of which none is available."""
        text = f"{_UNSCHEDULABLE}, 0/{count} placements are available, first placement status: {self.message}"
        return self._replace(message=text)

    @property
    def all_unfit(self) -> tuple[Unfit, ...]:
        """Pods of the group and of its children that fit on no node."""
        return (*self.unfit, *(each for child in self.children for each in child.all_unfit))


class Texts(NamedTuple):
    """Messages for conditions."""

    groups: Mapping[gangs.GangKey, str]
    pods: Mapping[str, str]
    """Messages of pods, by uid."""


def count_message(size: int, scheduled: int, remaining: int) -> str:
    """Return the reason of a group that has too few pods, or of a composite that has too few groups."""
    return f"minCount ({size}) cannot be satisfied: {scheduled} scheduled, {remaining} remaining"


def texts(report: GroupReport, preemption: str) -> Texts:
    """Return the messages for a unit, with the outcome of preemption."""
    suffix = f", {preemption}" if preemption else ""
    if not report.children and not report.placed_children:
        return _leaf_texts(report, suffix)
    groups: dict[gangs.GangKey, str] = {}
    pods: dict[str, str] = {}
    # As upstream, each child with the status of the whole repeats the outcome of preemption for all of them.
    message = report.message + suffix * (1 + len(report.placed_children))
    for child in report.children:
        below = texts(child, preemption)
        groups |= below.groups
        pods |= below.pods
    for gang in report.placed_children:
        for leaf in gang.leaves:
            groups[leaf.key] = message
            pods |= dict.fromkeys(leaf.members, report.message)
    return Texts(groups, pods)


def _leaf_texts(report: GroupReport, suffix: str) -> Texts:
    full = report.message + suffix
    pods = dict.fromkeys(report.members, report.message)
    pods |= dict.fromkeys(report.fitted, f"{_UNSCHEDULABLE}, {full}")
    pods |= {each.info.uid: each.diagnosis.message() for each in report.unfit}
    return Texts({report.key: full}, pods)
