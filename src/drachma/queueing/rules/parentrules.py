"""Rules of Kueue's webhooks for Deployments, StatefulSets and LeaderWorkerSets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from drachma import errors
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.integrations import pods
from drachma.queueing.integrations.parents import MOST_REPLICAS, LeaderWorkerSet, PodParent, StatefulSet
from drachma.queueing.jobs.settings import QUEUE_LABEL
from drachma.queueing.jobs.templatejob import get_path
from drachma.queueing.kinds import workload
from drachma.queueing.rules import jobrules, topologyrules, workloadrules
from drachma.queueing.workloads import workloadstate
from drachma.validation import fielderror
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import METADATA, SPEC, Path

Document: TypeAlias = Mapping[str, Any]

_REPLICAS: Final = SPEC.child("replicas")
_GROUP_TEMPLATE: Final = SPEC.child("leaderWorkerTemplate")
_IMMUTABLE: Final = "field is immutable"


def problems(
    parent: PodParent,
    before: PodParent | None,
    gates: Gates,
    *,
    is_managed: bool,
    find_workload: Callable[[str], workload.Workload | None],
) -> tuple[FieldError, ...]:
    """Return the problems of a parent that is created, or changed from ``before``."""
    if parent.is_of_another_parent:
        return ()
    problems = [*_common(parent, gates)]
    if before is not None:
        problems += _changes(parent, before, gates)
        if is_managed and isinstance(parent, StatefulSet) and isinstance(before, StatefulSet):
            problems += _stateful_set_changes(parent, before, gates, find_workload)
        if is_managed and isinstance(parent, LeaderWorkerSet) and isinstance(before, LeaderWorkerSet):
            problems += _leader_worker_set_changes(parent, before, gates)
    return tuple(problems)


def _common(parent: PodParent, gates: Gates) -> Errors:
    yield from jobrules.queue_name_problems(parent.document)
    yield from jobrules.elastic_problems(parent.document, parent.framework, gates)
    if isinstance(parent, LeaderWorkerSet):
        yield from _replica_count(parent)
    if gates.on(Gate.ADMISSION_GATED_BY):
        yield from workloadrules.check_gates(parent.annotations)
    if isinstance(parent, LeaderWorkerSet) and gates.on(Gate.TAS):
        yield from _topology(parent, gates)


def _changes(parent: PodParent, before: PodParent, gates: Gates) -> Errors:
    queue = parent.labels.get(QUEUE_LABEL, "")
    if (not before.is_suspended or not queue) and queue != before.labels.get(QUEUE_LABEL, ""):
        yield fielderror.invalid(METADATA.child("labels").key(QUEUE_LABEL), queue, _IMMUTABLE)
    yield from jobrules.priority_problems(parent.document, before.document, is_suspended=before.is_suspended)
    if gates.on(Gate.ADMISSION_GATED_BY):
        yield from workloadrules.check_gates(parent.annotations, before.annotations)


# StatefulSets


def _stateful_set_changes(
    new: StatefulSet, old: StatefulSet, gates: Gates, find_workload: Callable[[str], workload.Workload | None]
) -> Errors:
    path = SPEC.child("template", "spec")
    yield from _shape(_pod_spec(new, ("template",)), _pod_spec(old, ("template",)), path)
    if new.replicas and old.replicas and new.replicas != old.replicas:
        yield fielderror.invalid(_REPLICAS, new.replicas, _IMMUTABLE)
    if new.replicas and not old.replicas:
        if new.status.get("replicas"):
            yield fielderror.forbidden(_REPLICAS, "scaling down is still in progress")
            return
        wl = find_workload(old.workload_name(gates))
        if wl is not None and not workloadstate.is_on_hold(wl):
            yield fielderror.forbidden(_REPLICAS, "workload from previous scale-down is still being deleted")


# LeaderWorkerSets


def _replica_count(parent: LeaderWorkerSet) -> Errors:
    replicas = parent.replicas
    bound = "must be >= 0" if replicas < 0 else f"must be <= {MOST_REPLICAS}" if replicas > MOST_REPLICAS else ""
    if bound:
        detail = f"invalid LeaderWorkerSet replicas: {bound}, got {replicas}"
        yield fielderror.invalid(_REPLICAS, replicas, detail)


def _topology(parent: LeaderWorkerSet, gates: Gates) -> Errors:
    paths = [_GROUP_TEMPLATE.child(str(each[-1]), "metadata", "annotations") for each in parent.template_paths]
    annotations = [
        ((get_path(parent.spec, each) or {}).get("metadata") or {}).get("annotations") or {}
        for each in parent.template_paths
    ]
    try:
        pod_sets = parent.pod_sets(gates)
    except errors.InvalidValueError:
        for each, path in zip(annotations, paths, strict=True):
            yield from topologyrules.check_annotations(each, path, gates)
        return
    for each, path, pod_set in zip(annotations, paths, pod_sets, strict=True):
        yield from topologyrules.check_annotations(each, path, gates)
        yield from topologyrules.check_upper_bound(each, path, pod_set["count"])
    yield from topologyrules.check_groups(
        pod_sets, {pod_set["name"]: path for pod_set, path in zip(pod_sets, paths, strict=True)}
    )


def _leader_worker_set_changes(new: LeaderWorkerSet, old: LeaderWorkerSet, gates: Gates) -> Errors:
    for name in ("leaderTemplate", "workerTemplate"):
        steps = ("leaderWorkerTemplate", name)
        path = _GROUP_TEMPLATE.child(name)
        after, before = get_path(new.spec, steps), get_path(old.spec, steps)
        if after and before:
            yield from _shape(after.get("spec") or {}, before.get("spec") or {}, path.child("spec"))
        elif after or before:
            yield fielderror.invalid(path, after, _IMMUTABLE)
    if gates.on(Gate.LWS_IMMUTABLE_GROUP_SIZE) and new.size != old.size:
        yield fielderror.invalid(_GROUP_TEMPLATE.child("size"), new.size, _IMMUTABLE)


# Pod specs


def _pod_spec(parent: PodParent, steps: tuple[str, ...]) -> Document:
    return (get_path(parent.spec, steps) or {}).get("spec") or {}


def _shape(new: Document, old: Document, path: Path) -> Errors:
    """Check that the fields of a pod spec that matter for admission stay as they are."""
    yield from _same(pods.shape(new), pods.shape(old), path)


def _same(new: Document, old: Document, path: Path) -> Errors:
    for name in dict.fromkeys((*new, *old)):
        after, before, here = new.get(name), old.get(name), path.child(name)
        if name in ("initContainers", "containers") and len(after or ()) == len(before or ()):
            for position, pair in enumerate(zip(after or (), before or (), strict=True)):
                yield from _same(*pair, here.item(position))
        elif name == "resources" and isinstance(after, Mapping) and isinstance(before, Mapping) and "requests" in after:
            yield from _same(after, before, here)
        elif after != before:
            yield fielderror.invalid(here, after, _IMMUTABLE)
