"""How jobs are queued, and what a look at one needs to know of the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

import msgspec

from drachma.queueing.configuration.gates import DEFAULT, Gates
from drachma.queueing.jobs import jobowners
from drachma.queueing.jobs.jobowners import Management
from drachma.queueing.jobs.jobworkload import Priorities, WorkloadRecord
from drachma.queueing.workloads import podsetinfo
from drachma.values import labels


class JobSettings(msgspec.Struct, frozen=True):
    """How jobs are queued."""

    management: Management = Management()
    namespaces: labels.Selector = labels.Selector()
    """In which namespaces."""
    waits_for_pods: bool = False
    """Whether it is noted when all pods are ready."""
    retention: timedelta | None = None
    """How long jobs are kept that were deactivated; None: for ever."""
    label_keys: Sequence[str] = ()
    annotation_keys: Sequence[str] = ()
    """What workloads take over from their jobs."""
    gates: Gates = DEFAULT


class Surroundings(msgspec.Struct, frozen=True):
    """What a job has around it."""

    namespace_labels: Mapping[str, str] | None
    """None: its namespace does not exist."""
    workloads: Sequence[WorkloadRecord] = ()
    """All of its namespace."""
    owners: jobowners.Owners = {}
    flavors: podsetinfo.Flavors = {}
    priorities: Priorities = Priorities()
