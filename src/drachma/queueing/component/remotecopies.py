"""Copies of workloads, claim templates and jobs in other clusters."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from drachma import errors
from drachma.api import resourceclaimtemplate
from drachma.client import patches, protocol, target
from drachma.queueing.checks import dispatch
from drachma.queueing.component import jobcontroller, resources, workloadwrites
from drachma.queueing.component.caches import Caches
from drachma.queueing.component.jobcontroller import JobKind
from drachma.queueing.component.remoteclusters import RemoteCluster
from drachma.queueing.jobs.templatejob import get_path, put_path
from drachma.queueing.kinds import decoding, multikueue, workload
from drachma.queueing.workloads import workloadstate
from drachma.runtime import Surroundings

KINDS: Final = {(each.model.kind.api_version, each.model.kind.kind): each for each in jobcontroller.ALL}
"""Kinds of jobs that can be dispatched, by apiVersion and kind."""

_BATCH_LABELS: Final = (
    "job-name",
    "controller-uid",
    "batch.kubernetes.io/job-name",
    "batch.kubernetes.io/controller-uid",
)

Document = Mapping[str, Any]


class RemoteCopies:
    """Creates, updates and deletes the copies of workloads with ``origin`` as their origin."""

    def __init__(self, surroundings: Surroundings, caches: Caches, *, origin: Callable[[], str]) -> None:
        self._client: Final = surroundings.client
        self._informers: Final = surroundings.informers
        self._clock: Final = surroundings.clock
        self._caches: Final = caches
        self._origin: Final = origin

    async def patch(
        self, cluster: RemoteCluster, copy: workload.Workload, content: Document, *, subresource: str = ""
    ) -> None:
        """Patch the copy of a workload, if it still exists."""
        with contextlib.suppress(errors.ObjectNotFoundError):
            await cluster.client.patch(
                resources.WORKLOADS,
                copy.metadata.name,
                namespace=copy.metadata.namespace,
                subresource=subresource,
                patch=patches.merge(content),
            )

    async def create(self, cluster: RemoteCluster, wl: workload.Workload) -> None:
        """Copy a workload to a cluster, after the claim templates by which its devices are counted."""
        templates = dispatch.claim_templates(self._caches.pod_sets(wl))
        for name in templates:
            await self._copy_template(cluster, wl.metadata.namespace, name)
        try:
            created = await cluster.client.create_document(
                resources.WORKLOADS, dispatch.copy_workload(self._caches.workload_document(wl), self._origin())
            )
        except errors.ObjectExistsError:
            return
        cluster.workloads.observe(created)
        for name in templates:
            await self._own_template(cluster, created, name)

    async def _copy_template(self, cluster: RemoteCluster, namespace: str, name: str) -> None:
        template = await get_document(
            self._client, target.of(resourceclaimtemplate.ResourceClaimTemplate), name, namespace
        )
        if template is None:
            return
        metadata = dispatch.clone_metadata(template["metadata"])
        metadata["labels"] = {**(metadata.get("labels") or {}), multikueue.ORIGIN: self._origin()}
        document = {
            "apiVersion": template["apiVersion"],
            "kind": template["kind"],
            "metadata": metadata,
            "spec": template["spec"],
        }
        with contextlib.suppress(errors.ObjectExistsError):
            await cluster.client.create_document(resourceclaimtemplate.ResourceClaimTemplate, document)

    async def _own_template(self, cluster: RemoteCluster, copy: Document, name: str) -> None:
        """Make a copied workload an owner of a copied template, so that the template goes with its last workload."""
        metadata = copy["metadata"]
        resource = target.of(resourceclaimtemplate.ResourceClaimTemplate)
        template = await get_document(cluster.client, resource, name, metadata["namespace"])
        if template is None or (template["metadata"].get("labels") or {}).get(multikueue.ORIGIN) != self._origin():
            return
        owner = {
            "apiVersion": copy["apiVersion"],
            "kind": copy["kind"],
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        owners = [*(template["metadata"].get("ownerReferences") or ()), owner]
        patch = patches.merge({"metadata": {"ownerReferences": owners}})
        await cluster.client.patch(resource, name, namespace=metadata["namespace"], patch=patch)

    async def remove(self, cluster: RemoteCluster, copy: workload.Workload) -> None:
        """Delete the copy of a workload and its job, if both come from here."""
        if copy.metadata.labels.get(multikueue.ORIGIN) != self._origin():
            return
        namespace = copy.metadata.namespace
        for owner in copy.metadata.owner_references:
            kind = KINDS.get((owner.api_version, owner.kind))
            job = None if kind is None else await get_document(cluster.client, kind.resource, owner.name, namespace)
            if kind is not None and job is not None and self._is_from_here(job):
                await _delete(cluster.client, kind.resource, owner.name, namespace)
        if copy.metadata.finalizers:
            await self.patch(cluster, copy, {"metadata": {"finalizers": None}})
        await _delete(cluster.client, resources.WORKLOADS, copy.metadata.name, namespace)

    def _is_from_here(self, document: Document) -> bool:
        return bool((document["metadata"].get("labels") or {}).get(multikueue.ORIGIN) == self._origin())

    async def deactivate(self, cluster: RemoteCluster, copy: workload.Workload, wl: workload.Workload) -> None:
        """Have a cluster stop the copy of a workload that was evicted here."""
        message = f"Evicted on manager: {workloadstate.eviction_message(wl)}"
        target_condition = {
            "type": "DeactivationTarget",
            "status": "True",
            "reason": "EvictedOnManagerCluster",
            "message": message,
            "lastTransitionTime": workloadwrites.current_time(self._clock).isoformat().replace("+00:00", "Z"),
            "observedGeneration": copy.metadata.generation,
        }
        present = [decoding.document(each) for each in copy.status.conditions if each.type != "DeactivationTarget"]
        await self.patch(cluster, copy, {"status": {"conditions": [*present, target_condition]}}, subresource="status")

    # Jobs

    async def sync_job(self, cluster: RemoteCluster, wl: workload.Workload, kind: JobKind, name: str) -> bool:
        """Create the job in a cluster, or copy its status back. Return True if the local job cannot take it yet."""
        cluster.follow(kind.resource)
        namespace = wl.metadata.namespace
        local = await get_document(self._client, kind.resource, name, namespace)
        if local is None:
            return False
        remote = await get_document(cluster.client, kind.resource, name, namespace)
        if remote is None:
            await cluster.client.create_document(kind.resource, self._copied_job(local, kind, wl.metadata.name))
            return False
        if not self._is_from_here(remote):
            title = f"{kind.model.kind.kind} {namespace}/{name}"
            raise errors.InvalidValueError(f"{title} exists in the cluster and was not dispatched from here")
        local_job, remote_job = kind.model(local), kind.model(remote)
        if local_job.is_suspended and not remote_job.is_suspended and remote_job.completion is None:
            return True
        change = workloadwrites.difference(local.get("status") or {}, remote.get("status") or {})
        if change:
            latest = await self._client.patch_document(
                kind.resource,
                name,
                namespace=namespace,
                subresource="status",
                patch=patches.merge({"status": change}),
            )
            self._informers.observe(kind.resource, latest)
        return False

    def _copied_job(self, local: Document, kind: JobKind, workload_name: str) -> dict[str, Any]:
        spec = put_path(local["spec"], kind.model.managed_by_path, None)
        parent = kind.model.managed_by_path[:-1]
        holder = {key: value for key, value in (get_path(spec, parent) or {}).items() if value is not None}
        spec = put_path(spec, parent, holder) if parent else holder
        if kind is jobcontroller.JOBS:
            spec.pop("selector", None)
            template = spec.get("template") or {}
            labels = {
                key: value
                for key, value in ((template.get("metadata") or {}).get("labels") or {}).items()
                if key not in _BATCH_LABELS
            }
            spec["template"] = {**template, "metadata": {**(template.get("metadata") or {}), "labels": labels}}
        metadata = dispatch.copied_job_metadata(local["metadata"], workload_name=workload_name, origin=self._origin())
        return {"apiVersion": local["apiVersion"], "kind": local["kind"], "metadata": metadata, "spec": spec}


async def get_document(
    client: protocol.Client, resource: target.Target[Any], name: str, namespace: str
) -> Document | None:
    """Return an object, or None if it does not exist."""
    try:
        return await client.get_document(resource, name, namespace=namespace)
    except errors.ObjectNotFoundError:
        return None


async def _delete(client: protocol.Client, resource: target.Target[Any], name: str, namespace: str) -> None:
    with contextlib.suppress(errors.ObjectNotFoundError):
        await client.delete(resource, name, namespace=namespace, propagation="Background")
