"""Drivers that are only imagined: they prepare whatever is allocated, in this process and without a socket.

They take the time that annotations of slices say (:mod:`drachma.node.simulatedfaults`), else none. Simulated nodes
have them in place of :class:`drachma.node.plugins.Plugins`.
"""

from __future__ import annotations

from typing import Any, Final

from drachma import errors
from drachma.api import resourceclaim
from drachma.client import Client
from drachma.node import drivers, slicepublishing
from drachma.node.hardware import Machine
from drachma.node.preparation import Get
from drachma.node.preparedclaims import PREPARE, PreparedClaims
from drachma.node.simulatedfaults import SimulatedFaults
from drachma.nodewire.rpc import services
from drachma.runtime import clock

_CLASS: Final = "device"


class SimulatedDrivers:
    """All drivers of a simulated node, by name."""

    def __init__(
        self,
        machine: Machine,
        get: Get,
        *,
        client: Client,
        faults: SimulatedFaults,
        publishers: slicepublishing.SlicePublishers,
        time: clock.Clock,
    ) -> None:
        self.health: Final = faults.health
        self._machine = machine
        self._get = get
        self._publisher: Final = slicepublishing.SlicePublisher(
            machine.name, machine.slices, client=client, shared=publishers
        )
        self._work: Final = _Work(faults, time)

    async def run(self, owner: slicepublishing.Owner, /) -> None:
        """Publishes the devices that the machine has; of a machine that others described, they publish them."""
        if not self._machine.has_any_driver:
            await self._publisher.run(owner)

    def get(self, driver: str) -> SimulatedDriver:
        if driver not in self._machine.drivers and not self._machine.has_any_driver:
            raise errors.NodeError(f"DRA driver {driver} is not registered")
        return SimulatedDriver(driver, self._get, self._work)


class _Work:
    """How long preparing takes; what an agent did not wait for goes on, and is done when it asks again in time."""

    def __init__(self, faults: SimulatedFaults, time: clock.Clock) -> None:
        self._faults: Final = faults
        self._clock: Final = time
        self._ends: Final[dict[tuple[str, str], float]] = {}

    async def take(self, driver: str, claim: resourceclaim.ResourceClaim) -> None:
        """Returns when a claim is prepared.

        Raises:
            errors.NodeError: a node agent would not wait so long.
            errors.InvalidValueError: the time that it takes is said by an annotation that cannot be read.
        """
        assert claim.status.allocation is not None, "whoever calls this has looked"
        results = [
            (each.pool, each.device) for each in claim.status.allocation.devices.results if each.driver == driver
        ]
        seconds = self._faults.prepare_seconds(driver, results)
        if not seconds:
            return
        now = self._clock.monotonic()
        end = self._ends.setdefault((driver, claim.metadata.uid), now + seconds)
        await self._clock.sleep(max(0.0, min(end - now, drivers.CALL_SECONDS)))
        if end - now > drivers.CALL_SECONDS:
            raise errors.NodeError(f"{PREPARE}: rpc error: code = DeadlineExceeded desc = context deadline exceeded")

    def forget(self, driver: str, uid: str) -> None:
        """Of a claim that a driver has undone nothing is left."""
        self._ends.pop((driver, uid), None)


class SimulatedDriver:
    """Answers as a driver does whose devices are always ready, some sooner, some later."""

    def __init__(self, name: str, get: Get, work: _Work) -> None:
        self._name = name
        self._get = get
        self._work = work

    def request(self, method: str, **fields: Any) -> Any:
        return services.DRA[0].method(method).request(**fields)

    async def call(self, method: str, request: Any) -> Any:
        response = services.DRA[0].method(method).response()
        for claim in request.claims:
            answer = response.claims[claim.uid]
            answer.error = ""
            if method == PREPARE:
                await self._prepare(claim, answer)
            else:
                self._work.forget(self._name, claim.uid)
        return response

    async def _prepare(self, asked: Any, answer: Any) -> None:
        claim = await self._get(asked.namespace, asked.name)
        allocation = claim.status.allocation
        if claim.metadata.uid != asked.uid or allocation is None:
            answer.error = f"claim {asked.namespace}/{asked.name}: not the one that was allocated"
            return
        try:
            await self._work.take(self._name, claim)
        except errors.InvalidValueError as error:
            answer.error = str(error)
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
