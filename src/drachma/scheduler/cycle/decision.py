"""Decisions about a pod. Made by :mod:`drachma.scheduler.cycle`, carried out by the binder."""

from __future__ import annotations

from typing import NamedTuple

from drachma.scheduler.framework import cyclestate, diagnosis
from drachma.scheduler.snapshot import assignment, podinfo


class Placed(NamedTuple):
    """Decision that a pod gets a node."""

    info: podinfo.PodInfo
    assignment: assignment.Assignment
    cycle: cyclestate.CycleState
    """State that plugins keep for PreBind."""
    feasible: int = 1
    """Number of feasible nodes."""

    @property
    def node(self) -> str:
        """Name of the node."""
        return self.assignment.node


class Unfit(NamedTuple):
    """Decision that a pod fits on no node now."""

    info: podinfo.PodInfo
    diagnosis: diagnosis.Diagnosis
    cycle: cyclestate.CycleState
    """State that plugins keep for PostFilter."""


class Aborted(NamedTuple):
    """Decision that failed with an error. The pod is tried again after a pause."""

    info: podinfo.PodInfo
    message: str


Decision = Placed | Unfit | Aborted
