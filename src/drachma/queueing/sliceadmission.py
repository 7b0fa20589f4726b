"""The slice that a workload replaces: a larger one of the same elastic job takes its place when it is admitted.

Until then the first keeps what it has; the larger one needs quota only for what it wants beyond that, of the same
flavors. When it is admitted the first is finished. Both count until whoever runs admission has heard of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from drachma.queueing import preemption
from drachma.queueing.gates import Gate, Gates
from drachma.queueing.kinds import workload
from drachma.queueing.preemption import Target
from drachma.queueing.snapshot import QueueState
from drachma.queueing.workloadinfo import WorkloadInfo
from drachma.queueing.workloadrules import REPLACES

REPLACED: Final = "WorkloadSliceReplaced"
"""Why a slice is finished whose place another one has taken."""


def of(info: WorkloadInfo, queue: QueueState, gates: Gates) -> WorkloadInfo | None:
    """The slice that a workload replaces, if it has quota in the same queue and is of the same namespace."""
    key = _key(info, gates)
    replaced = queue.workloads.get(key) if key is not None else None
    if replaced is None or replaced.workload.metadata.namespace != info.workload.metadata.namespace:
        return None
    return replaced


def parted(info: WorkloadInfo, targets: Sequence[Target], gates: Gates) -> tuple[WorkloadInfo | None, list[Target]]:
    """The slice that a workload replaces, and those who have to go for it beside that."""
    key = _key(info, gates)
    for index, target in enumerate(targets):
        if target.info.key == key:
            return target.info, [*targets[:index], *targets[index + 1 :]]
    return None, list(targets)


def message(after: workload.Workload) -> str:
    """What is told of a slice whose place a workload has taken."""
    uid, job_uid = after.metadata.uid, after.metadata.labels.get(preemption.JOB_UID_LABEL, "")
    return f"Replaced to accommodate a workload (UID: {uid}, JobUID: {job_uid}) due to workload slice aggregation"


def _key(info: WorkloadInfo, gates: Gates) -> str | None:
    return info.workload.metadata.annotations.get(REPLACES) if gates.on(Gate.ELASTIC_JOBS) else None
