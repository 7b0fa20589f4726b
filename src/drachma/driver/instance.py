"""One running driver: its sockets, slices, checkpoint and status.

A node's instance serves a node agent and publishes the node's pools; a controller, of which there is one in a cluster,
publishes the pools that belong to no node. The caller passes the client.
"""

from __future__ import annotations

import asyncio
import logging
import pathlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

import msgspec

from drachma import errors
from drachma.api import resourceclaim
from drachma.client import backoff
from drachma.driver.driver import Driver
from drachma.driver.edits import DeviceMetadata
from drachma.driver.plugin import socketnames
from drachma.driver.plugin.calls import Calls
from drachma.driver.plugin.contract import ClaimReference
from drachma.driver.plugin.serialization import Serialization
from drachma.driver.plugin.server import Endpoints, Offer, PluginServer
from drachma.driver.pool import Pool
from drachma.driver.preparing.checkpoint import Checkpoint
from drachma.driver.preparing.claimfiles import ClaimFiles
from drachma.driver.preparing.preparer import BOUNDS, Preparer
from drachma.driver.publishing import plan, splitting
from drachma.driver.publishing.availability import Availability
from drachma.driver.publishing.layout import Layout, Owner
from drachma.driver.publishing.publisher import Problem, Publisher
from drachma.runtime import Surroundings, measures
from drachma.runtime.clock import sleep_unless
from drachma.validation import formats
from drachma.validation.path import Path

_log = logging.getLogger(__name__)

_GRACE_SECONDS: Final = 30.0
"""Seconds that running calls have when a driver stops."""

_FIRST_POOLS_SECONDS: Final = 20.0
"""Seconds that a call waits for the pools of a driver that has just started."""

_STATE_FOLDER: Final = "state"
_PAUSES: Final = backoff.Backoff(initial=1.0, maximum=60.0)
"""Before a driver that could not say what it has is asked again."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Directories of a driver: ``plugins`` is its own, the other two are shared by all drivers."""

    node: str
    plugins: pathlib.Path
    registry: pathlib.Path
    cdi: pathlib.Path
    pod_uid: str = ""
    """Set where two instances may run side by side: sockets are named after it, and they agree by a lock."""
    boot_id_file: pathlib.Path = pathlib.Path("/proc/sys/kernel/random/boot_id")

    @property
    def endpoints(self) -> Endpoints:
        """Return the sockets of the driver that the own directory is named after."""
        driver = self.plugins.name
        name = (
            socketnames.rolling_registration(self.registry, driver, pod_uid=self.pod_uid)
            if self.pod_uid
            else socketnames.registration(driver)
        )
        return Endpoints(dra=self.plugins / socketnames.dra(self.pod_uid), registration=self.registry / name)


def check_name(name: str) -> None:
    """Refuses a name that no driver can have with a DriverError."""
    for problem in formats.driver_name(name, Path("name")):
        raise errors.DriverError(f"driver {name!r}: {problem.body}")


class NodeInstance:
    """A driver on a node."""

    def __init__(self, driver: Driver, around: Surroundings, *, place: Place) -> None:
        check_name(driver.name)
        self._driver: Final = driver
        self._around: Final = around
        owner = Owner(name=place.node)
        self._publishing: Final = _Publishing(driver.name, around, ask=driver.pools, owner=owner)
        has_pools = type(driver).pools is not Driver.pools
        self._availability: Final = Availability(
            driver.name,
            place.node,
            client=around.client,
            own_layouts=self._publishing.layouts if has_pools else None,
        )
        lock_path = place.plugins / "serialize.lock" if place.pod_uid else None
        lock = Serialization(lock_path, time=around.clock)
        is_serial = driver.concurrency == 1
        self._preparer: Final = Preparer(
            driver,
            checkpoint=Checkpoint(place.plugins),
            files=ClaimFiles(driver.name, cdi=place.cdi, data=place.plugins, has_metadata=driver.writes_metadata),
            availability=self._availability,
            lock=None if is_serial else lock,
            boot_id=place.boot_id_file.read_text(encoding="utf-8").strip(),
            durations=measures.Histograms(
                "drachma_driver_operation_duration_seconds",
                "How long claims took.",
                ("operation", "is_error"),
                bounds=BOUNDS,
                registry=around.registry,
            ),
            time=around.clock,
        )
        self._server: Final = PluginServer(
            driver.name,
            Calls(self._preparer, self._claim, serialized=lock if is_serial else None),
            endpoints=place.endpoints,
            offer=Offer(health=driver.has_health()),
        )
        self.node: Final = place.node
        self.state_directory: Final = place.plugins / _STATE_FOLDER
        driver.attach(self)

    @property
    def is_ready(self) -> bool:
        """True if pods can use it: its slices are visible, and a node agent has registered it.

        Then an older instance may stop without any effect on pods.
        """
        return self.is_visible and self._server.is_registered

    @property
    def is_visible(self) -> bool:
        """True if other clients can see the driver's slices."""
        return self._publishing.is_visible

    async def wait_visible(self) -> None:
        """Returns once they can."""
        await self._publishing.wait_visible()

    async def run(self) -> None:
        """Runs until cancelled; the informers run already. Slices stay: others may take over, or the agent cleans up.

        Raises:
            errors.DriverError: a socket or the state directory cannot be made.
        """
        try:
            self.state_directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise errors.DriverError(f"driver {self._driver.name}: state directory: {error}") from error
        await self._driver.start()
        try:
            try:
                await self._server.start()
                await self._publishing.run()
            finally:
                await self._server.stop(grace_seconds=_GRACE_SECONDS)
        finally:
            await self._driver.stop()

    def changed(self) -> None:
        """See :class:`drachma.driver.driver.Host`."""
        self._publishing.changed()
        self._preparer.changed()

    def update_metadata(self, reference: ClaimReference, request: str, devices: Iterable[DeviceMetadata]) -> None:
        """See :class:`drachma.driver.driver.Host`."""
        self._preparer.update_metadata(reference, request, devices)

    async def _claim(self, namespace: str, name: str) -> resourceclaim.ResourceClaim:
        try:
            return await self._around.client.get(resourceclaim.ResourceClaim, name, namespace=namespace)
        except errors.ObjectNotFoundError as error:
            raise errors.UnknownClaimError(str(error)) from error


class ControllerInstance:
    """A driver's pools that belong to no node."""

    node: Final = ""
    state_directory: Final = None

    def __init__(self, driver: Driver, around: Surroundings) -> None:
        check_name(driver.name)
        self._driver: Final = driver
        self._publishing: Final = _Publishing(driver.name, around, ask=driver.network_pools, owner=None)
        driver.attach(self)

    @property
    def is_ready(self) -> bool:
        """True if other clients can see the driver's slices."""
        return self._publishing.is_visible

    async def run(self) -> None:
        """Runs until cancelled; the informers run already."""
        await self._driver.start()
        try:
            await self._publishing.run()
        finally:
            await self._driver.stop()

    def changed(self) -> None:
        """See :class:`drachma.driver.driver.Host`."""
        self._publishing.changed()

    def update_metadata(self, reference: ClaimReference, request: str, devices: Iterable[DeviceMetadata]) -> None:
        """See :class:`drachma.driver.driver.Host`; a controller prepares nothing."""
        raise errors.DriverError(f"claim {reference}, request {request!r}: a controller prepares no claims")


class _Publishing:
    """Asks a driver what it has, whenever it says that this changed, and has it published."""

    def __init__(
        self,
        driver: str,
        around: Surroundings,
        *,
        ask: Callable[[], Awaitable[Iterable[Pool]]],
        owner: Owner | None,
    ) -> None:
        self._name: Final = driver
        self._identity: Final = plan.Identity(driver, owner)
        self._clock: Final = around.clock
        self._ask: Final = ask
        self._publisher: Final = Publisher(around, driver, owner=owner, report=_tell)
        self._pauses: Final = backoff.Pauses(_PAUSES, around.rng)
        self._news: Final = asyncio.Event()
        self._news.set()
        self._layouts: dict[str, Layout] = {}
        self._has_layouts: Final = asyncio.Event()

    def changed(self) -> None:
        self._news.set()

    @property
    def is_visible(self) -> bool:
        return not self._news.is_set() and self._publisher.is_visible

    async def wait_visible(self) -> None:
        await self._publisher.wait_visible()

    async def layouts(self) -> dict[str, Layout]:
        """Return the newest pools of the driver. Raises DriverError if it has not said them yet, for a while."""
        await sleep_unless(self._has_layouts, _FIRST_POOLS_SECONDS, clock=self._clock)
        if not self._has_layouts.is_set():
            raise errors.DriverError(f"driver {self._name}: its devices are not known yet")
        return self._layouts

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._publisher.run(), name=f"slices of {self._name}")
            group.create_task(self._follow(), name=f"pools of {self._name}")

    async def _follow(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                pools = await self._ask()
                layouts = splitting.layouts(self._identity, pools, now=self._clock.utc())
            except Exception as error:
                # What is published stays as it is: a driver that cannot look has not lost its devices.
                is_known = isinstance(error, errors.DrachmaError)
                _log.error("driver %s: pools: %s", self._name, error, exc_info=None if is_known else error)
                self._news.set()
                await self._clock.sleep(self._pauses.next())
                continue
            self._pauses.reset()
            self._layouts = layouts
            self._has_layouts.set()
            self._publisher.publish(layouts)


def _tell(problem: Problem) -> None:
    if isinstance(problem.error, errors.DroppedFieldsError):
        _log.error("%s", problem, extra={"features": problem.error.features})
    else:
        _log.warning("%s", problem)
