"""The two sockets of a driver: one on which it is called, and one by which node agents find it.

The first is ready before the second is there. When it ends, calls that are under way get some time to come to their
end; both files are removed.
"""

from __future__ import annotations

import logging
import pathlib
from typing import Any, Final

import grpc
import grpc.aio
import msgspec

from drachma import errors
from drachma.driver.plugin.calls import Calls
from drachma.nodewire.rpc import services

_log = logging.getLogger(__name__)

_TYPE: Final = "DRAPlugin"


class Endpoints(msgspec.Struct, frozen=True, kw_only=True):
    """Paths of the sockets."""

    dra: pathlib.Path
    registration: pathlib.Path


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """Which services are advertised and served: all but what is switched off."""

    dra_v1: bool = True
    dra_v1beta1: bool = True
    health: bool = True

    @property
    def advertised(self) -> tuple[str, ...]:
        """Their names, in the order in which node agents choose.

        Raises:
            errors.DriverError: nothing is left by which a node agent could use the driver.
        """
        flags = zip(services.DRA, (self.dra_v1, self.dra_v1beta1), strict=True)
        dra = [service.advertised for service, is_on in flags if is_on]
        if not dra:
            raise errors.DriverError("no supported DRA gRPC API is implemented and enabled")
        return (*dra, *(service.advertised for service in services.HEALTH if self.health))


class PluginServer:
    """A driver's sockets. Started and stopped once."""

    def __init__(self, driver: str, calls: Calls, *, endpoints: Endpoints, offer: Offer) -> None:
        """See :attr:`Offer.advertised` for what may be raised."""
        self._driver: Final = driver
        self._endpoints: Final = endpoints
        self._advertised: Final = offer.advertised
        self._calls: Final = calls
        self._dra: grpc.aio.Server | None = None
        self._registrar: grpc.aio.Server | None = None
        self.is_registered = False
        """True once a node agent has registered the driver."""

    async def start(self) -> None:
        """Listens on both sockets; files that others left are removed.

        Raises:
            errors.DriverError: a socket cannot be made.
        """
        self._dra = grpc.aio.server()
        self._calls.serve(self._dra, self._advertised)
        await _listen(self._dra, self._endpoints.dra)
        self._registrar = grpc.aio.server()
        handlers: dict[str, services.Handler] = {"GetInfo": self._info, "NotifyRegistrationStatus": self._notified}
        services.serve(self._registrar, services.REGISTRATION, handlers)
        await _listen(self._registrar, self._endpoints.registration)

    async def stop(self, *, grace_seconds: float = 0.0) -> None:
        """Ends both servers, the one that is called first; calls under way may take so long."""
        self._calls.end_streams()
        for server, path in ((self._dra, self._endpoints.dra), (self._registrar, self._endpoints.registration)):
            if server is not None:
                await server.stop(grace=grace_seconds or None)
                path.unlink(missing_ok=True)
        self._dra = self._registrar = None
        self.is_registered = False

    async def _info(self, _request: Any, _context: Any) -> Any:
        return services.REGISTRATION.method("GetInfo").response(
            type=_TYPE, name=self._driver, endpoint=str(self._endpoints.dra), supported_versions=self._advertised
        )

    async def _notified(self, request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        self.is_registered = request.plugin_registered
        if not request.plugin_registered:
            _log.error("driver %s: a node agent refuses it: %s", self._driver, request.error)
            await context.abort(grpc.StatusCode.UNKNOWN, f"failed registration process: {request.error}")
        _log.info("driver %s: registered", self._driver)
        return services.REGISTRATION.method("NotifyRegistrationStatus").response()


async def _listen(server: grpc.aio.Server, path: pathlib.Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        server.add_insecure_port(f"unix:{path}")
        await server.start()
    except (OSError, RuntimeError) as error:
        raise errors.DriverError(f"listen on {path}: {error}") from error
