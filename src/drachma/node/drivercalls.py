"""How an instance of a driver is called: in the version of the DRA service that it has.

Whoever calls writes and reads messages of one version; where a driver has another one whose messages are the same but
for what it does not know, that makes no difference. Drivers of the first alpha are called by
:mod:`drachma.node.firstalphacalls`.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import grpc.aio

from drachma.nodewire.rpc import services


class Calls(Protocol):
    """The calls of one instance."""

    def request(self, method: str, **fields: Any) -> Any:
        """The message that a method takes."""

    def path(self, method: str) -> str:
        """Where a method is called, for metrics."""

    async def call(self, channel: grpc.aio.Channel, method: str, request: Any, *, timeout: float) -> Any:
        """The answer of a method.

        Raises:
            grpc.aio.AioRpcError: there is none.
            errors.NodeError: the claim cannot be told to the driver.
        """


class ServiceCalls:
    """Calls of a service in its own messages."""

    def __init__(self, service: services.Service) -> None:
        self._service: Final = service

    def request(self, method: str, **fields: Any) -> Any:
        return self._service.method(method).request(**fields)

    def path(self, method: str) -> str:
        return self._service.path(method)

    async def call(self, channel: grpc.aio.Channel, method: str, request: Any, *, timeout: float) -> Any:
        return await services.call(channel, self._service, method, request, timeout=timeout)
