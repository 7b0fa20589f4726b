"""A driver for GPUs that are only imagined: eight to a node, in pairs at a PCIe root; claims may share them by time."""

from typing import Literal

from drachma import driver


class GpuConfig(driver.Config):
    """What claims and classes can say about a GPU."""

    kind: Literal["GpuConfig"] = "GpuConfig"
    sharing: Literal["exclusive", "time-slicing"] = "exclusive"
    interval: int = 1


class Gpus(driver.Driver):
    name = "gpu.example.com"
    config = GpuConfig

    def __init__(self, count: int = 8) -> None:
        super().__init__()
        self.broken: set[str] = set()
        self._count = count

    async def pools(self):
        return [driver.pool(self.node, map(self._gpu, range(self._count)))]

    def _gpu(self, number: int) -> driver.DeviceBuilder:
        gpu = driver.device(f"gpu-{number}").attributes(model="imagined-80", index=number).capacity("memory", "80Gi")
        gpu = gpu.attribute("resource.kubernetes.io/pcieRoot", f"pci0000:{number // 2:02x}")
        return gpu.taint("gpu.example.com/broken", effect="NoExecute") if f"gpu-{number}" in self.broken else gpu

    async def prepare(self, claim):
        return {device: self._edits(device) for device in claim.devices}

    def _edits(self, device: driver.AllocatedDevice) -> driver.Edits:
        number = device.name.removeprefix("gpu-")
        variables = {f"GPU_{number}": device.name, f"GPU_{number}_SHARING": device.config.sharing}
        if device.config.sharing == "time-slicing":
            variables[f"GPU_{number}_INTERVAL"] = str(device.config.interval)
        return driver.edits(env=variables)

    async def unprepare(self, reference):
        """Nothing was done to a GPU that does not exist."""

    async def health(self):
        status = {True: driver.Status.UNHEALTHY, False: driver.Status.HEALTHY}
        names = [f"gpu-{number}" for number in range(self._count)]
        return [driver.Health(pool=self.node, device=name, status=status[name in self.broken]) for name in names]

    def breaks(self, name: str) -> None:
        """A GPU is broken from now on: pods on it have to go."""
        self.broken.add(name)
        self.changed()


if __name__ == "__main__":
    driver.main(Gpus)
