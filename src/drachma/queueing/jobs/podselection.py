"""Which pods of a group fill the places of its workload, and which are too many or replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from drachma.queueing.jobs import podgroup, rolehash
from drachma.queueing.jobs.jobworkload import WorkloadRecord
from drachma.queueing.jobs.podgroup import PodGroup

Document = Mapping[str, Any]


class Selection(msgspec.Struct, frozen=True):
    """Which pods of a group fill the places of its workload, role by role, and which are too many."""

    kept: list[Document]
    excess: list[Document]
    replaced: list[Document]
    """Those that ended, in whose place there is another."""
    absent: int

    @classmethod
    def of(cls, job: PodGroup, record: WorkloadRecord, now: datetime) -> Selection:
        """The pods of a group for the places of its workload."""
        kept: list[Document] = []
        excess: list[Document] = []
        replaced: list[Document] = []
        absent = 0
        for pod_set in record.view.spec.pod_sets:
            pods = [pod for pod in job.members if rolehash.of_pod(pod) == pod_set.name]
            active = [pod for pod in pods if podgroup.can_count(pod)]
            inactive = [pod for pod in pods if not podgroup.can_count(pod)]
            if job.is_fast:
                absent += 1 if pod_set.count > 0 and not active else 0
            else:
                absent += max(0, pod_set.count - len(active))
            if len(active) > pod_set.count:
                active.sort(key=preference)
                excess += active[pod_set.count :]
            kept += active[: pod_set.count]
            over = min(len(inactive), len(inactive) + len(active) - pod_set.count)
            if over > 0:
                inactive.sort(key=_keep_latest(now))
                replaced += inactive[len(inactive) - over :]
                inactive = inactive[: len(inactive) - over]
            kept += inactive
        return cls(kept, excess, replaced, absent)


def preference(pod: Document) -> tuple[bool, bool, datetime]:
    """Smaller for pods that are kept rather than others: counted already, not held back, older."""
    return not podgroup.has_finalizer(pod), podgroup.is_gated(pod), podgroup.created(pod)


def _keep_latest(now: datetime) -> Callable[[Document], tuple[bool, float, datetime]]:
    """Smaller for pods that ended later."""

    def rank(pod: Document) -> tuple[bool, float, datetime]:
        seconds = podgroup.last_active(pod, now).timestamp()
        return not podgroup.has_finalizer(pod), -seconds, podgroup.created(pod)

    return rank
