"""``visibility.kueue.x-k8s.io`` over HTTPS, for API servers without queueing in their process, and its manifests."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
from typing import Any, Final

from aiohttp import web

from drachma import errors
from drachma.listening import addresses
from drachma.process import tlsserving
from drachma.process.extensionaccess import ExtensionAccess
from drachma.process.extensionapi import ExtensionApi
from drachma.runtime import Surroundings
from drachma.server.access import certificates
from drachma.server.kinds.kueue import visibilitykinds
from drachma.server.wire import app

SERVICE: Final = "visibility-server"
NAMESPACE: Final = "kueue-system"
HOSTS: Final = (f"{SERVICE}.{NAMESPACE}.svc", f"{SERVICE}.{NAMESPACE}")
"""Names that API servers use; the certificate must have the first one."""

_ACCOUNT: Final = {"kind": "ServiceAccount", "name": "kueue-controller-manager", "namespace": NAMESPACE}
_PRIORITY: Final = 100
_MOST_BYTES: Final = 64 * 1024
"""Limit of request bodies; no served request has one."""


class VisibilityEndpoint:
    """Endpoint at an address, with a certificate of its own authority."""

    def __init__(self, address: addresses.Address, files: certificates.Files) -> None:
        """Bind the address. Raises errors.InvalidValueError."""
        self._files: Final = files
        self._socket, self.address = addresses.bind(address)

    async def serve(self, additions: app.Additions, surroundings: Surroundings) -> None:
        """Serve the kinds and observers of ``additions`` until cancelled."""
        context = tlsserving.context(self._files)
        access = ExtensionAccess(surroundings, context)
        application = web.Application(client_max_size=_MOST_BYTES)
        application.router.add_route("*", "/{path:.*}", ExtensionApi(additions, access).handle)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(access.follow())
            await access.wait_ready()
            await tlsserving.serve(application, self._socket, context, files=self._files, clock=surroundings.clock)


def manifests(host: str, port: int, authority: bytes, *, by_endpoints: bool = False) -> list[dict[str, Any]]:
    """Return a Service, APIServices under Kueue's names, and the permission to review tokens and access.

    ``by_endpoints`` is for API servers with aggregator routing, which look endpoints up and refuse names.

    Raises:
        errors.InvalidValueError: endpoints need an IP address, and the host is a name.
    """
    return [
        *(_endpoints(host, port) if by_endpoints else [_service({"type": "ExternalName", "externalName": host})]),
        *(_registration(version, port, authority) for version in visibilitykinds.VERSIONS),
        _binding("RoleBinding", f"{SERVICE}-auth-reader", "Role", role="extension-apiserver-authentication-reader"),
        _binding("ClusterRoleBinding", f"{SERVICE}-auth-delegator", "ClusterRole", role="system:auth-delegator"),
    ]


def _service(spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": SERVICE, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _endpoints(host: str, port: int) -> list[dict[str, Any]]:
    """Return a Service without selector, and the slice with its only endpoint."""
    try:
        version = ipaddress.ip_address(host).version
    except ValueError:
        raise errors.InvalidValueError(f"host {host!r}: endpoints need an IP address") from None
    labels = {"kubernetes.io/service-name": SERVICE, "endpointslice.kubernetes.io/managed-by": "drachma"}
    return [
        _service({"ports": [{"name": "https", "port": port, "targetPort": port}]}),
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": SERVICE, "namespace": NAMESPACE, "labels": labels},
            "addressType": f"IPv{version}",
            "ports": [{"name": "https", "port": port}],
            "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
        },
    ]


def _registration(version: str, port: int, authority: bytes) -> dict[str, Any]:
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{visibilitykinds.GROUP}"},
        "spec": {
            "group": visibilitykinds.GROUP,
            "version": version,
            "groupPriorityMinimum": _PRIORITY,
            "versionPriority": _PRIORITY,
            "service": {"name": SERVICE, "namespace": NAMESPACE, "port": port},
            "caBundle": base64.b64encode(authority).decode(),
        },
    }


def _binding(kind: str, name: str, role_kind: str, *, role: str) -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "metadata": {"name": name, **({"namespace": "kube-system"} if kind == "RoleBinding" else {})},
        "roleRef": {"apiGroup": group, "kind": role_kind, "name": role},
        "subjects": [_ACCOUNT],
    }
