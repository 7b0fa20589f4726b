"""The pod resources socket: ``v1.PodResourcesLister``, by which monitoring agents learn the devices of containers.

Differs from upstream: each device has only its own CDI ids. Upstream repeats the ids of a driver's earlier devices.
"""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import Callable, Iterable
from typing import Any, Final

import grpc
import grpc.aio

from drachma import errors
from drachma.accounting import aggregate
from drachma.api.pod import Pod
from drachma.node.claims import nodeclaims
from drachma.node.claims.preparedclaims import PreparedClaim, PreparedClaims
from drachma.nodewire.rpc import messages, services

_GRACE_SECONDS: Final = 1.0
_MODE: Final = 0o600


class PodResourceSocket:
    """Server of the devices of the pods of one node."""

    def __init__(self, path: pathlib.Path, claims: PreparedClaims, *, pods: Callable[[], Iterable[Pod]]) -> None:
        """``pods`` returns the running pods."""
        self._path = path
        self._claims = claims
        self._pods = pods

    async def run(self) -> None:
        """Serve until cancelled."""
        self._path.unlink(missing_ok=True)
        server = grpc.aio.server()
        services.serve(
            server,
            services.POD_RESOURCES,
            {"List": self._list, "Get": self._get, "GetAllocatableResources": self._get_allocatable},
        )
        server.add_insecure_port(f"unix:{self._path}")
        await server.start()
        try:
            self._path.chmod(_MODE)
            await asyncio.Event().wait()
        finally:
            await server.stop(_GRACE_SECONDS)

    async def _list(self, _request: Any, _context: Any) -> Any:
        answer = messages.POD_RESOURCES.ListPodResourcesResponse()
        for each in self._pods():
            self._describe(each, answer.pod_resources.add())
        return answer

    async def _get(self, request: Any, context: Any) -> Any:
        answer = messages.POD_RESOURCES.GetPodResourcesResponse()
        for each in self._pods():
            if (each.metadata.namespace, each.metadata.name) == (request.pod_namespace, request.pod_name):
                self._describe(each, answer.pod_resources)
                return answer
        problem = f"pod {request.pod_name} in namespace {request.pod_namespace} not found"
        return await context.abort(grpc.StatusCode.UNKNOWN, problem)

    async def _get_allocatable(self, _request: Any, _context: Any) -> Any:
        """Return an empty response: agents have no device plugins, and no exclusive CPUs or memory."""
        return messages.POD_RESOURCES.AllocatableResourcesResponse()

    def _describe(self, pod: Pod, entry: Any) -> None:
        entry.name, entry.namespace = pod.metadata.name, pod.metadata.namespace
        for container in (*filter(aggregate.is_sidecar, pod.spec.init_containers), *pod.spec.containers):
            container_entry = entry.containers.add(name=container.name)
            try:
                records = nodeclaims.container_claims(self._claims, pod, container)
            except errors.NodeError:
                # Its claims are not prepared yet, so it has no devices.
                continue
            for record in records:
                _describe_claim(record, container_entry.dynamic_resources.add())


def _describe_claim(record: PreparedClaim, entry: Any) -> None:
    entry.claim_name, entry.claim_namespace = record.key.name, record.key.namespace
    for driver, state in record.drivers.items():
        for device in state.devices:
            entry.claim_resources.add(
                cdi_devices=[{"name": each} for each in device.cdi_device_ids],
                driver_name=driver,
                pool_name=device.pool_name,
                device_name=device.device_name,
                share_id=device.share_id,
            )
