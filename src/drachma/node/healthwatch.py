"""Listening to what drivers say about the health of their devices, one stream for each instance that offers it."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import grpc
import grpc.aio

from drachma.node import drivers
from drachma.node.health import DeviceHealth, Heard
from drachma.nodewire.rpc import services
from drachma.runtime import clock

_log = logging.getLogger(__name__)

_METHOD: Final = "NodeWatchResources"
_RETRY_SECONDS: Final = 5.0


class HealthWatch:
    """Opens a stream for every instance, and opens it again when it ends."""

    def __init__(self, health: DeviceHealth, *, heard: Heard, time: clock.Clock) -> None:
        self._health = health
        self._heard = heard
        self._clock = time
        self._tasks: Final[dict[drivers.Instance, asyncio.Task[None]]] = {}

    def join(self, instance: drivers.Instance) -> None:
        """Listens to an instance from now on, if it has something to say."""
        if instance.health is not None:
            task = asyncio.create_task(self._listen(instance, instance.health), name=f"health of {instance.endpoint}")
            self._tasks[instance] = task

    def leave(self, instance: drivers.Instance) -> None:
        """Listens no longer."""
        task = self._tasks.pop(instance, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Ends all streams."""
        tasks = list(self._tasks.values())
        for instance in list(self._tasks):
            self.leave(instance)
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self, instance: drivers.Instance, service: services.Service) -> None:
        driver = instance.driver
        while True:
            try:
                async for reports in services.stream(
                    instance.channel, service, _METHOD, service.method(_METHOD).request()
                ):
                    self._heard(driver, self._health.update(driver, reports.devices))
            except grpc.aio.AioRpcError as error:
                if error.code() is grpc.StatusCode.UNIMPLEMENTED:
                    _log.info("driver %s does not report the health of devices", driver)
                    return
                _log.warning("driver %s: health of devices: %s", driver, services.problem(error))
            finally:
                self._heard(driver, self._health.forget(driver))
            await self._clock.sleep(_RETRY_SECONDS)
