"""The explanation of a workload: its position, its shortage, and remedies."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from datetime import datetime

import msgspec

from drachma.queueing import conditions
from drachma.queueing.admission import feasibility, pendingqueue
from drachma.queueing.admission.admitter import Admitter
from drachma.queueing.admission.entry import Status
from drachma.queueing.admission.pendingqueue import PendingQueue
from drachma.queueing.admission.snapshot import QueueState
from drachma.queueing.explanation import preemptionverdict, remedies, shortage
from drachma.queueing.explanation.preemptionverdict import Verdict
from drachma.queueing.explanation.question import Question
from drachma.queueing.explanation.remedies import Remedy
from drachma.queueing.explanation.shortage import Shortage, Unsuitable
from drachma.queueing.kinds import workload
from drachma.queueing.workloads import admissibility, workloadstate
from drachma.queueing.workloads.settings import Settings
from drachma.queueing.workloads.workloadinfo import WorkloadInfo


class Outcome(enum.StrEnum):
    """State of a workload, or the decision that it would get as the head of its queue."""

    FINISHED = "Finished"
    ADMITTED = "Admitted"
    QUOTA_RESERVED = "QuotaReserved"
    FITS = "Fits"
    PREEMPTS = "Preempts"
    DOES_NOT_FIT = "DoesNotFit"
    NOT_QUEUED = "NotQueued"
    """The workload is in no queue, or in one that admits nothing."""


class Neighbour(msgspec.Struct, frozen=True):
    """Another workload in the queue."""

    workload: str
    priority: int


class LocalQueueUsage(msgspec.Struct, frozen=True):
    """Past usage of a local queue as one number."""

    local_queue: str
    usage: float


class WorkloadExplanation(msgspec.Struct, frozen=True):
    """Explanation of one workload. Amounts are those of :mod:`drachma.queueing.amounts`."""

    workload: str
    outcome: Outcome
    settings: Settings
    """Settings for showing amounts."""
    message: str = ""
    local_queue: str = ""
    cluster_queue: str = ""
    path: str = ""
    strategy: str = ""
    position: int = 0
    """Position in the cluster queue, counted from one; zero if it is not in it."""
    waiting: int = 0
    """Number of pending workloads in the queue."""
    before: tuple[Neighbour, ...] = ()
    past_usage: tuple[LocalQueueUsage, ...] = ()
    """Past usage of its local queue and of others, the least first, if the queue is ordered by it."""
    shortages: tuple[Shortage, ...] = ()
    unsuitable: tuple[Unsuitable, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    remedies: tuple[Remedy, ...] = ()


def explain(
    admitter: Admitter, wl: workload.Workload, now: datetime, *, obstacle: str | None = None
) -> WorkloadExplanation:
    """Explain a workload. ``obstacle`` is the reason why it is in no queue, if known.

    Costs a cycle, and one for each change that is simulated.
    """
    key = workloadstate.key(wl)
    cluster_queue = admitter.queue_of(wl) or ""
    settled = _settled(wl)
    if settled is not None:
        outcome, message = settled
        place = wl.status.admission.cluster_queue if wl.status.admission is not None else cluster_queue
        return WorkloadExplanation(key, outcome, admitter.settings, message, wl.spec.queue_name, place)
    queue = admitter.queues.get(cluster_queue)
    info = queue.get(key) if queue is not None else None
    if queue is None or info is None or cluster_queue not in admitter.snapshot.queues:
        message = obstacle or _objection(admitter, wl, cluster_queue)
        return WorkloadExplanation(
            key, Outcome.NOT_QUEUED, admitter.settings, message, wl.spec.queue_name, cluster_queue
        )
    return _explain(Question(admitter, info, now), queue, info)


def _settled(wl: workload.Workload) -> tuple[Outcome, str] | None:
    for kind, outcome in (
        (conditions.FINISHED, Outcome.FINISHED),
        (conditions.ADMITTED, Outcome.ADMITTED),
        (conditions.QUOTA_RESERVED, Outcome.QUOTA_RESERVED),
    ):
        condition = conditions.find(wl.status.conditions, kind)
        if condition is not None and condition.status == "True":
            return outcome, condition.message
    return None


def _objection(admitter: Admitter, wl: workload.Workload, cluster_queue: str) -> str:
    if not wl.spec.queue_name:
        return "it names no local queue"
    if not cluster_queue:
        return (
            f"local queue {wl.metadata.namespace}/{wl.spec.queue_name}, or the cluster queue behind it, does not exist"
        )
    if cluster_queue in admitter.snapshot.tree.circular:
        return f"the cohorts of cluster queue {cluster_queue} go in a circle"
    if cluster_queue in admitter.snapshot.inactive:
        return f"cluster queue {cluster_queue} is inactive"
    return "it does not ask to be admitted"


def _selection(queue: QueueState, info: WorkloadInfo) -> str:
    """Return the reason why a queue does not take a workload's namespace."""
    if queue.spec.namespace_selector is None:
        return f"cluster queue {queue.name} has no namespaceSelector, which stands for no namespace at all"
    return f"namespace {info.workload.metadata.namespace} has not the labels that cluster queue {queue.name} selects"


def _unplaced(info: WorkloadInfo) -> str:
    """Return the component's message about nodes for a workload that has enough quota: nodes are not known here."""
    condition = conditions.find(info.workload.status.conditions, conditions.QUOTA_RESERVED)
    is_said = condition is not None and condition.reason == feasibility.PLACEMENT_FAILED
    return f"enough quota, but {condition.message}" if condition is not None and is_said else ""


def _past_usage(question: Question, workloads: Iterable[WorkloadInfo]) -> tuple[LocalQueueUsage, ...]:
    usages = {
        f"{each.workload.metadata.namespace}/{each.workload.spec.queue_name}": usage
        for each in workloads
        if (usage := question.snapshot.past_usage(each)) is not None
    }
    return tuple(LocalQueueUsage(name, usage) for name, usage in sorted(usages.items(), key=lambda item: item[::-1]))


def _explain(question: Question, pending_queue: PendingQueue, info: WorkloadInfo) -> WorkloadExplanation:
    entry = question.entry()
    queue = question.queue
    order = list(pending_queue.waiting())
    position = next(number for number, each in enumerate(order) if each.key == info.key)
    shortages: tuple[Shortage, ...] = ()
    unsuitable: tuple[Unsuitable, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    changes: tuple[Remedy, ...] = ()
    if entry.status is Status.ADMITTED:
        unplaced = _unplaced(info)
        outcome = Outcome.DOES_NOT_FIT if unplaced else Outcome.FITS
        message = unplaced
        if not unplaced and not pendingqueue.is_backoff_over(info.workload, question.now):
            message = "its backoff is not over"
    else:
        outcome = Outcome.PREEMPTS if entry.victims else Outcome.DOES_NOT_FIT
        message = entry.message
        if message == admissibility.NAMESPACE_MISMATCH:
            message = f"{message}: {_selection(queue, info)}"
        shortages, unsuitable = shortage.find(question, entry)
        verdicts = preemptionverdict.judge(question, entry, shortages)
        if not entry.victims:
            changes = remedies.find(question)
    return WorkloadExplanation(
        info.key,
        outcome,
        question.settings,
        message,
        info.workload.spec.queue_name,
        queue.name,
        queue.path,
        queue.spec.queueing_strategy,
        position + 1,
        len(order),
        tuple(Neighbour(each.key, each.priority) for each in order[:position]),
        _past_usage(question, order[: position + 1]),
        shortages,
        unsuitable,
        verdicts,
        changes,
    )
