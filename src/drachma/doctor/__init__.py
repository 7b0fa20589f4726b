"""Doctor: finds mistakes in how a cluster uses Dynamic Resource Allocation, and the safe repair for each.

Checks are pure functions over the objects of a cluster. Reading a cluster and carrying out repairs are separate.
"""

from drachma.doctor import claimchecks, control, pools, selection
from drachma.doctor.cluster import Cluster
from drachma.doctor.finding import Finding, Repair, Severity

__all__ = ["Cluster", "Finding", "Repair", "Severity", "examine"]

_CHECKS = (pools.check, claimchecks.check, selection.check, control.check)


def examine(cluster: Cluster) -> list[Finding]:
    """Return all findings, the worst first. Selectors cost one evaluation per kind of device."""
    return sorted((each for check in _CHECKS for each in check(cluster)), key=lambda each: each.order)
