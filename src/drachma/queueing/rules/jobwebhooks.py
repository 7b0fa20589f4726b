"""Defaults that Kueue's webhooks set when jobs and pods are created: queue labels, suspension, gates.

The functions depend on documents and their arguments only. :mod:`jobrules` validates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from drachma.queueing.configuration.gates import Gate
from drachma.queueing.integrations import pods
from drachma.queueing.integrations.batchjob import BatchJob
from drachma.queueing.integrations.parents import PodParent
from drachma.queueing.jobs import ancestry, elastic
from drachma.queueing.jobs.settings import PRIORITY_LABEL, QUEUE_LABEL, JobSettings
from drachma.queueing.jobs.suspendable import SuspendableJob
from drachma.queueing.jobs.templatejob import get_path, put_path
from drachma.queueing.kinds import admissioncheck, workload

Document: TypeAlias = Mapping[str, Any]

DEFAULT_QUEUE: Final = "default"


class Place(NamedTuple):
    """Namespace of a new object: its labels, its default queue and priority, and the owners in it."""

    labels: Mapping[str, str]
    has_default_queue: bool
    has_default_priority: bool
    owner: Callable[[str, str, str], Document | None]
    """Returns an object of the namespace, or of the cluster, by apiVersion, kind and name."""
    workload: Callable[[str], workload.Workload | None] = lambda name: None
    """Returns a workload of the namespace by name."""
    dispatches: Callable[[str], bool] = lambda queue: False
    """Returns True if the jobs of a local queue of the namespace run in other clusters."""


def completed_job(
    document: Document, place: Place, settings: JobSettings, *, model: type[SuspendableJob]
) -> dict[str, Any] | None:
    """Return a new Job or JobSet with its queue, suspended; None if nothing changes."""
    is_in_scope = settings.namespaces.matches(place.labels)
    after = _labelled_by_default(document, place, settings, is_in_scope=is_in_scope)
    is_queued = bool(_label(after, QUEUE_LABEL)) or settings.management.without_queue_name
    is_held = bool(after["spec"].get("suspend"))
    if is_queued and is_in_scope and not is_held and _ancestor(document, place, settings) is None:
        after["spec"] = {**after["spec"], "suspend": True}
    after = _dispatched(after, place, model)
    return after if after != document else None


def completed_installed_job(
    document: Document, place: Place, settings: JobSettings, *, model: type[SuspendableJob]
) -> dict[str, Any] | None:
    """Like completed_job(), for jobs of other projects, which suspend in their own fields."""
    job = model(document)
    if job.is_skipped:
        return None
    is_in_scope = settings.namespaces.matches(place.labels)
    after = _labelled_by_default(document, place, settings, is_in_scope=is_in_scope)
    is_queued = bool(_label(after, QUEUE_LABEL)) or settings.management.without_queue_name
    if is_queued and is_in_scope and not job.is_suspended and _ancestor(document, place, settings) is None:
        suspended = model(after)
        suspended.suspend()
        after = dict(suspended.document)
    prepared = model(_dispatched(after, place, model))
    prepared.prepare(settings.gates)
    after = dict(prepared.document)
    return after if after != document else None


def completed_parent(
    document: Document, place: Place, settings: JobSettings, *, model: type[PodParent]
) -> dict[str, Any] | None:
    """Return a Deployment, StatefulSet or LeaderWorkerSet whose pods are gated; None if nothing changes."""
    if model(document).is_of_another_parent:
        return None
    is_in_scope = settings.namespaces.matches(place.labels)
    parent = model(_labelled_by_default(document, place, settings, is_in_scope=is_in_scope))
    if is_managed_parent(parent, place, settings):
        parent = model(parent.completed(settings.gates))
    return dict(parent.document) if parent.document != document else None


def is_managed_parent(parent: PodParent, place: Place, settings: JobSettings) -> bool:
    """Return True if the pods of a parent are queued. The changes of one that is being deleted do not matter."""
    if parent.metadata.get("deletionTimestamp") or _ancestor(parent.document, place, settings) is not None:
        return False
    is_in_scope = settings.namespaces.matches(place.labels)
    return bool(parent.labels.get(QUEUE_LABEL)) or (settings.management.without_queue_name and is_in_scope)


def completed_batch_job(document: Document, place: Place, settings: JobSettings) -> dict[str, Any] | None:
    """Like completed_job(), for a Job of ``batch/v1``. The pods of an elastic Job are gated too."""
    after = completed_job(document, place, settings, model=BatchJob)
    annotations = document["metadata"].get("annotations") or {}
    if not settings.gates.on(Gate.ELASTIC_JOBS) or annotations.get(workload.ELASTIC) != "true":
        return after
    job = after or dict(document)
    template = elastic.with_gate(job["spec"].get("template") or {})
    job = {**job, "spec": {**job["spec"], "template": template}}
    return job if job != document else None


def completed_pod(document: Document, place: Place, settings: JobSettings) -> dict[str, Any] | None:
    """Return a new pod with its queue and gate, or None if nothing changes."""
    after = dict(document)
    is_of_parent = pods.PARENT in (document["metadata"].get("annotations") or {})
    if not is_of_parent:
        if not settings.namespaces.matches(place.labels) or _ancestor(document, place, settings) is not None:
            return None
        if place.has_default_queue and not _label(after, QUEUE_LABEL):
            # Unlike a job, a pod is queued by default even if an object of a queued kind owns it.
            after = _labelled(after, QUEUE_LABEL, DEFAULT_QUEUE)
        after = _labelled_by_default(after, place, settings, is_in_scope=True)
        if not (_label(after, QUEUE_LABEL) or settings.management.without_queue_name):
            return after if after != document else None
        after = _labelled(after, pods.FINALIZER, "true")
        finalizers = after["metadata"].get("finalizers") or []
        if pods.FINALIZER not in finalizers:
            after["metadata"] = {**after["metadata"], "finalizers": [*finalizers, pods.FINALIZER]}
    names = [pods.GATE]
    if settings.gates.on(Gate.TAS):
        names.append(pods.TOPOLOGY_GATE)
        after = _indexed(after)
    gates = after["spec"].get("schedulingGates") or []
    added = [{"name": name} for name in names if not pods.has_gate(after, name)]
    if added:
        after["spec"] = {**after["spec"], "schedulingGates": [*gates, *added]}
    annotations = {**(after["metadata"].get("annotations") or {}), pods.ROLE: pods.role_hash(after["spec"])}
    after["metadata"] = {**after["metadata"], "annotations": annotations}
    return after


def _indexed(document: Document) -> dict[str, Any]:
    """Return a pod with the index in its group, from the label that its annotation names."""
    label = (document["metadata"].get("annotations") or {}).get(pods.INDEX_LABEL_ANNOTATION)
    return dict(document) if label is None else _labelled(document, pods.INDEX_LABEL, _label(document, label))


def _ancestor(document: Document, place: Place, settings: JobSettings) -> Document | None:
    """Return the owner that is admitted in place of a job; missing owners are ignored."""
    owners: dict[tuple[str, str, str], Document] = {}
    each: Document | None = document
    while each is not None and len(owners) <= ancestry.MAX_DEPTH:
        owner = ancestry.controller(each)
        if owner is None:
            break
        each = place.owner(owner["apiVersion"], owner["kind"], owner["name"])
        if each is not None:
            owners[owner["apiVersion"], owner["kind"], owner["name"]] = each
    try:
        return ancestry.ancestor(document, owners, settings.management)
    except ancestry.AncestryError:
        return None


def _labelled_by_default(
    document: Document, place: Place, settings: JobSettings, *, is_in_scope: bool
) -> dict[str, Any]:
    """Return a job with the labels of the default queue and priority, unless an object of a queued kind owns it."""
    after = dict(document)
    if ancestry.is_owned(document, settings.management):
        return after
    if place.has_default_queue and is_in_scope and not _label(after, QUEUE_LABEL):
        after = _labelled(after, QUEUE_LABEL, DEFAULT_QUEUE)
    is_ranked = settings.gates.on(Gate.PRIORITY_CLASS_DEFAULTING) and place.has_default_priority
    return _labelled(after, PRIORITY_LABEL, "default") if is_ranked and not _label(after, PRIORITY_LABEL) else after


def _dispatched(document: dict[str, Any], place: Place, model: type[SuspendableJob]) -> dict[str, Any]:
    """Return a job that is left to the dispatcher, if its queue dispatches and no third controller is named."""
    queue = _label(document, QUEUE_LABEL)
    manager = get_path(document["spec"], model.managed_by_path)
    if not queue or manager not in (None, "", model.own_controller) or not place.dispatches(queue):
        return document
    return {**document, "spec": put_path(document["spec"], model.managed_by_path, admissioncheck.MULTI_KUEUE)}


def _label(document: Document, name: str) -> str:
    value: str = (document["metadata"].get("labels") or {}).get(name, "")
    return value


def _labelled(document: Document, name: str, value: str) -> dict[str, Any]:
    metadata = document["metadata"]
    return {**document, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), name: value}}}
