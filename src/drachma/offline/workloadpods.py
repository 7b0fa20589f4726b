"""Pods that workloads in manifests would have, as their controllers would create them. Pure.

Names are numbered instead of random, so that they are the same every time. Called for objects without a uid: a dump has
the pods of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import hooks, meta, pod, struct

_REPLICATED: Final = frozenset(
    {("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("v1", "ReplicationController")}
)
_PER_NODE: Final = ("apps/v1", "DaemonSet")
_JOB: Final = ("batch/v1", "Job")
_CRON_JOB: Final = ("batch/v1", "CronJob")
_WORKLOAD: Final = "Workload"
_QUEUEING: Final = "kueue.x-k8s.io/"
_POD: Final = ("v1", "Pod")

KINDS: Final = _REPLICATED | {_PER_NODE, _JOB, _CRON_JOB, _POD}
"""API version and kind of objects with pods."""


def pods(document: Mapping[str, Any], *, nodes: int) -> Iterator[pod.Pod]:
    """Yield the pods of a workload, or the pod itself. A daemon set has one on each of ``nodes``.

    Raises:
        errors.DecodeError: a template is malformed.
    """
    kind = (str(document.get("apiVersion")), str(document.get("kind")))
    spec = _part(document, "spec")
    if kind == _POD:
        yield _pod(document, document, name=_name(document))
        return
    if kind == _CRON_JOB:
        job = _part(spec, "jobTemplate")
        yield from _numbered(document, _part(_part(job, "spec"), "template"), _parallel(_part(job, "spec")))
        return
    count = nodes if kind == _PER_NODE else _parallel(spec) if kind == _JOB else _number(spec, "replicas", 1)
    yield from _numbered(document, _part(spec, "template"), count)


def is_queued(document: Mapping[str, Any]) -> bool:
    """Return True for a Workload of Kueue that waits for quota."""
    if document.get("kind") != _WORKLOAD or not str(document.get("apiVersion")).startswith(_QUEUEING):
        return False
    status = _part(document, "status")
    finished = [each for each in status.get("conditions") or () if each.get("type") == "Finished"]
    is_over = any(each.get("status") == "True" for each in finished)
    return not status.get("admission") and not is_over and _part(document, "spec").get("active") is not False


def workload_pods(document: Mapping[str, Any]) -> Iterator[pod.Pod]:
    """Yield the pods of a Workload after its admission."""
    for pod_set in _part(document, "spec").get("podSets") or ():
        template = _part(pod_set, "template")
        for number in range(_number(pod_set, "count", 1)):
            yield _pod(template, document, name=f"{_name(document)}-{pod_set.get('name')}-{number}")


def identity(document: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return kind, namespace and name of an object."""
    return str(document.get("kind")), _namespace(document), _name(document)


def owners(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield kind, namespace and name of the owners of an object."""
    metadata = _part(document, "metadata")
    for each in metadata.get("ownerReferences") or ():
        yield str(each.get("kind")), _namespace(document), str(each.get("name"))


def lacks_pods(document: Mapping[str, Any]) -> bool:
    """Return True if pods of a workload do not exist yet: it has no uid, or is suspended."""
    kind = (str(document.get("apiVersion")), str(document.get("kind")))
    if kind == _JOB and _part(document, "spec").get("suspend"):
        return True
    return kind in _REPLICATED | {_JOB} and not _part(document, "metadata").get("uid")


def _numbered(owner: Mapping[str, Any], template: Mapping[str, Any], count: int) -> Iterator[pod.Pod]:
    for number in range(count):
        yield _pod(template, owner, name=f"{_name(owner)}-{number}")


def _pod(template: Mapping[str, Any], owner: Mapping[str, Any], *, name: str) -> pod.Pod:
    try:
        spec = msgspec.convert(_part(template, "spec"), pod.PodSpec, dec_hook=hooks.decode)
    except msgspec.ValidationError as error:
        raise errors.DecodeError(f"{owner.get('kind')} {_name(owner)}: {error}") from None
    template_metadata = _part(template, "metadata")
    metadata = meta.ObjectMeta(
        name=name,
        namespace=_namespace(owner),
        labels=_part(template_metadata, "labels") or struct.ABSENT_MAP,
        annotations=_part(template_metadata, "annotations") or struct.ABSENT_MAP,
    )
    return pod.Pod(metadata=metadata, spec=spec)


def _namespace(document: Mapping[str, Any]) -> str:
    return str(_part(document, "metadata").get("namespace") or "default")


def _parallel(spec: Mapping[str, Any]) -> int:
    """Return the number of pods of a job that run at once."""
    parallelism = _number(spec, "parallelism", 1)
    return min(parallelism, _number(spec, "completions", parallelism))


def _number(part: Mapping[str, Any], field: str, default: int) -> int:
    value = part.get(field)
    return value if isinstance(value, int) else default


def _part(document: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    value = document.get(field)
    return value if isinstance(value, Mapping) else {}


def _name(document: Mapping[str, Any]) -> str:
    return str(_part(document, "metadata").get("name") or "")
