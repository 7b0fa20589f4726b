"""Decisions: what scheduling a pod can come to. Made by :mod:`drachma.scheduler.cycle`, carried out by the binder."""

from __future__ import annotations

from typing import NamedTuple

from drachma.scheduler.framework import cyclestate, diagnosis
from drachma.scheduler.snapshot import assignment, podinfo


class Placed(NamedTuple):
    """The pod goes to a node."""

    info: podinfo.PodInfo
    assignment: assignment.Assignment
    cycle: cyclestate.CycleState
    """What plugins left for those who carry it out."""
    feasible: int = 1
    """How many nodes would have done."""

    @property
    def node(self) -> str:
        """Where it goes."""
        return self.assignment.node


class Unfit(NamedTuple):
    """The pod fits nowhere at the moment."""

    info: podinfo.PodInfo
    diagnosis: diagnosis.Diagnosis
    cycle: cyclestate.CycleState
    """What plugins left for PostFilter."""


class Aborted(NamedTuple):
    """Something went wrong; the pod is tried again after a pause."""

    info: podinfo.PodInfo
    message: str


Decision = Placed | Unfit | Aborted
