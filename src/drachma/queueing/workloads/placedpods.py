"""Pods of workloads in the domains of topologies."""

from __future__ import annotations

from typing import NamedTuple

from drachma.queueing import amounts


class DomainCount(NamedTuple):
    """Number of pods in a domain, which its level values identify."""

    values: tuple[str, ...]
    """Values of the topology's levels; the hostname alone if that is the lowest level."""
    pods: int


class PlacedPods(NamedTuple):
    """Pods of a set in the domains of a flavor's topology."""

    flavor: str
    pod: amounts.Requests
    """Requests of one pod's spec."""
    domains: tuple[DomainCount, ...]
