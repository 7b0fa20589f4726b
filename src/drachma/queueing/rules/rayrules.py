"""Rules of Kueue's webhooks for RayClusters, RayJobs and RayServices.

They have Kueue's order and messages. The rules that all kinds of jobs share are in :mod:`jobrules`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from drachma import errors
from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.integrations.ray import CLUSTER_CONFIG, HEAD, RayCluster, RayJob, RayService
from drachma.queueing.jobs import elastic
from drachma.queueing.jobs.settings import QUEUE_LABEL
from drachma.queueing.jobs.templatejob import TemplateSlot
from drachma.queueing.kinds import workload
from drachma.queueing.rules import jobrules, topologyrules
from drachma.validation import fielderror
from drachma.validation.fielderror import Errors, FieldError
from drachma.validation.path import SPEC, Path

Ray = RayCluster | RayJob | RayService

_MOST_POD_SETS: Final = 18
_SELECTOR: Final = SPEC.child("clusterSelector")
_CLUSTER: Final = SPEC.child("rayClusterSpec")
_SHUTDOWN: Final = SPEC.child("shutdownAfterJobFinishes")
_ELASTIC_ONLY: Final = (
    "a kueue-managed RayCluster can use autoscaling only as an elastic job: enable the ElasticJobsViaWorkloadSlices "
    f'feature gate and set the "{workload.ELASTIC}": "true" annotation'
)
_KEPT: Final = "a kueue managed job should delete the cluster after finishing"
_SLICES_ONLY: Final = "a kueue managed job should only use autoscaling when workload slicing is enabled"


def ray_problems(
    job: Ray, old: Mapping[str, Any] | None, gates: Gates, *, has_default_queue: bool, manages_all: bool
) -> tuple[FieldError, ...]:
    """Return the problems of a job that is created, or changed from ``old``.

    With ``manages_all``, jobs without a queue are queued too.
    """
    is_queued = manages_all or bool(job.labels.get(QUEUE_LABEL))
    problems: list[FieldError] = []
    if old is not None:
        was_queued = bool(type(job)(old).labels.get(QUEUE_LABEL))
        if not is_queued and not (was_queued and gates.on(Gate.VALIDATE_RAY_UPDATES)):
            return ()
        problems += jobrules.change_problems(job, old, gates, has_default_queue=has_default_queue)
    has_cluster = not isinstance(job, RayJob) or bool(job.spec.get("rayClusterSpec"))
    if is_queued:
        if isinstance(job, RayJob):
            problems += _check_source(job)
            if job.is_skipped or not has_cluster:
                return tuple(problems)
        problems += _check_cluster(job, gates)
    problems += jobrules.common_problems(job, gates)
    if gates.on(Gate.TAS) and has_cluster:
        problems += _check_topology(job, gates)
    return tuple(problems)


def _check_source(job: RayJob) -> Errors:
    """Check that a job names either an existing cluster or a new one."""
    selector, cluster = job.spec.get("clusterSelector"), job.spec.get("rayClusterSpec")
    if selector and cluster:
        yield fielderror.invalid(_SELECTOR, selector, "a kueue managed job should not use an existing cluster")
    elif not selector and not cluster:
        detail = "rayClusterSpec is required for Kueue-managed jobs that don't use clusterSelector"
        yield fielderror.required(_CLUSTER, detail)


def _check_cluster(job: Ray, gates: Gates) -> Errors:
    """Check the cluster of a queued job."""
    spec, path, detail = job.spec, SPEC, _ELASTIC_ONLY
    if isinstance(job, RayJob):
        is_deleted = bool(spec.get("shutdownAfterJobFinishes"))
        if not is_deleted:
            yield fielderror.invalid(_SHUTDOWN, is_deleted, _KEPT)
    if not isinstance(job, RayCluster):
        # Kueue's messages about a RayService have the name that the field has in Go.
        field = CLUSTER_CONFIG if isinstance(job, RayService) else "rayClusterSpec"
        spec, path, detail = spec.get(field) or {}, _CLUSTER, _SLICES_ONLY
    is_scaled = bool(spec.get("enableInTreeAutoscaling"))
    if is_scaled and not elastic.is_elastic(job.annotations, gates):
        yield fielderror.invalid(path.child("enableInTreeAutoscaling"), is_scaled, detail)
    groups = spec.get("workerGroupSpecs") or ()
    if len(groups) + 1 > _MOST_POD_SETS:
        yield fielderror.too_many(path.child("workerGroupSpecs"), len(groups) + 1, _MOST_POD_SETS)
    for position, group in enumerate(groups):
        if group.get("groupName") == HEAD:
            name = path.child("workerGroupSpecs").item(position).child("groupName")
            yield fielderror.forbidden(name, f'"{HEAD}" is reserved for the head group')


def _check_topology(job: Ray, gates: Gates) -> Errors:
    """Check the topology annotations of the head and of the worker groups, and the groups that they form."""
    head, *workers = (slot for slot in job.slots if slot.path[-1] == "template")
    try:
        pod_sets = job.pod_sets(gates)
    except errors.InvalidValueError:
        for slot in (head, *workers):
            annotations = jobrules.template_annotations(job.template(slot))
            yield from topologyrules.check_annotations(annotations, _annotations_path(slot), gates)
        return
    yield from _check_slot(job, head, gates)
    yield from topologyrules.check_groups(pod_sets, {slot.pod_set: _annotations_path(slot) for slot in job.slots})
    for slot in workers:
        yield from _check_slot(job, slot, gates)


def _check_slot(job: Ray, slot: TemplateSlot, gates: Gates) -> Errors:
    annotations, path = jobrules.template_annotations(job.template(slot)), _annotations_path(slot)
    yield from topologyrules.check_annotations(annotations, path, gates)
    yield from topologyrules.check_upper_bound(annotations, path, slot.pods)


def _annotations_path(slot: TemplateSlot) -> Path:
    if slot.path[0] == CLUSTER_CONFIG:
        slot = slot._replace(path=("rayClusterSpec", *slot.path[1:]))
    return jobrules.template_path(slot).child("metadata", "annotations")
