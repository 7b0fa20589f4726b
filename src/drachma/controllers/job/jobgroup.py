"""Workload and PodGroup of a job (KEP-5547, gate WorkloadWithJob): created before the job's pods, which name the group.

A job says how its pods are scheduled in ``spec.scheduling``; without it, the group has the basic policy. A gang without
a number needs as many pods as the job runs at once. A job that another object controls, or whose template names a group
already, gets no group. Both objects are deleted with the job.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from drachma import errors
from drachma.api import job, meta, podgroup
from drachma.claims import ownership
from drachma.client import Client, patches, target
from drachma.runtime import cache

_TEMPLATE: Final = "pods"
_COPIED: Final = ("schedulingConstraints", "disruptionMode", "resourceClaims")
_LONGEST: Final = 50
_WORKLOADS: Final[target.Target[meta.Object]] = target.Target(
    group="scheduling.k8s.io",
    versions=("v1beta1",),
    plural="workloads",
    kind="Workload",
    namespaced=True,
    model=meta.Object,
    is_optional=True,
)

Document = dict[str, Any]


class JobGroups:
    """Creates workloads and groups of jobs."""

    def __init__(self, client: Client, groups: cache.Cache[podgroup.PodGroup]) -> None:
        self._client: Final = client
        self._groups: Final = groups

    async def ensure(self, entry: cache.Entry[job.Job]) -> str:
        """Create what is missing of a job's workload and group. Return the name of the group, or an empty name."""
        owner, spec = entry.object, entry.document()["spec"]
        template: Mapping[str, Any] = spec["template"].get("spec") or {}
        if ownership.controller_of(owner) is not None or template.get("schedulingGroup"):
            return ""
        name, namespace = group_name(owner), owner.metadata.namespace
        policy = _group_template(spec)
        group = self._groups.get(name, namespace=namespace)
        if group is None:
            await self._create(_WORKLOADS, _workload(owner, name, policy))
            reference = {"workloadName": name, "templateName": _TEMPLATE}
            document = _document("PodGroup", owner, name, {"workloadRef": reference, **policy})
            await self._create(podgroup.PodGroup, document)
            return name
        if not ownership.is_controlled_by(group.metadata, owner.metadata.uid):
            raise errors.ReconcileError(f"PodGroup {namespace}/{name} was not created for this job")
        await self._update_count(group, policy)
        return name

    async def _create(self, kind: target.Of[Any], document: Document) -> None:
        try:
            await self._client.create_document(kind, document)
        except errors.ObjectExistsError:
            # It was created before an interruption.
            return

    async def _update_count(self, group: podgroup.PodGroup, policy: Document) -> None:
        """Write the number of pods of a gang if the job has another one now."""
        gang = policy["schedulingPolicy"].get("gang")
        current = group.spec.scheduling_policy.gang
        if gang is None or current is None or gang["minCount"] == current.min_count:
            return
        metadata = group.metadata
        patch = patches.merge({"spec": {"schedulingPolicy": {"gang": gang}}}, patches.unchanged(group))
        await self._client.patch(podgroup.PodGroup, metadata.name, namespace=metadata.namespace, patch=patch)


def group_name(owner: job.Job) -> str:
    """Return the name of the group and of the workload of a job, which differs for jobs of one name."""
    digest = hashlib.sha256(owner.metadata.uid.encode()).hexdigest()[:8]
    return f"{owner.metadata.name[:_LONGEST]}-{digest}"


def _group_template(spec: Mapping[str, Any]) -> Document:
    """Return the fields that the group has from the job, as in a template of a workload."""
    scheduling: Mapping[str, Any] = spec.get("scheduling") or {}
    policy: Mapping[str, Any] = scheduling.get("schedulingPolicy") or {"basic": {}}
    if policy.get("gang") is not None:
        policy = {"gang": {"minCount": spec.get("parallelism", 1), **policy["gang"]}}
    fields = {field: scheduling[field] for field in _COPIED if scheduling.get(field)}
    priority_class = (spec["template"].get("spec") or {}).get("priorityClassName")
    return {"schedulingPolicy": dict(policy), **fields} | (
        {"priorityClassName": priority_class} if priority_class else {}
    )


def _workload(owner: job.Job, name: str, policy: Document) -> Document:
    reference = {"apiGroup": "batch", "kind": "Job", "name": owner.metadata.name}
    return _document(
        "Workload", owner, name, {"controllerRef": reference, "podGroupTemplates": [{"name": _TEMPLATE, **policy}]}
    )


def _document(kind: str, owner: job.Job, name: str, spec: Document) -> Document:
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": owner.metadata.namespace,
            "ownerReferences": [ownership.reference(owner)],
        },
        "spec": spec,
    }
