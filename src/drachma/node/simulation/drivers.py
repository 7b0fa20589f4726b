"""Simulated drivers: they prepare allocated devices in this process and without a socket.

Like every driver, they check first that the devices are published for the node and that no other claim has them
exclusively (:mod:`.devicechecks`). Preparation takes the time that annotations of slices give (:mod:`.faults`), or
none. Simulated nodes have these drivers instead of :class:`drachma.node.drivers.plugins.Plugins`.
"""

from __future__ import annotations

import pathlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from drachma import errors
from drachma.api import resourceclaim
from drachma.client import Client
from drachma.node import agentmetrics
from drachma.node.claims.preparation import GetClaim
from drachma.node.claims.preparedclaims import PREPARE, PreparedClaims
from drachma.node.drivers import instances
from drachma.node.registration.machine import Machine
from drachma.node.simulation import devicechecks, slicepublishing
from drachma.node.simulation.faults import SimulatedFaults
from drachma.nodewire.cdi import files, spec
from drachma.nodewire.rpc import services
from drachma.runtime.clock import Clock

_CLASS: Final = "device"

_NO_NAME = re.compile(r"[^A-Z0-9]+")


class SimulatedDrivers:
    """All drivers of a simulated node."""

    def __init__(
        self,
        machine: Machine,
        get_claim: GetClaim,
        *,
        client: Client,
        faults: SimulatedFaults,
        publishers: slicepublishing.SlicePublishers,
        admin: Client,
        metrics: agentmetrics.NodeMetrics,
        clock: Clock,
    ) -> None:
        """``client`` is the node's; ``admin`` may read all slices."""
        self.health: Final = faults.health
        self._owner: slicepublishing.Owner = lambda: None
        self._checks: Final = devicechecks.DeviceChecks(
            machine, publishers, admin=admin, get_node=lambda: self._owner()
        )
        self._machine = machine
        self._get_claim = get_claim
        self._publisher: Final = slicepublishing.SlicePublisher(
            machine.name, machine.slices, client=client, publishers=publishers
        )
        self._work: Final = _Work(faults, clock)
        self._metrics: Final = metrics
        self._clock: Final = clock

    async def run(self, owner: slicepublishing.Owner, /) -> None:
        """Publish the devices of the machine. Devices of a pretended node are published by other clients."""
        self._owner = owner
        if not self._machine.has_any_driver:
            await self._publisher.run(owner)

    def get(self, driver: str) -> MeasuredDriver:
        if driver not in self._machine.drivers and not self._machine.has_any_driver:
            raise errors.NodeError(f"DRA driver {driver} is not registered")
        driver_instance = SimulatedDriver(driver, self._get_claim, self._work, self._checks)
        return MeasuredDriver(driver, driver_instance, metrics=self._metrics, clock=self._clock)


class _Work:
    """Time that preparations take. A preparation continues after the agent's timeout, until the next call."""

    def __init__(self, faults: SimulatedFaults, clock: Clock) -> None:
        self._faults: Final = faults
        self._clock: Final = clock
        self._ends: Final[dict[tuple[str, str], float]] = {}

    async def take(self, driver: str, claim: resourceclaim.ResourceClaim) -> None:
        """Return when a claim is prepared.

        Raises:
            errors.NodeError: the preparation takes longer than the timeout of the agent's call.
            errors.InvalidValueError: the annotation with the time is invalid.
        """
        assert claim.status.allocation is not None, "the caller has checked"
        results = [
            (each.pool, each.device) for each in claim.status.allocation.devices.results if each.driver == driver
        ]
        seconds = self._faults.prepare_seconds(driver, results)
        if not seconds:
            return
        now = self._clock.monotonic()
        end = self._ends.setdefault((driver, claim.metadata.uid), now + seconds)
        await self._clock.sleep(max(0.0, min(end - now, instances.CALL_SECONDS)))
        if end - now > instances.CALL_SECONDS:
            raise errors.NodeError(f"{PREPARE}: rpc error: code = DeadlineExceeded desc = context deadline exceeded")

    def forget(self, driver: str, uid: str) -> None:
        """Forget the preparation of a claim that is unprepared."""
        self._ends.pop((driver, uid), None)


class MeasuredDriver:
    """Simulated driver whose calls are measured like calls over gRPC."""

    def __init__(self, name: str, driver: SimulatedDriver, *, metrics: agentmetrics.NodeMetrics, clock: Clock) -> None:
        self._name: Final = name
        self._driver: Final = driver
        self._metrics: Final = metrics
        self._clock: Final = clock

    def request(self, method: str, **fields: Any) -> Any:
        return self._driver.request(method, **fields)

    async def call(self, method: str, request: Any) -> Any:
        start = self._clock.monotonic()
        code = "DeadlineExceeded"
        try:
            response = await self._driver.call(method, request)
            code = "OK"
            return response
        finally:
            seconds = self._clock.monotonic() - start
            self._metrics.observe_call(self._name, services.DRA[0].path(method), code, seconds=seconds)


class SimulatedDriver:
    """Driver that prepares all devices that it has, some after a delay."""

    def __init__(self, name: str, get_claim: GetClaim, work: _Work, checks: devicechecks.DeviceChecks) -> None:
        self._name = name
        self._get_claim = get_claim
        self._work = work
        self._checks = checks

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
                self._checks.release(self._name, claim.uid)
        return response

    async def _prepare(self, reference: Any, answer: Any) -> None:
        claim = await self._get_claim(reference.namespace, reference.name)
        allocation = claim.status.allocation
        if claim.metadata.uid != reference.uid or allocation is None:
            answer.error = f"claim {reference.namespace}/{reference.name}: not the one that was allocated"
            return
        try:
            await self._checks.hold(self._name, claim)
            await self._work.take(self._name, claim)
        except (errors.InvalidValueError, errors.DriverError) as error:
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


class NoCheckpoint:
    """Checkpoint of simulated nodes: like their containers, prepared claims do not outlive the process."""

    def load(self) -> tuple[PreparedClaims, str]:
        return PreparedClaims(), ""

    def save(self, claims: PreparedClaims) -> None:
        pass


def write_cdi_files(slices: Iterable[Mapping[str, Any]], folder: pathlib.Path) -> None:
    """Write CDI files that give containers a variable for each of their simulated devices.

    Machines with a device of the same name share its entry.

    Raises:
        OSError: the folder cannot be written.
    """
    devices: dict[str, set[str]] = {}
    for each in slices:
        names = devices.setdefault(str(each["spec"]["driver"]), set())
        names.update(str(device["name"]) for device in each["spec"].get("devices") or ())
    for driver, names in devices.items():
        kind = f"{driver}/device"
        content = spec.Spec(kind=kind, devices=tuple(_device(driver, name) for name in sorted(names)))
        files.write(folder / files.file_name(kind), content)


def _device(driver: str, name: str) -> spec.Device:
    variable = f"SIMULATED_DEVICE_{_NO_NAME.sub('_', name.upper())}={driver}/{name}"
    return spec.Device(name=name, container_edits=spec.ContainerEdits(env=(variable,)))
