"""How devices are that are only imagined: ill where a taint says so, else well.

Their drivers say it as drivers do that report health (KEP-4680), to agents in the same process and without a stream.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from drachma.api import devices, resourceslice
from drachma.node.health import HEALTHY, UNHEALTHY, UNKNOWN, DeviceID, Health, Heard
from drachma.runtime import Informer, informer

_INDEX: Final = "simulated-health"

ILLNESS: Final = devices.DeviceTaint(key="simulation.drachma.dev/unhealthy", effect="NoExecute")
"""The taint of a device that is ill: pods that do not tolerate it have to go."""

_ILL: Final = Health(UNHEALTHY.state, f"the device has the taint {ILLNESS.key}")


class SimulatedHealth:
    """The health of all simulated devices of a process, as their slices tell it."""

    def __init__(self, slices: Informer[resourceslice.ResourceSlice]) -> None:
        self._slices: Final = slices
        self._listeners: Final[dict[str, Heard]] = {}
        slices.cache.add_index(_INDEX, lambda of: (f"{of.spec.driver}/{of.spec.pool.name}",))
        slices.add_handler(
            informer.Handler(
                added=lambda new: self._tell(new, _names(new)), updated=self._updated, deleted=self._deleted
            )
        )

    def listen(self, node: str, heard: Heard) -> None:
        """The agent of a node hears from now on of devices that are not as they were."""
        self._listeners[node] = heard

    def get(self, driver: str, device: DeviceID) -> Health:
        """How a device is; unknown where it is not published."""
        for each in self._slices.cache.by(_INDEX, f"{driver}/{device.pool}"):
            for published in each.spec.devices:
                if published.name == device.device:
                    return _ILL if _is_ill(published) else HEALTHY
        return UNKNOWN

    def _updated(self, old: resourceslice.ResourceSlice, new: resourceslice.ResourceSlice) -> None:
        self._tell(new, (_names(old) ^ _names(new)) | (_ill(old) ^ _ill(new)))

    def _deleted(self, gone: resourceslice.ResourceSlice) -> None:
        self._tell(gone, _names(gone))

    def _tell(self, of: resourceslice.ResourceSlice, names: Iterable[str]) -> None:
        changed = {DeviceID(of.spec.pool.name, name) for name in names}
        if not changed:
            return
        node = of.spec.node_name
        # Pods of any node may have devices of a network.
        listeners = [self._listeners.get(node)] if node else list(self._listeners.values())
        for heard in filter(None, listeners):
            heard(of.spec.driver, changed)


def _names(of: resourceslice.ResourceSlice) -> set[str]:
    return {device.name for device in of.spec.devices}


def _ill(of: resourceslice.ResourceSlice) -> set[str]:
    return {device.name for device in of.spec.devices if _is_ill(device)}


def _is_ill(device: resourceslice.Device) -> bool:
    return any(taint.key == ILLNESS.key for taint in device.taints)
