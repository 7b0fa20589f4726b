"""A driver for something real that every Linux machine has: the device nodes for nothing, zeros and noise.

Several claims may use one at a time. A claim can say where in the container a node appears.
"""

import pathlib
import stat

from drachma import driver
from drachma.nodewire.cdi import spec

NODES = {"null": "/dev/null", "zero": "/dev/zero", "full": "/dev/full", "random": "/dev/urandom"}


class NodeConfig(driver.Config):
    """Where in the container a node appears."""

    path: str = ""


class NullDevices(driver.Driver):
    name = "null.example.com"
    config = NodeConfig

    async def pools(self):
        there = {name: path for name, path in NODES.items() if _is_node(path)}
        return [driver.pool(self.node, [self._device(name, path) for name, path in there.items()])]

    def _device(self, name: str, path: str) -> driver.DeviceBuilder:
        return driver.device(name).shared().attributes(path=path)

    async def prepare(self, claim):
        return {device: self._node(device) for device in claim.devices}

    def _node(self, device: driver.AllocatedDevice) -> driver.Edits:
        host = NODES[device.name]
        if not _is_node(host):
            raise RuntimeError(f"{host} is no device node any more")
        path = device.config.path or f"/dev/claimed/{device.name}"
        return driver.edits(device_nodes=[spec.DeviceNode(path=path, host_path=host, permissions="rw")])

    async def unprepare(self, reference):
        """The node is the machine's, and stays."""

    async def health(self):
        status = {True: driver.Status.HEALTHY, False: driver.Status.UNHEALTHY}
        return [
            driver.Health(pool=self.node, device=name, status=status[_is_node(path)]) for name, path in NODES.items()
        ]


def _is_node(path: str) -> bool:
    try:
        return stat.S_ISCHR(pathlib.Path(path).stat().st_mode)
    except OSError:
        return False


if __name__ == "__main__":
    driver.main(NullDevices)
