"""What Kueue's webhooks do to jobs and pods when they are made: they are put into queues, and held back.

They look at documents and at what is passed in; whoever runs beside an API server asks them about every write. What
they refuse is in :mod:`jobrules`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from drachma.queueing.configuration.gates import Gate
from drachma.queueing.jobs import elasticpods, jobowners, podgroup, rolehash
from drachma.queueing.jobs.jobsettings import JobSettings
from drachma.queueing.jobs.jobworkload import PRIORITY_LABEL, QUEUE_LABEL
from drachma.queueing.kinds import workload

Document: TypeAlias = Mapping[str, Any]

DEFAULT_QUEUE: Final = "default"
_BY_PARENT: Final = "kueue.x-k8s.io/pod-suspending-parent"


class Place(NamedTuple):
    """Where an object is made: the labels of its namespace, what is in it, and the objects that may own it."""

    labels: Mapping[str, str]
    has_default_queue: bool
    has_default_priority: bool
    owner: Callable[[str, str, str], Document | None]
    """An object of the namespace by apiVersion, kind and name."""


def completed_job(document: Document, place: Place, settings: JobSettings) -> dict[str, Any] | None:
    """A new Job or JobSet as it should be: in a queue, and held back; None if it is so already."""
    is_in_scope = settings.namespaces.matches(place.labels)
    after = _labelled_by_default(document, place, settings, is_in_scope=is_in_scope)
    is_queued = bool(_label(after, QUEUE_LABEL)) or settings.management.without_queue_name
    is_held = bool(after["spec"].get("suspend"))
    if is_queued and is_in_scope and not is_held and _ancestor(document, place, settings) is None:
        after["spec"] = {**after["spec"], "suspend": True}
    return after if after != document else None


def completed_batch_job(document: Document, place: Place, settings: JobSettings) -> dict[str, Any] | None:
    """The same for a Job of ``batch/v1``, which may be elastic: then its pods are held back one by one, too."""
    after = completed_job(document, place, settings)
    annotations = document["metadata"].get("annotations") or {}
    if not settings.gates.on(Gate.ELASTIC_JOBS) or annotations.get(workload.ELASTIC) != "true":
        return after
    job = after or dict(document)
    template = elasticpods.gated(job["spec"].get("template") or {})
    job = {**job, "spec": {**job["spec"], "template": template}}
    return job if job != document else None


def completed_pod(document: Document, place: Place, settings: JobSettings) -> dict[str, Any] | None:
    """A new pod as it should be: in a queue, and gated; None if it is left as it is."""
    after = dict(document)
    is_of_parent = _BY_PARENT in (document["metadata"].get("annotations") or {})
    if not is_of_parent:
        if not settings.namespaces.matches(place.labels) or _ancestor(document, place, settings) is not None:
            return None
        after = _labelled_by_default(document, place, settings, is_in_scope=True)
        if not (_label(after, QUEUE_LABEL) or settings.management.without_queue_name):
            return after if after != document else None
        after = _labelled(after, podgroup.FINALIZER, "true")
        finalizers = after["metadata"].get("finalizers") or []
        if podgroup.FINALIZER not in finalizers:
            after["metadata"] = {**after["metadata"], "finalizers": [*finalizers, podgroup.FINALIZER]}
    gates = after["spec"].get("schedulingGates") or []
    if not podgroup.is_gated(after):
        after["spec"] = {**after["spec"], "schedulingGates": [*gates, {"name": podgroup.GATE}]}
    annotations = {**(after["metadata"].get("annotations") or {}), rolehash.ANNOTATION: rolehash.of_spec(after["spec"])}
    after["metadata"] = {**after["metadata"], "annotations": annotations}
    return after


def _ancestor(of: Document, place: Place, settings: JobSettings) -> Document | None:
    """The owner that is queued in its place; those that cannot be found are none."""
    owners: dict[tuple[str, str, str], Document] = {}
    each: Document | None = of
    while each is not None and len(owners) <= jobowners.MOST:
        owner = jobowners.controller(each)
        if owner is None:
            break
        each = place.owner(owner["apiVersion"], owner["kind"], owner["name"])
        if each is not None:
            owners[owner["apiVersion"], owner["kind"], owner["name"]] = each
    try:
        return jobowners.ancestor(of, owners, settings.management)
    except jobowners.AncestryError:
        return None


def _labelled_by_default(of: Document, place: Place, settings: JobSettings, *, is_in_scope: bool) -> dict[str, Any]:
    """With the queue and the priority that there are for all who name none, unless somebody that is queued owns it."""
    after = dict(of)
    if jobowners.is_owned(of, settings.management):
        return after
    if place.has_default_queue and is_in_scope and not _label(after, QUEUE_LABEL):
        after = _labelled(after, QUEUE_LABEL, DEFAULT_QUEUE)
    is_ranked = settings.gates.on(Gate.PRIORITY_CLASS_DEFAULTING) and place.has_default_priority
    return _labelled(after, PRIORITY_LABEL, "default") if is_ranked and not _label(after, PRIORITY_LABEL) else after


def _label(of: Document, name: str) -> str:
    value: str = (of["metadata"].get("labels") or {}).get(name, "")
    return value


def _labelled(of: Document, name: str, value: str) -> dict[str, Any]:
    metadata = of["metadata"]
    return {**of, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), name: value}}}
