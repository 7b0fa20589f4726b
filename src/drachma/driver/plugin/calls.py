"""The services of a driver: from gRPC messages to what a driver does, and back.

Claims are fetched and checked before the driver's turn comes: it receives only claims that exist under the given
uid and are allocated. What fails for all claims of a call ends it with a status of UNKNOWN, as Go's errors do, and a
claim that does not exist with NOT_FOUND, as KEP-4381 asks.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

import grpc
import grpc.aio

from drachma import errors
from drachma.api import resourceclaim
from drachma.driver.plugin.contract import ClaimReference, Health, Plugin, PreparedDevice
from drachma.driver.plugin.serialization import Serialization
from drachma.nodewire import deviceuse
from drachma.nodewire.rpc import services

_log = logging.getLogger(__name__)

GetClaim: TypeAlias = Callable[[str, str], Awaitable[resourceclaim.ResourceClaim]]
"""Fetches a claim by namespace and name. Raises UnknownClaimError if it does not exist."""


class Calls:
    """All services of one driver; ``serialized`` lets one call after the other through, or None all at once."""

    def __init__(self, plugin: Plugin, get_claim: GetClaim, *, serialized: Serialization | None) -> None:
        self._plugin: Final = plugin
        self._get_claim: Final = get_claim
        self._serialized: Final = serialized
        self._ending: Final = asyncio.Event()

    def serve(self, server: grpc.aio.Server, advertised: Iterable[str]) -> None:
        """Has a server answer for the services that are advertised."""
        for service in (*services.DRA, *services.HEALTH):
            if service.advertised in advertised:
                services.serve(
                    server,
                    service,
                    {method.name: self._handler(service.method(method.name)) for method in service.methods},
                )

    def _handler(self, method: services.Method) -> services.Handler:
        if method.is_stream:
            return self._watcher(method)
        answer = self._prepare if method.name == "NodePrepareResources" else self._unprepare

        async def handle(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
            try:
                return await answer(request, method)
            except errors.DrachmaError as error:
                _log.warning("%s: %s", method.name, error)
                is_unknown_claim = isinstance(error, errors.UnknownClaimError)
                code = grpc.StatusCode.NOT_FOUND if is_unknown_claim else grpc.StatusCode.UNKNOWN
                await context.abort(code, str(error))

        return handle

    async def _prepare(self, request: Any, method: services.Method) -> Any:
        claims = [await self._claim(reference) for reference in request.claims]
        async with self._turn():
            try:
                results = await self._plugin.prepare(claims)
            except Exception as error:
                raise errors.DriverError(f"prepare resource claims: {error}") from error
        response = method.response()
        for uid, result in results.items():
            answer = response.claims[uid]
            if isinstance(result, Exception):
                answer.error = _text(result)
            else:
                for device in result:
                    _add(answer.devices.add(), device)
        return response

    async def _unprepare(self, request: Any, method: services.Method) -> Any:
        references = [
            ClaimReference(reference.namespace, reference.name, reference.uid) for reference in request.claims
        ]
        async with self._turn():
            try:
                results = await self._plugin.unprepare(references)
            except Exception as error:
                raise errors.DriverError(f"unprepare resource claims: {error}") from error
        response = method.response()
        for uid, problem in results.items():
            response.claims[uid].error = "" if problem is None else _text(problem)
        return response

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        if self._serialized is None:
            yield
            return
        async with self._serialized.held():
            yield

    async def _claim(self, reference: Any) -> resourceclaim.ResourceClaim:
        label = f"{reference.namespace}/{reference.name}"
        try:
            claim = await self._get_claim(reference.namespace, reference.name)
        except errors.UnknownClaimError as error:
            raise errors.UnknownClaimError(f"get resource claims: retrieve claim {label}: {error}") from error
        except errors.DrachmaError as error:
            raise errors.DriverError(f"get resource claims: retrieve claim {label}: {error}") from error
        if claim.status.allocation is None:
            raise errors.DriverError(f"get resource claims: claim {label} not allocated")
        if claim.metadata.uid != reference.uid:
            raise errors.DriverError(f"get resource claims: claim {label} got replaced")
        return claim

    def _watcher(self, method: services.Method) -> services.Handler:
        async def watch(_request: Any, _context: Any) -> AsyncIterator[Any]:
            async with contextlib.aclosing(self._reports()) as all_reports:
                async for reports in all_reports:
                    response = method.response()
                    for report in reports:
                        _report(response.devices.add(), report)
                    yield response

        return watch

    async def _reports(self) -> AsyncGenerator[Sequence[Health], None]:
        """Yield the health of devices until the driver's stream ends or streams are closed."""
        source = aiter(self._plugin.watch_health())
        ending = asyncio.ensure_future(self._ending.wait())
        try:
            while not ending.done():
                following = asyncio.ensure_future(anext(source, None))
                await asyncio.wait({following, ending}, return_when=asyncio.FIRST_COMPLETED)
                if not following.done():
                    following.cancel()
                    return
                reports = following.result()
                if reports is None:
                    return
                yield reports
        finally:
            ending.cancel()

    def end_streams(self) -> None:
        """End the streams that otherwise last as long as their readers."""
        self._ending.set()


def _text(problem: Exception) -> str:
    """Return the message of an error; never empty, since an empty message means success."""
    text = str(problem) or type(problem).__name__
    if isinstance(problem, errors.DeviceUnavailableError) and not deviceuse.is_unavailable(text):
        return f"{deviceuse.UNAVAILABLE}{text}"
    return text


def _add(message: Any, device: PreparedDevice) -> None:
    # Node agents compare names of requests as they are, and know nothing of subrequests.
    message.request_names.extend(request.partition("/")[0] for request in device.requests)
    message.pool_name = device.pool
    message.device_name = device.device
    message.cdi_device_ids.extend(device.cdi_device_ids)
    if device.share_id is not None and "share_id" in message.DESCRIPTOR.fields_by_name:
        message.share_id = device.share_id


def _report(message: Any, report: Health) -> None:
    message.device.pool_name = report.pool
    message.device.device_name = report.device
    message.health = report.status.value
    message.message = report.message
    message.health_check_timeout_seconds = report.timeout // dt.timedelta(seconds=1)
    if report.updated is not None:
        message.last_updated_time = int(report.updated.timestamp())
