"""The drivers that have registered with an agent, their connections, and which instance of each is asked.

A driver may have several instances, as during a rolling update: the newest that is connected is asked. Where none of a
driver is connected for a while, whoever made this is told that the driver is gone (its slices go then); one that comes
back in time cancels that.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeAlias

import grpc
import grpc.aio

from drachma import errors
from drachma.node import drivercalls, firstalphacalls, nodemetrics
from drachma.nodewire.rpc import services
from drachma.runtime import clock
from drachma.values import quotation

CALL_SECONDS: Final = 45.0
"""How long a driver may take for a call."""

GONE_SECONDS: Final = 30.0
"""How long a driver may be away before it counts as gone."""

_ANSWER_SECONDS: Final = 2.0
"""How long the connection of a driver that deregisters stays for answers that are under way."""

Gone: TypeAlias = Callable[[str], Awaitable[None]]
"""Is told the name of a driver that is gone."""


class Instance:
    """A driver's process behind a socket."""

    def __init__(
        self,
        driver: str,
        endpoint: str,
        *,
        calls: drivercalls.Calls,
        health: services.Service | None,
        resources: services.Service | None,
        metrics: nodemetrics.NodeMetrics,
        time: clock.Clock,
        call_seconds: float,
    ) -> None:
        self.driver: Final = driver
        self.endpoint: Final = endpoint
        self.health: Final = health
        self.resources: Final = resources
        self.channel: Final = services.channel(endpoint)
        self.is_connected = False
        self._calls = calls
        self._metrics = metrics
        self._clock = time
        self._call_seconds = call_seconds

    def request(self, method: str, **fields: Any) -> Any:
        """The message that a method takes."""
        return self._calls.request(method, **fields)

    async def call(self, method: str, request: Any) -> Any:
        """The driver's answer; a NodeError where there is none."""
        begun = self._clock.monotonic()
        failure: grpc.aio.AioRpcError | None = None
        try:
            return await self._calls.call(self.channel, method, request, timeout=self._call_seconds)
        except grpc.aio.AioRpcError as error:
            failure = error
            raise errors.NodeError(f"{method}: {self._problem(error)}") from None
        finally:
            took = self._clock.monotonic() - begun
            self._metrics.observe_call(self.driver, self._calls.path(method), services.code(failure), seconds=took)

    def _problem(self, error: grpc.aio.AioRpcError) -> str:
        """As Go words it, also where nobody listens: that it says with the system's own reason."""
        text = services.problem(error)
        if error.code() is grpc.StatusCode.UNAVAILABLE and (reason := _dial_problem(self.endpoint)):
            shown = quotation.quote(f"transport: Error while dialing: dial unix {self.endpoint}: connect: {reason}")
            return f"{text.partition(' desc = ')[0]} desc = connection error: desc = {shown}"
        return text


class Drivers:
    """All instances. Made, used and closed on one event loop."""

    def __init__(
        self,
        *,
        metrics: nodemetrics.NodeMetrics,
        time: clock.Clock,
        gone: Gone,
        joined: Callable[[Instance], None] = lambda _: None,
        left: Callable[[Instance], None] = lambda _: None,
        first_alpha: firstalphacalls.FirstAlphaClaims | None = None,
    ) -> None:
        """``joined`` and ``left`` hear of instances that register and deregister.

        Without ``first_alpha``, drivers of the first alpha are refused as by kubelets of today.
        """
        self._instances: Final[dict[str, list[Instance]]] = {}
        self._watchers: Final[dict[Instance, asyncio.Task[None]]] = {}
        self._absences: Final[dict[str, asyncio.Task[None]]] = {}
        self._metrics = metrics
        self._clock = time
        self._gone = gone
        self._joined = joined
        self._left = left
        self._first_alpha = first_alpha

    def validate(self, driver: str, endpoint: str, advertised: Sequence[str]) -> None:
        """Refuses a driver that speaks no version of DRA that is known here with a NodeError."""
        if self._choose(driver, advertised) is not None:
            return
        known = " ".join(quotation.quote(service.advertised) for service in services.DRA)
        offered = " ".join(map(quotation.quote, advertised))
        problem = (
            f"none of services supported by the plugin ([{offered}]) are supported by the kubelet ([{known}])"
            if advertised
            else "empty list of supported gRPC services (aka supported versions)"
        )
        raise errors.NodeError(
            f"invalid supported gRPC versions of DRA driver plugin {driver} at endpoint {endpoint}: {problem}"
        )

    def register(
        self, driver: str, endpoint: str, advertised: Sequence[str], *, call_seconds: float = CALL_SECONDS
    ) -> Instance:
        """A new instance, which is asked from now on; a NodeError where it is none that can be asked."""
        self.validate(driver, endpoint, advertised)
        instances = self._instances.setdefault(driver, [])
        if any(each.endpoint == endpoint for each in instances):
            raise errors.NodeError(f"endpoint {endpoint} already registered for DRA driver plugin {driver}")
        calls = self._choose(driver, advertised)
        assert calls is not None, "it was validated"
        watches = services.NODE_1_30.advertised in advertised or isinstance(calls, firstalphacalls.FirstAlphaCalls)
        instance = Instance(
            driver,
            endpoint,
            calls=calls,
            health=next((each for each in services.HEALTH if each.advertised in advertised), None),
            resources=services.NODE_1_30 if watches else None,
            metrics=self._metrics,
            time=self._clock,
            call_seconds=call_seconds,
        )
        instances.append(instance)
        self._watchers[instance] = asyncio.create_task(self._watch(instance), name=f"connection to {endpoint}")
        self._joined(instance)
        return instance

    async def deregister(self, driver: str, endpoint: str) -> None:
        """Forgets an instance, if it is known."""
        instances = self._instances.get(driver, [])
        instance = next((each for each in instances if each.endpoint == endpoint), None)
        if instance is None:
            return
        instances.remove(instance)
        if not instances:
            del self._instances[driver]
        self._left(instance)
        # A call whose answer is under way ends well: a driver that goes has finished what it was asked.
        await self._disconnect(instance, grace=_ANSWER_SECONDS)
        self._look_for(driver)

    def get(self, driver: str) -> Instance:
        """The instance to ask: the newest that is connected, else the newest; a NodeError where there is none."""
        instances = self._instances.get(driver)
        if not instances:
            raise errors.NodeError(f"DRA driver {driver} is not registered")
        return next((each for each in reversed(instances) if each.is_connected), instances[-1])

    def instances(self, driver: str) -> tuple[Instance, ...]:
        """All instances of a driver, the newest last."""
        return tuple(self._instances.get(driver, ()))

    async def close(self) -> None:
        """Ends all connections; nobody is told that a driver is gone."""
        tasks = [*self._absences.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for instance in list(self._watchers):
            await self._disconnect(instance)
        self._instances.clear()

    def _choose(self, driver: str, advertised: Sequence[str]) -> drivercalls.Calls | None:
        """How a driver is called: by the first version in its own list that is known here, if there is one."""
        for each in advertised:
            for service in services.DRA:
                if service.advertised == each:
                    return drivercalls.ServiceCalls(service)
        if self._first_alpha is not None and any(map(firstalphacalls.is_version, advertised)):
            return firstalphacalls.FirstAlphaCalls(driver, self._first_alpha)
        return None

    async def _disconnect(self, instance: Instance, *, grace: float | None = None) -> None:
        watcher = self._watchers.pop(instance)
        watcher.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watcher
        instance.is_connected = False
        await instance.channel.close(grace=grace)

    async def _watch(self, instance: Instance) -> None:
        """Keeps an instance connected, and knows whether it is."""
        while True:
            state = instance.channel.get_state(try_to_connect=True)
            is_connected = state is grpc.ChannelConnectivity.READY
            if is_connected is not instance.is_connected:
                instance.is_connected = is_connected
                self._look_for(instance.driver)
            await instance.channel.wait_for_state_change(state)

    def _look_for(self, driver: str) -> None:
        """Begins to wait for a driver that is not there, or ends that."""
        is_there = any(each.is_connected for each in self._instances.get(driver, ()))
        absence = self._absences.get(driver)
        if is_there and absence is not None:
            absence.cancel()
            del self._absences[driver]
        elif not is_there and absence is None:
            self._absences[driver] = asyncio.create_task(self._wait(driver), name=f"absence of {driver}")

    async def _wait(self, driver: str) -> None:
        await self._clock.sleep(GONE_SECONDS)
        del self._absences[driver]
        await self._gone(driver)


def _dial_problem(path: str) -> str:
    """Why nobody can be reached behind a socket, in the system's words; empty where somebody can."""
    with socket.socket(socket.AF_UNIX) as trial:
        trial.settimeout(0)
        code = trial.connect_ex(path)
    return "" if code in (0, errno.EAGAIN, errno.EINPROGRESS) else os.strerror(code)[:1].lower() + os.strerror(code)[1:]
