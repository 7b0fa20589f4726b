"""The pods that workloads in manifests would have: what a controller makes of them, in thought. Pure.

Names are numbered where a controller draws them, so that they are the same every time. Called for objects that no
server has seen: those of a dump have their pods beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import hooks, meta, pod

_REPLICATED: Final = frozenset(
    {("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"), ("v1", "ReplicationController")}
)
_PER_NODE: Final = ("apps/v1", "DaemonSet")
_JOB: Final = ("batch/v1", "Job")
_CRON_JOB: Final = ("batch/v1", "CronJob")
_POD: Final = ("v1", "Pod")

KINDS: Final = _REPLICATED | {_PER_NODE, _JOB, _CRON_JOB, _POD}
"""What pods can be made of, by apiVersion and kind."""


def pods(document: Mapping[str, Any], *, nodes: int) -> Iterator[pod.Pod]:
    """The pods of a workload, or the pod itself; a daemon set has one on each of so many nodes.

    Raises:
        errors.DecodeError: a template makes no sense.
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


def _numbered(owner: Mapping[str, Any], template: Mapping[str, Any], count: int) -> Iterator[pod.Pod]:
    for number in range(count):
        yield _pod(template, owner, name=f"{_name(owner)}-{number}")


def _pod(template: Mapping[str, Any], owner: Mapping[str, Any], *, name: str) -> pod.Pod:
    try:
        spec = msgspec.convert(_part(template, "spec"), pod.PodSpec, dec_hook=hooks.decode)
    except msgspec.ValidationError as error:
        raise errors.DecodeError(f"{owner.get('kind')} {_name(owner)}: {error}") from None
    namespace = str(_part(owner, "metadata").get("namespace") or "default")
    return pod.Pod(metadata=meta.ObjectMeta(name=name, namespace=namespace), spec=spec)


def _parallel(spec: Mapping[str, Any]) -> int:
    """How many pods of a job run at once."""
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
