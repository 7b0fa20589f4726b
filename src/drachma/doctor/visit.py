"""Access to a running cluster: reads what checks need, and carries out repairs."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from drachma import errors
from drachma.api import meta, node
from drachma.api.struct import ABSENT_TEXT, Struct
from drachma.client import Client, patches, target
from drachma.doctor import cluster as examined
from drachma.doctor.finding import Repair, Verb

_PAGE: Final = 500
_OPTIONAL: Final = (errors.ObjectNotFoundError, errors.ForbiddenError)


class _NodeInfo(Struct, frozen=True, kw_only=True):
    kubelet_version: str = ABSENT_TEXT


class _NodeStatus(Struct, frozen=True, kw_only=True):
    node_info: _NodeInfo = _NodeInfo()


class _NodeVersion(meta.Object, frozen=True, kw_only=True):
    status: _NodeStatus = _NodeStatus()


_ADMISSION: Final = "admissionregistration.k8s.io"
_WEBHOOKS: Final = tuple(
    target.Target(
        group=_ADMISSION,
        versions=("v1",),
        plural=plural,
        kind=kind,
        namespaced=False,
        model=examined.WebhookConfiguration,
    )
    for plural, kind in (
        ("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
        ("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
    )
)
_ENDPOINTS: Final = target.Target(
    group="discovery.k8s.io",
    versions=("v1",),
    plural="endpointslices",
    kind="EndpointSlice",
    namespaced=True,
    model=examined.EndpointSlice,
)


async def read(
    client: Client, *, now: dt.datetime, server_version: str = "", api_version: str = ""
) -> examined.Cluster:
    """Return a cluster as it is now, with the kinds that are not served, and the versions that the caller knows.

    Raises:
        errors.ForbiddenError: the user may not list a kind that checks need.
    """
    objects: list[meta.Object] = []
    unserved: list[str] = []
    for kind in examined.KINDS:
        try:
            objects += await _everything(client, kind)
        except errors.ObjectNotFoundError:
            unserved.append(target.of(kind).qualified)
    webhooks: list[examined.WebhookConfiguration] = []
    endpoints: tuple[examined.EndpointSlice, ...] | None = None
    try:
        for configuration in _WEBHOOKS:
            webhooks += await _everything(client, configuration)
        endpoints = tuple(await _everything(client, _ENDPOINTS))
    except _OPTIONAL:
        endpoints = None
    versions = await _everything(client, target.view_of(target.of(node.Node), _NodeVersion))
    return examined.Cluster(
        objects=tuple(objects),
        now=now,
        webhooks=tuple(webhooks),
        endpoints=endpoints,
        kubelet_versions={each.metadata.name: each.status.node_info.kubelet_version for each in versions},
        unserved=tuple(unserved),
        server_version=server_version,
        api_version=api_version,
    )


async def carry_out(client: Client, repair: Repair) -> None:
    """Make the request of a repair.

    Raises:
        errors.RefusedError: the object has changed since it was examined, or the user may not do it.
    """
    kind = _target(repair)
    preconditions = patches.Preconditions(uid=repair.uid, resource_version=repair.resource_version)
    if repair.verb is Verb.DELETE:
        await client.delete(kind, repair.name, namespace=repair.namespace, preconditions=preconditions)
        return
    await client.patch_document(
        kind,
        repair.name,
        namespace=repair.namespace,
        subresource=repair.subresource,
        patch=patches.merge(dict(repair.patch), preconditions),
    )


def _target(repair: Repair) -> target.Target[Any]:
    return next(each for each in map(target.of, examined.KINDS) if each.qualified == repair.resource)


async def _everything(client: Client, kind: target.Of[Any]) -> list[Any]:
    objects: list[Any] = []
    token = ""
    while True:
        page = await client.list(kind, limit=_PAGE, continue_token=token)
        objects += page.items
        token = page.continue_token
        if not token:
            return objects
