"""Rules about the health that a driver reports for its devices."""

from __future__ import annotations

import asyncio
from typing import Final

import grpc
import grpc.aio

from drachma.driver.conformance import acts
from drachma.driver.conformance.check import Check, FailureError, SkipError
from drachma.driver.conformance.stage import Stage
from drachma.nodewire.rpc import services

_HEALTH_SECONDS: Final = 35.0


async def _health(stage: Stage) -> None:
    if not any(service.advertised in stage.info.versions for service in services.HEALTH):
        raise SkipError("the driver does not offer it")
    published = {(each.pool, each.device.name) for each in await acts.some_devices(stage, 10_000)}
    async with stage.health() as reports:
        try:
            async with asyncio.timeout(_HEALTH_SECONDS):
                report = await anext(aiter(reports), None)
        except TimeoutError:
            raise FailureError(
                f"no report within {_HEALTH_SECONDS:.0f} s, after which devices count as unknown"
            ) from None
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                raise SkipError("the driver offers it and says that it is not supported") from None
            raise FailureError(services.problem(error)) from error
    if report is None:
        raise FailureError("the stream ends before the first report")
    strangers = {(each.device.pool_name, each.device.device_name) for each in report.devices} - published
    if strangers:
        names = ", ".join(f"{pool}/{device}" for pool, device in sorted(strangers))
        raise FailureError(f"reports are about devices that are not published: {names}")


CHECKS: Final = (
    Check(
        "health",
        "reports come within the time after which devices count as unknown, about published devices",
        "KEP-4680",
        _health,
    ),
)
