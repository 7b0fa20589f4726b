"""What a driver is: a class with a name and three methods. Everything else is the SDK's.

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
    """What a driver runs in: the SDK's side of it."""

    @property
    def node(self) -> str:
        """The node; empty in a controller."""

    @property
    def state_directory(self) -> pathlib.Path | None:
        """A directory that is there, and stays; None in a controller."""

    def changed(self) -> None:
        """The driver has something new to say."""

    def update_metadata(self, reference: ClaimReference, request: str, devices: Iterable[DeviceMetadata]) -> None:
        """The driver has something new to say to containers."""


class Driver:
    """The base of all drivers. Methods run on one event loop; what blocks belongs into ``asyncio.to_thread``."""

    name: ClassVar[str]
    """Like a DNS domain, of the vendor's: ``gpu.example.com``."""

    config: ClassVar[Any] = None
    """The type of its parameters, best derived from :class:`Config`; None where it takes none."""

    concurrency: ClassVar[int] = 1
    """How many claims it can prepare or unprepare at the same time."""

    writes_metadata: ClassVar[bool] = False
    """Whether containers get files that tell what they were given (KEP-5304)."""

    health_seconds: ClassVar[float] = 10.0
    """How often it is asked how its devices are."""

    def __init__(self) -> None:
        # Mangled, so that authors may call their own attributes what they like.
        self.__host: Host | None = None

    @property
    def node(self) -> str:
        """The node that it runs on; empty in a controller."""
        return "" if self.__host is None else self.__host.node

    @property
    def state_directory(self) -> pathlib.Path:
        """A directory of the driver's own on its node, for what has to outlive restarts, updates and reboots.

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

        For what is known only once there are containers, such as the addresses of a network card. Devices of the
        request that are not named keep what was told of them. Takes :attr:`writes_metadata`.

        Raises:
            errors.DriverError: the request is not prepared, has no such device, or the driver tells nothing of devices.
            OSError: the file cannot be written.
        """
        if self.__host is None:
            raise errors.DriverError(f"driver {self.name}: has prepared nothing: it does not run on a node")
        self.__host.update_metadata(reference, request, devices)

    def attach(self, host: Host) -> None:
        """What it runs in; called by the SDK before anything else."""
        self.__host = host

    async def start(self) -> None:
        """Comes first: the place to open what the driver works with."""

    async def stop(self) -> None:
        """Comes last, also after a failure."""

    async def pools(self) -> Iterable[Pool]:
        """The pools of its node. Called again after :meth:`changed`; what is not in it any more is withdrawn."""
        return ()

    async def network_pools(self) -> Iterable[Pool]:
        """The pools that belong to no node; asked for in a controller, of which there is one in a cluster."""
        return ()

    async def prepare(self, claim: Claim) -> Mapping[AllocatedDevice, Edits | Prepared]:
        """Makes the devices of a claim ready, and says what containers need to use them.

        Called once for a claim, and again only where what came of it is lost: after a reboot, or without the CDI file.
        A device that is not in the answer needs nothing. What is raised is the error of that claim; it is tried again.
        """
        raise NotImplementedError

    async def unprepare(self, reference: ClaimReference) -> None:
        """Undoes it. Called for every claim whose preparation began, also for one that failed halfway.

        The claim may be gone. What is raised is the error of that claim; it is tried again.
        """
        raise NotImplementedError

    async def health(self) -> Iterable[Health]:
        """How its devices are. A device that is not told of counts as unknown after a while."""
        raise NotImplementedError

    @classmethod
    def has_health(cls) -> bool:
        """Whether it can say how its devices are."""
        return cls.health is not Driver.health
