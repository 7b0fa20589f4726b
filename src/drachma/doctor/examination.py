"""The examination: every check in its order, the worst findings first."""

from __future__ import annotations

from drachma.doctor import claimchecks, control, pools, selection
from drachma.doctor.cluster import Cluster
from drachma.doctor.finding import Finding

_CHECKS = (pools.check, claimchecks.check, selection.check, control.check)


def examine(cluster: Cluster) -> list[Finding]:
    """Return all findings, the worst first. Selectors cost one evaluation per kind of device."""
    return sorted((each for check in _CHECKS for each in check(cluster)), key=lambda each: each.order)
