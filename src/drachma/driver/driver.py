"""Driver: a class with a name and three methods. Everything else is the SDK's.

::

    class Gpus(driver.Driver):
        name = "gpu.example.com"

        async def pools(self):
            return [driver.pool(self.node, [driver.device("gpu-0")])]

        async def prepare(self, claim):
            return {device: driver.edits(env={"GPU": device.name}) for device in claim.devices}

        async def unprepare(self, reference):
            pass

    if __name__ == "__main__":
        driver.main(Gpus)
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Protocol

from drachma import errors
from drachma.driver.claim import AllocatedDevice, Claim
from drachma.driver.edits import DeviceMetadata, Edits, Prepared
from drachma.driver.plugin.contract import ClaimReference, Health
from drachma.driver.pool import Pool


class Host(Protocol):
    """The SDK's side of a running driver."""

    @property
    def node(self) -> str:
        """Node name; empty in a controller."""

    @property
    def state_directory(self) -> pathlib.Path | None:
        """Persistent directory of the driver; None in a controller."""

    def changed(self) -> None:
        """Publish the driver's pools again."""

    def update_metadata(self, reference: ClaimReference, request: str, devices: Iterable[DeviceMetadata]) -> None:
        """Update the metadata files of containers."""


class Driver:
    """Base of all drivers. Methods run on one event loop; call blocking functions by ``asyncio.to_thread``."""

    name: ClassVar[str]
    """DNS name in the vendor's domain: ``gpu.example.com``."""

    config: ClassVar[Any] = None
    """Type of its parameters, best derived from :class:`Config`; None if it has no parameters."""

    concurrency: ClassVar[int] = 1
    """Number of claims that it can prepare or unprepare at the same time."""

    writes_metadata: ClassVar[bool] = False
    """True to give containers files that describe their devices (KEP-5304)."""

    health_seconds: ClassVar[float] = 10.0
    """Seconds between two calls of :meth:`health`."""

    def __init__(self) -> None:
        # Mangled, so that authors may call their own attributes what they like.
        self.__host: Host | None = None

    @property
    def node(self) -> str:
        """Name of the node that it runs on; empty in a controller."""
        return "" if self.__host is None else self.__host.node

    @property
    def state_directory(self) -> pathlib.Path:
        """Directory of the driver on its node, for data that has to survive restarts, updates and reboots.

        It is ``state`` in the driver's directory (``/var/lib/kubelet/plugins/NAME/state``). Two instances may use it
        at the same time while a driver is updated.

        Raises:
            errors.DriverError: there is none in a controller, which is not bound to a node, nor before the driver runs.
        """
        if self.__host is None or self.__host.state_directory is None:
            raise errors.DriverError(f"driver {self.name}: has no state directory: it does not run on a node")
        return self.__host.state_directory

    def changed(self) -> None:
        """Says that :meth:`pools` or :meth:`health` have something new to say. May be called at any time."""
        if self.__host is not None:
            self.__host.changed()

    def update_metadata(self, reference: ClaimReference, request: str, devices: Iterable[DeviceMetadata]) -> None:
        """Tells the containers of a prepared claim something else about its devices, in place of what they read before.

        For metadata that is known only when containers exist, such as the addresses of a network card. Devices of the
        request that are not named keep their metadata. Needs :attr:`writes_metadata`.

        Raises:
            errors.DriverError: the request is not prepared, has no such device, or the driver tells nothing of devices.
            OSError: the file cannot be written.
        """
        if self.__host is None:
            raise errors.DriverError(f"driver {self.name}: has prepared nothing: it does not run on a node")
        self.__host.update_metadata(reference, request, devices)

    def attach(self, host: Host) -> None:
        """Set the host. The SDK calls this before anything else."""
        self.__host = host

    async def start(self) -> None:
        """Open the resources that the driver works with. Called first."""

    async def stop(self) -> None:
        """Close the driver's resources. Called last, also after a failure."""

    async def pools(self) -> Iterable[Pool]:
        """Return the pools of its node. Called again after :meth:`changed`; what is not in it any more is withdrawn."""
        return ()

    async def network_pools(self) -> Iterable[Pool]:
        """Return the pools that belong to no node; asked for in a controller, of which there is one in a cluster."""
        return ()

    async def prepare(self, claim: Claim) -> Mapping[AllocatedDevice, Edits | Prepared]:
        """Prepare the devices of a claim, and return what containers need to use them.

        Called once for a claim, and again only if the result is lost: after a reboot, or without the CDI file.
        A device that is not in the answer needs nothing. An exception is the error of that claim, which is tried again.
        """
        raise NotImplementedError

    async def unprepare(self, reference: ClaimReference) -> None:
        """Undo :meth:`prepare`. Called for every claim whose preparation began, also for one that failed halfway.

        The claim may be gone. An exception is the error of that claim, which is tried again.
        """
        raise NotImplementedError

    async def health(self) -> Iterable[Health]:
        """Return the health of its devices. A device that is not listed counts as unknown after a while."""
        raise NotImplementedError

    @classmethod
    def has_health(cls) -> bool:
        """Return True if it can say how its devices are."""
        return cls.health is not Driver.health
