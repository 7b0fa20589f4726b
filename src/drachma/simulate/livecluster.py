"""Reads of a running cluster through its API: its state, its queues, and the workloads whose pods do not exist yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import codec, configmap, job, meta, resourcequota
from drachma.api.struct import ABSENT_INT, ABSENT_MAP
from drachma.client import Client, Selection, protocol, target
from drachma.queueing.component import configurationmap
from drachma.scheduler.recording import essentials
from drachma.simulate import queueingstate
from drachma.simulate.clusterstate import KINDS, ClusterState

_PAGE: Final = 500


async def read(client: Client) -> ClusterState:
    """Return all objects that placing pods depends on. Changes during the read may be missed."""
    objects: list[meta.Object] = []
    for kind in KINDS:
        objects += await everything(client, kind)
    return ClusterState.of(objects)


async def read_quotas(client: Client) -> tuple[resourcequota.ResourceQuota, ...]:
    """Return the quotas of all namespaces. Raises errors.ForbiddenError if the user may not read them."""
    quotas = await everything(client, resourcequota.ResourceQuota)
    return tuple(each for each in quotas if isinstance(each, resourcequota.ResourceQuota))


async def everything(
    client: Client, kind: target.Of[Any], selection: Selection = protocol.EVERYTHING
) -> list[meta.Object]:
    """Return all objects of a kind, read page by page; none if the kind is optional and not served."""
    objects: list[meta.Object] = []
    token = ""
    while True:
        try:
            page = await client.list(kind, selection, limit=_PAGE, continue_token=token)
        except errors.ObjectNotFoundError:
            if target.of(kind).is_optional:
                return []
            raise
        objects += page.items
        token = page.continue_token
        if not token:
            return objects


async def read_queueing(client: Client) -> list[meta.Object]:
    """Return all objects that the admission of workloads depends on.

    Raises:
        errors.ObjectNotFoundError: the server has no queues.
    """
    objects: list[meta.Object] = []
    for kind in queueingstate.KINDS:
        selection = configurationmap.SELECTION if kind is configmap.ConfigMap else protocol.EVERYTHING
        try:
            objects += await everything(client, kind, selection)
        except errors.ObjectNotFoundError as error:
            message = f"{target.of(kind).qualified}: the server does not have it: is queueing on?"
            raise errors.ObjectNotFoundError({**error.document, "message": message}) from None
    return objects


class _Whole(meta.Object, frozen=True, kw_only=True):
    """Object whose content is passed on unread."""

    spec: Mapping[str, Any] = ABSENT_MAP
    status: Mapping[str, Any] = ABSENT_MAP
    value: int = ABSENT_INT
    global_default: bool | None = None


_WORKLOADS: Final = target.Target(
    group="kueue.x-k8s.io",
    versions=("v1beta2", "v1beta1"),
    plural="workloads",
    kind="Workload",
    namespaced=True,
    model=_Whole,
    is_optional=True,
)
_CLASSES: Final = target.Target(
    group="scheduling.k8s.io",
    versions=("v1",),
    plural="priorityclasses",
    kind="PriorityClass",
    namespaced=False,
    model=_Whole,
)


async def read_workloads(client: Client) -> list[dict[str, Any]]:
    """Return suspended Jobs, queued Workloads and priority classes as documents, without commands of containers."""
    jobs = await everything(client, job.Job)
    documents = [codec.encode(essentials.of(each)) for each in jobs if isinstance(each, job.Job) and each.spec.suspend]
    for resource in (_WORKLOADS, _CLASSES):
        head = {"apiVersion": resource.api_version(resource.versions[0]), "kind": resource.kind}
        for each in await everything(client, resource):
            content: dict[str, Any] = msgspec.json.decode(codec.encode_part(essentials.of(each)))
            documents.append({**head, **content})
    return documents
