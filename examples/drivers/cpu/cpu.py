"""A driver for the processors of this machine: every core is a device, with the threads it really has.

A core stands for cpu of its node (KEP-5517), so that the scheduler counts it once, whoever asks for it in whatever way.
Containers are told which threads are theirs; to pin them is theirs, too.
"""

import pathlib

from drachma import driver

SYSTEM = pathlib.Path("/sys/devices/system/cpu")


def _read(path: pathlib.Path, default: str = "") -> str:
    return path.read_text().strip() if path.exists() else default


def _numbers(text: str) -> list[int]:
    """The numbers of a list such as ``0-3,8``."""
    numbers = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


class Cores(driver.Driver):
    name = "cpu.example.com"

    def __init__(self, system: pathlib.Path = SYSTEM) -> None:
        super().__init__()
        self._system = system

    def cores(self) -> dict[str, list[int]]:
        """The threads of each core, by name, in the order of their first threads."""
        cores = {}
        for thread in _numbers(_read(self._system / "online", "0")):
            topology = self._system / f"cpu{thread}" / "topology"
            siblings = _numbers(_read(topology / "thread_siblings_list", str(thread)))
            cores[f"core-{siblings[0]}"] = siblings
        return cores

    async def pools(self):
        return [driver.pool(self.node, [self._core(name, threads) for name, threads in self.cores().items()])]

    def _core(self, name: str, threads: list[int]) -> driver.DeviceBuilder:
        folder = self._system / f"cpu{threads[0]}"
        socket = int(_read(folder / "topology" / "physical_package_id", "0"))
        numa = next((int(path.name.removeprefix("node")) for path in folder.glob("node[0-9]*")), 0)
        core = driver.device(name).attributes(socket=max(socket, 0), threads=len(threads))
        core = core.attribute("resource.kubernetes.io/numaNode", numa).capacity("threads", len(threads))
        return core.stands_for("cpu", multiplier=len(threads))

    async def prepare(self, claim):
        cores = self.cores()
        own = {device: ",".join(map(str, cores[device.name])) for device in claim.devices}
        return {
            device: driver.edits(env={f"CPUSET_{number}": threads})
            for number, (device, threads) in enumerate(own.items())
        }

    async def unprepare(self, reference):
        """A core is free as soon as nobody uses it."""


if __name__ == "__main__":
    driver.main(Cores)
