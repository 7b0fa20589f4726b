"""Registered driver instances and their connections.

A driver may have several instances, as during a rolling update: the newest connected instance is called. If no instance
of a driver has been connected for a while, the driver counts as gone, and its slices are removed. An instance that
returns in time cancels that.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias

import grpc
import grpc.aio

from drachma import errors
from drachma.node import agentmetrics
from drachma.node.drivers import firstalphacalls
from drachma.nodewire.rpc import services
from drachma.runtime.clock import Clock
from drachma.values import quotation

CALL_SECONDS: Final = 45.0
"""Timeout of a call to a driver."""

GONE_SECONDS: Final = 30.0
"""Time without a connection after which a driver counts as gone."""

_ANSWER_SECONDS: Final = 2.0
"""Time that the connection of a deregistered instance stays open for answers under way."""

GoneListener: TypeAlias = Callable[[str], Awaitable[None]]
"""Receives the name of a driver that is gone."""


class DriverCalls(Protocol):
    """Calls of a driver instance, in the version of the DRA service that it has.

    Callers use the messages of one version. The messages of the other versions are the same except for fields that
    they do not know.
    """

    def request(self, method: str, **fields: Any) -> Any:
        """Return the request message of a method."""

    def path(self, method: str) -> str:
        """Return the gRPC path of a method, for metrics."""

    async def call(self, channel: grpc.aio.Channel, method: str, request: Any, *, timeout: float) -> Any:
        """Call a method and return its response.

        Raises:
            grpc.aio.AioRpcError: the call failed.
            errors.NodeError: the claim cannot be described to the driver.
        """


class ServiceCalls:
    """Calls of a DRA service in its own messages."""

    def __init__(self, service: services.Service) -> None:
        self._service: Final = service

    def request(self, method: str, **fields: Any) -> Any:
        return self._service.method(method).request(**fields)

    def path(self, method: str) -> str:
        return self._service.path(method)

    async def call(self, channel: grpc.aio.Channel, method: str, request: Any, *, timeout: float) -> Any:
        return await services.call(channel, self._service, method, request, timeout=timeout)


class DriverInstance:
    """A driver's process behind a socket."""

    def __init__(
        self,
        driver: str,
        endpoint: str,
        *,
        calls: DriverCalls,
        health: services.Service | None,
        resources: services.Service | None,
        metrics: agentmetrics.NodeMetrics,
        clock: Clock,
        call_seconds: float,
    ) -> None:
        self.driver: Final = driver
        self.endpoint: Final = endpoint
        self.health: Final = health
        self.resources: Final = resources
        self.channel: Final = services.channel(endpoint)
        self.is_connected = False
        self._calls: Final = calls
        self._metrics: Final = metrics
        self._clock: Final = clock
        self._call_seconds: Final = call_seconds

    def request(self, method: str, **fields: Any) -> Any:
        """Return the request message of a method."""
        return self._calls.request(method, **fields)

    async def call(self, method: str, request: Any) -> Any:
        """Call a method and return its response. Raises NodeError if the call fails."""
        start = self._clock.monotonic()
        failure: grpc.aio.AioRpcError | None = None
        try:
            return await self._calls.call(self.channel, method, request, timeout=self._call_seconds)
        except grpc.aio.AioRpcError as error:
            failure = error
            raise errors.NodeError(f"{method}: {self._problem(error)}") from None
        finally:
            seconds = self._clock.monotonic() - start
            self._metrics.observe_call(self.driver, self._calls.path(method), services.code(failure), seconds=seconds)

    def _problem(self, error: grpc.aio.AioRpcError) -> str:
        """Return the text of an error as Go words it, with the system's reason if the socket cannot be reached."""
        text = services.problem(error)
        if error.code() is grpc.StatusCode.UNAVAILABLE and (reason := _dial_problem(self.endpoint)):
            detail = quotation.quote(f"transport: Error while dialing: dial unix {self.endpoint}: connect: {reason}")
            return f"{text.partition(' desc = ')[0]} desc = connection error: desc = {detail}"
        return text


class DriverInstances:
    """All driver instances of a node. Created, used and closed on one event loop."""

    def __init__(
        self,
        *,
        metrics: agentmetrics.NodeMetrics,
        clock: Clock,
        on_gone: GoneListener,
        on_join: Callable[[DriverInstance], None] = lambda _: None,
        on_leave: Callable[[DriverInstance], None] = lambda _: None,
        first_alpha: firstalphacalls.FirstAlphaClaims | None = None,
    ) -> None:
        """``on_join`` and ``on_leave`` receive instances that register and deregister.

        Without ``first_alpha``, drivers of the first alpha are refused, as by today's kubelets.
        """
        self._instances: Final[dict[str, list[DriverInstance]]] = {}
        self._watchers: Final[dict[DriverInstance, asyncio.Task[None]]] = {}
        self._absences: Final[dict[str, asyncio.Task[None]]] = {}
        self._metrics: Final = metrics
        self._clock: Final = clock
        self._on_gone: Final = on_gone
        self._on_join: Final = on_join
        self._on_leave: Final = on_leave
        self._first_alpha: Final = first_alpha

    def validate(self, driver: str, endpoint: str, advertised: Sequence[str]) -> None:
        """Check that a driver advertises a supported version of DRA. Raises NodeError otherwise."""
        if self._choose(driver, advertised) is not None:
            return
        supported = " ".join(quotation.quote(service.advertised) for service in services.DRA)
        offered = " ".join(map(quotation.quote, advertised))
        problem = (
            f"none of services supported by the plugin ([{offered}]) are supported by the kubelet ([{supported}])"
            if advertised
            else "empty list of supported gRPC services (aka supported versions)"
        )
        raise errors.NodeError(
            f"invalid supported gRPC versions of DRA driver plugin {driver} at endpoint {endpoint}: {problem}"
        )

    def register(
        self, driver: str, endpoint: str, advertised: Sequence[str], *, call_seconds: float = CALL_SECONDS
    ) -> DriverInstance:
        """Add an instance, which is called from now on. Raises NodeError if it cannot be called."""
        self.validate(driver, endpoint, advertised)
        instances = self._instances.setdefault(driver, [])
        if any(each.endpoint == endpoint for each in instances):
            raise errors.NodeError(f"endpoint {endpoint} already registered for DRA driver plugin {driver}")
        calls = self._choose(driver, advertised)
        assert calls is not None, "it was validated"
        watches = services.NODE_1_30.advertised in advertised or isinstance(calls, firstalphacalls.FirstAlphaCalls)
        instance = DriverInstance(
            driver,
            endpoint,
            calls=calls,
            health=next((each for each in services.HEALTH if each.advertised in advertised), None),
            resources=services.NODE_1_30 if watches else None,
            metrics=self._metrics,
            clock=self._clock,
            call_seconds=call_seconds,
        )
        instances.append(instance)
        self._watchers[instance] = asyncio.create_task(self._watch(instance), name=f"connection to {endpoint}")
        self._on_join(instance)
        return instance

    async def deregister(self, driver: str, endpoint: str) -> None:
        """Remove an instance, if it is registered."""
        instances = self._instances.get(driver, [])
        instance = next((each for each in instances if each.endpoint == endpoint), None)
        if instance is None:
            return
        instances.remove(instance)
        if not instances:
            del self._instances[driver]
        self._on_leave(instance)
        # Calls under way get their answer: a driver that leaves has finished its work.
        await self._disconnect(instance, grace=_ANSWER_SECONDS)
        self._track_absence(driver)

    def get(self, driver: str) -> DriverInstance:
        """Return the newest connected instance, or the newest if none is connected. Raises NodeError without any."""
        instances = self._instances.get(driver)
        if not instances:
            raise errors.NodeError(f"DRA driver {driver} is not registered")
        return next((each for each in reversed(instances) if each.is_connected), instances[-1])

    def instances(self, driver: str) -> tuple[DriverInstance, ...]:
        """Return all instances of a driver, the newest last."""
        return tuple(self._instances.get(driver, ()))

    async def close(self) -> None:
        """Close all connections, without reporting drivers as gone."""
        tasks = [*self._absences.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for instance in list(self._watchers):
            await self._disconnect(instance)
        self._instances.clear()

    def _choose(self, driver: str, advertised: Sequence[str]) -> DriverCalls | None:
        """Return the calls of the first version in a driver's own list that is supported here, if any."""
        for each in advertised:
            for service in services.DRA:
                if service.advertised == each:
                    return ServiceCalls(service)
        if self._first_alpha is not None and any(map(firstalphacalls.is_version, advertised)):
            return firstalphacalls.FirstAlphaCalls(driver, self._first_alpha)
        return None

    async def _disconnect(self, instance: DriverInstance, *, grace: float | None = None) -> None:
        watcher = self._watchers.pop(instance)
        watcher.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watcher
        instance.is_connected = False
        await instance.channel.close(grace=grace)

    async def _watch(self, instance: DriverInstance) -> None:
        """Keep an instance connected, and track the state of its connection."""
        while True:
            state = instance.channel.get_state(try_to_connect=True)
            is_connected = state is grpc.ChannelConnectivity.READY
            if is_connected is not instance.is_connected:
                instance.is_connected = is_connected
                self._track_absence(instance.driver)
            await instance.channel.wait_for_state_change(state)

    def _track_absence(self, driver: str) -> None:
        """Start the timer of a driver without a connected instance, or cancel it if an instance is connected."""
        is_connected = any(each.is_connected for each in self._instances.get(driver, ()))
        absence = self._absences.get(driver)
        if is_connected and absence is not None:
            absence.cancel()
            del self._absences[driver]
        elif not is_connected and absence is None:
            self._absences[driver] = asyncio.create_task(self._wait(driver), name=f"absence of {driver}")

    async def _wait(self, driver: str) -> None:
        await self._clock.sleep(GONE_SECONDS)
        del self._absences[driver]
        await self._on_gone(driver)


def _dial_problem(path: str) -> str:
    """Return the system's reason why a socket cannot be reached; empty if it can."""
    with socket.socket(socket.AF_UNIX) as trial:
        trial.settimeout(0)
        code = trial.connect_ex(path)
    return "" if code in (0, errno.EAGAIN, errno.EINPROGRESS) else os.strerror(code)[:1].lower() + os.strerror(code)[1:]
