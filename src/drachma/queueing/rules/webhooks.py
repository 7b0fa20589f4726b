"""Kueue's webhooks as a table: about which kinds they are asked, what they complete, and what they refuse.

Whoever asks them has an object before it is written: an API server with queueing in its process calls them as
functions, any other one over HTTPS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from drachma.queueing.configuration import frameworks
from drachma.queueing.configuration.frameworks import GroupVersionKind
from drachma.queueing.configuration.gates import Gates
from drachma.queueing.jobs.jobsettings import JobSettings
from drachma.queueing.rules import jobrules, jobwebhooks, queuewebhooks
from drachma.queueing.rules.jobwebhooks import Place
from drachma.validation.fielderror import FieldError

Document: TypeAlias = Mapping[str, Any]


class Circumstances(NamedTuple):
    """What an answer depends on beside the object; its place is looked up only where somebody needs it."""

    gates: Gates
    jobs: JobSettings
    place: Callable[[], Place]
    subresource: str = ""


Completed: TypeAlias = Callable[[Document, Circumstances], dict[str, Any] | None]
Problems: TypeAlias = Callable[[Document, Document | None, Circumstances], tuple[FieldError, ...]]


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """All about one kind."""

    kind: GroupVersionKind
    problems: Problems
    completed: Completed | None = None
    framework: str = ""
    """Where a configuration has to name the kind for it to be queued."""
    with_status: bool = False
    """Whether writes of the status are asked about as well."""

    @property
    def singular(self) -> str:
        return self.kind.kind.lower()

    @property
    def plural(self) -> str:
        return f"{self.singular}s"

    @property
    def place(self) -> str:
        """The end of the paths at which Kueue serves it."""
        return f"{self.kind.group.replace('.', '-')}-{self.kind.version}-{self.singular}"

    def complete(self, document: Document, around: Circumstances) -> dict[str, Any] | None:
        """A new object as it should be; None if it is so already."""
        if self.completed is None or not self._is_queued(around):
            return None
        return self.completed(document, around)

    def check(self, document: Document, old: Document | None, around: Circumstances) -> tuple[FieldError, ...]:
        """All that is wrong with an object that is made, or changed from ``old``."""
        if not self._is_queued(around) or (self.framework and around.subresource):
            return ()
        return self.problems(document, old, around)

    def _is_queued(self, around: Circumstances) -> bool:
        return not self.framework or self.framework in around.jobs.management.frameworks


def _completed_queue(document: Document, around: Circumstances) -> dict[str, Any] | None:
    return queuewebhooks.completed(document, around.gates)


def _queue_problems(document: Document, old: Document | None, around: Circumstances) -> tuple[FieldError, ...]:
    return queuewebhooks.problems(document, old, around.gates)


def _completed_batch_job(document: Document, around: Circumstances) -> dict[str, Any] | None:
    return jobwebhooks.completed_batch_job(document, around.place(), around.jobs)


def _completed_job(document: Document, around: Circumstances) -> dict[str, Any] | None:
    return jobwebhooks.completed_job(document, around.place(), around.jobs)


def _job_problems(document: Document, old: Document | None, around: Circumstances) -> tuple[FieldError, ...]:
    return jobrules.job_problems(document, old, around.jobs.gates, has_default_queue=around.place().has_default_queue)


def _job_set_problems(document: Document, old: Document | None, around: Circumstances) -> tuple[FieldError, ...]:
    return jobrules.job_set_problems(
        document, old, around.jobs.gates, has_default_queue=around.place().has_default_queue
    )


def _completed_pod(document: Document, around: Circumstances) -> dict[str, Any] | None:
    return jobwebhooks.completed_pod(document, around.place(), around.jobs)


def _pod_problems(document: Document, old: Document | None, around: Circumstances) -> tuple[FieldError, ...]:
    return jobrules.pod_problems(document, old, around.jobs.gates, has_default_queue=around.place().has_default_queue)


def _of_kueue(kind: str, completed: Completed | None = _completed_queue, *, with_status: bool = False) -> Webhook:
    return Webhook(
        kind=GroupVersionKind("kueue.x-k8s.io", "v1beta2", kind),
        problems=_queue_problems,
        completed=completed,
        with_status=with_status,
    )


def _of_jobs(framework: str, completed: Completed, problems: Problems) -> Webhook:
    return Webhook(kind=frameworks.KINDS[framework], problems=problems, completed=completed, framework=framework)


ALL: Final = (
    _of_kueue("ClusterQueue"),
    _of_kueue("Cohort", None),
    _of_kueue("ResourceFlavor"),
    _of_kueue("Workload", with_status=True),
    _of_jobs(frameworks.BATCH_JOB, _completed_batch_job, _job_problems),
    _of_jobs(frameworks.JOB_SET, _completed_job, _job_set_problems),
    _of_jobs(frameworks.POD, _completed_pod, _pod_problems),
)
"""In the order in which a write is shown to them."""
