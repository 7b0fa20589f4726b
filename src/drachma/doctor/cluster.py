"""The objects that the doctor examines, as one value: from an API server, or from manifests and dumps."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

import msgspec

from drachma.api import (
    deviceclass,
    devicetaintrule,
    meta,
    node,
    pod,
    resourceclaim,
    resourceclaimtemplate,
    resourcequota,
    resourceslice,
)
from drachma.api.struct import ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE, Struct

ObjectT = TypeVar("ObjectT", bound=meta.Object)


class ServiceReference(Struct, frozen=True, kw_only=True):
    """Service that a webhook calls."""

    namespace: str = ABSENT_TEXT
    name: str = ABSENT_TEXT


class WebhookClientConfig(Struct, frozen=True, kw_only=True):
    """Address of a webhook; without a service, the API server calls it by URL."""

    service: ServiceReference | None = None


class Webhook(Struct, frozen=True, kw_only=True):
    """One webhook of a configuration."""

    name: str = ABSENT_TEXT
    client_config: WebhookClientConfig = WebhookClientConfig()
    failure_policy: str = ABSENT_TEXT


class WebhookConfiguration(meta.Object, frozen=True, kw_only=True):
    """A validating or mutating webhook configuration; a partial view."""

    webhooks: tuple[Webhook, ...] = ABSENT_TUPLE


class EndpointConditions(Struct, frozen=True, kw_only=True):
    """Conditions of an endpoint."""

    ready: bool | None = None


class Endpoint(Struct, frozen=True, kw_only=True):
    """One endpoint of a service."""

    conditions: EndpointConditions = EndpointConditions()


class EndpointSlice(meta.Object, frozen=True, kw_only=True):
    """Endpoints of a service; a partial view."""

    endpoints: tuple[Endpoint, ...] = ABSENT_TUPLE


KINDS: Final[tuple[type[meta.Object], ...]] = (
    deviceclass.DeviceClass,
    devicetaintrule.DeviceTaintRule,
    node.Node,
    pod.Pod,
    resourceclaim.ResourceClaim,
    resourceclaimtemplate.ResourceClaimTemplate,
    resourcequota.ResourceQuota,
    resourceslice.ResourceSlice,
)
"""Kinds of the scheme that checks read."""


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """Objects of a cluster, and facts about its API server as far as they are known."""

    objects: tuple[meta.Object, ...]
    now: dt.datetime
    webhooks: tuple[WebhookConfiguration, ...] = ()
    endpoints: tuple[EndpointSlice, ...] | None = None
    """None if endpoints are not known."""
    kubelet_versions: Mapping[str, str] = ABSENT_MAP
    """Version of the kubelet by node."""
    server_version: str = ""
    unserved: tuple[str, ...] = ()
    """Resources that the API server does not have."""
    api_version: str = ""
    """Newest served version of resource.k8s.io; empty if unknown."""

    @classmethod
    def of(cls, objects: Iterable[meta.Object], *, now: dt.datetime) -> Cluster:
        """Return a cluster of objects alone; nothing is known about its API server."""
        return cls(objects=tuple(each for each in objects if isinstance(each, KINDS)), now=now)

    def all(self, kind: type[ObjectT]) -> list[ObjectT]:
        """Return the objects of a kind, in their order."""
        return [each for each in self.objects if isinstance(each, kind)]

    def age(self, moment: dt.datetime | None) -> float:
        """Return the seconds since a moment; infinite without one, as in manifests."""
        return float("inf") if moment is None else (self.now - moment).total_seconds()
