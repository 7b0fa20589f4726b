"""Drivers that are only imagined: they prepare whatever is allocated, in this process and without a socket.

Simulated nodes have them in place of :class:`drachma.node.plugins.Plugins`.
"""

from __future__ import annotations

import contextlib
from typing import Any, Final

from drachma import errors
from drachma.api import node, resourceslice
from drachma.client import Client
from drachma.node import health
from drachma.node.hardware import Machine
from drachma.node.preparation import Get
from drachma.node.preparedclaims import PREPARE, PreparedClaims
from drachma.nodewire.rpc import services
from drachma.runtime import clock

_CLASS: Final = "device"


class SimulatedDrivers:
    """All drivers of a simulated node, by name; of the health of devices they say nothing."""

    def __init__(self, machine: Machine, get: Get, *, client: Client, time: clock.Clock) -> None:
        self.health: Final = health.DeviceHealth(time)
        self._machine = machine
        self._get = get
        self._client = client

    async def run(self, owner: node.Node) -> None:
        """Publishes the devices that the machine has; there is nothing else to look after."""
        reference = {
            "apiVersion": "v1",
            "kind": "Node",
            "name": owner.metadata.name,
            "uid": owner.metadata.uid,
            "controller": True,
        }
        for document in self._machine.slices:
            metadata = {**document["metadata"], "ownerReferences": [reference]}
            with contextlib.suppress(errors.ObjectExistsError):
                await self._client.create_document(resourceslice.ResourceSlice, {**document, "metadata": metadata})

    def get(self, driver: str) -> SimulatedDriver:
        if driver not in self._machine.drivers and not self._machine.has_any_driver:
            raise errors.NodeError(f"DRA driver {driver} is not registered")
        return SimulatedDriver(driver, self._get)


class SimulatedDriver:
    """Answers as a driver does whose devices are always ready."""

    def __init__(self, name: str, get: Get) -> None:
        self._name = name
        self._get = get

    def request(self, method: str, **fields: Any) -> Any:
        return services.DRA[0].method(method).request(**fields)

    async def call(self, method: str, request: Any) -> Any:
        response = services.DRA[0].method(method).response()
        for claim in request.claims:
            answer = response.claims[claim.uid]
            answer.error = ""
            if method == PREPARE:
                await self._prepare(claim, answer)
        return response

    async def _prepare(self, asked: Any, answer: Any) -> None:
        claim = await self._get(asked.namespace, asked.name)
        allocation = claim.status.allocation
        if claim.metadata.uid != asked.uid or allocation is None:
            answer.error = f"claim {asked.namespace}/{asked.name}: not the one that was allocated"
            return
        for result in allocation.devices.results:
            if result.driver == self._name:
                answer.devices.add(
                    pool_name=result.pool,
                    device_name=result.device,
                    request_names=[result.request.partition("/")[0]],
                    cdi_device_ids=[f"{self._name}/{_CLASS}={result.device}"],
                    share_id=result.share_id,
                )


class Forgetful:
    """A checkpoint of what need not outlive the process, because the containers do not either."""

    def load(self) -> tuple[PreparedClaims, str]:
        return PreparedClaims(), ""

    def save(self, claims: PreparedClaims) -> None:
        pass
