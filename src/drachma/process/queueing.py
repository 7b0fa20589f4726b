"""Queueing beside an API server in the same process: its kinds, its webhooks as functions, and the component."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from drachma.queueing import frameworks, jobwebhooks, queuewebhooks
from drachma.queueing.component import ActiveConfiguration
from drachma.server.admission import hooks
from drachma.server.kinds.kueue import queuekinds
from drachma.server.wire import app
from drachma.store import record
from drachma.validation.fielderror import FieldError
from drachma.values import fieldtext

_LOCAL_QUEUES: Final = f"{queuekinds.GROUP}/localqueues"
_PRIORITIES: Final = f"{queuekinds.GROUP}/workloadpriorityclasses"
_PLURALS: Final = {
    ("apps/v1", "ReplicaSet"): "apps/replicasets",
    **{
        (each.api_version, each.kind): f"{each.group}/{each.kind.lower()}s".removeprefix("/")
        for each in frameworks.KINDS.values()
    },
}

_Problems = Callable[[hooks.Review], tuple[FieldError, ...]]


def additions(configured: ActiveConfiguration) -> app.Additions:
    """What an application serves and asks for queueing's sake."""
    return app.Additions(kinds=queuekinds.kinds(), functions=(*_queue_hooks(configured), *_job_hooks(configured)))


def _queue_hooks(configured: ActiveConfiguration) -> list[hooks.Hook]:
    def completed(review: hooks.Review) -> dict[str, Any] | None:
        return queuewebhooks.completed(review.document, configured.gates)

    def problems(review: hooks.Review) -> tuple[FieldError, ...]:
        return queuewebhooks.problems(review.document, review.old, configured.gates)

    def hook(singular: str, *, mutates: bool = True) -> hooks.Hook:
        return hooks.Hook(
            f"v{singular}.kb.io",
            frozenset({f"{queuekinds.GROUP}/{singular}s"}),
            mutate=completed if mutates else None,
            validate=_verdict(problems),
        )

    return [hook("clusterqueue"), hook("cohort", mutates=False), hook("resourceflavor"), hook("workload")]


def _job_hooks(configured: ActiveConfiguration) -> list[hooks.Hook]:
    def is_queued(framework: str) -> bool:
        return framework in configured.jobs.management.frameworks

    def completed_job(review: hooks.Review) -> dict[str, Any] | None:
        if not is_queued(frameworks.BATCH_JOB):
            return None
        return jobwebhooks.completed_job(review.document, _place(review), configured.jobs)

    def job_problems(review: hooks.Review) -> tuple[FieldError, ...]:
        if not is_queued(frameworks.BATCH_JOB) or review.subresource:
            return ()
        return jobwebhooks.job_problems(review.document, review.old, _place(review))

    def completed_pod(review: hooks.Review) -> dict[str, Any] | None:
        if not is_queued(frameworks.POD):
            return None
        return jobwebhooks.completed_pod(review.document, _place(review), configured.jobs)

    def pod_problems(review: hooks.Review) -> tuple[FieldError, ...]:
        if not is_queued(frameworks.POD) or review.subresource:
            return ()
        return jobwebhooks.pod_problems(review.document, review.old, _place(review), configured.jobs)

    return [
        hooks.Hook("vjob.kb.io", frozenset({"batch/jobs"}), mutate=completed_job, validate=_verdict(job_problems)),
        hooks.Hook("vpod.kb.io", frozenset({"pods"}), mutate=completed_pod, validate=_verdict(pod_problems)),
    ]


def _verdict(problems: _Problems) -> Callable[[hooks.Review], hooks.Verdict]:
    def verdict(review: hooks.Review) -> hooks.Verdict:
        found = problems(review)
        return hooks.Verdict(fieldtext.together(map(str, found))) if found else hooks.Verdict()

    return verdict


def _place(review: hooks.Review) -> jobwebhooks.Place:
    store, namespace = review.store, review.namespace
    stored = store.get(record.Key("namespaces", "", namespace))
    labels = stored.value["metadata"].get("labels") or {} if stored is not None else {}

    def owner(api_version: str, kind: str, name: str) -> Mapping[str, Any] | None:
        plural = _PLURALS.get((api_version, kind))
        found = store.get(record.Key(plural, namespace, name)) if plural is not None else None
        return None if found is None else found.value

    return jobwebhooks.Place(
        labels=labels,
        has_default_queue=store.get(record.Key(_LOCAL_QUEUES, namespace, jobwebhooks.DEFAULT_QUEUE)) is not None,
        has_default_priority=store.get(record.Key(_PRIORITIES, "", "default")) is not None,
        owner=owner,
    )
