"""A driver for GPUs that are only imagined and can be had in parts, as NVIDIA's MIG does: whole, halves, sevenths.

A table of profiles says what a partition takes and where it may lie; which partitions can be had side by side follows.
"""

from drachma import driver


def _profile(name: str, *, memory: str, compute: int, slots: int, begins: tuple[int, ...]) -> driver.Profile:
    takes = {"memory": memory, "compute": compute}
    return driver.Profile(name=name, takes=takes, slots=slots, begins=begins, capacity={"memory": memory})


PROFILES = (
    _profile("7g.80gb", memory="80Gi", compute=7, slots=8, begins=(0,)),
    _profile("3g.40gb", memory="40Gi", compute=3, slots=4, begins=(0, 4)),
    _profile("2g.20gb", memory="20Gi", compute=2, slots=2, begins=(0, 2, 4)),
    _profile("1g.10gb", memory="10Gi", compute=1, slots=1, begins=tuple(range(7))),
)


class Partitions(driver.Driver):
    name = "mig.example.com"

    async def pools(self):
        gpus = [
            driver.partitions(
                f"gpu-{number}",
                amounts={"memory": "80Gi", "compute": 7},
                slots=8,
                profiles=PROFILES,
                attributes={"parent": f"gpu-{number}"},
            )
            for number in range(4)
        ]
        return [driver.pool(self.node, gpus)]

    async def prepare(self, claim):
        return {device: driver.edits(env={f"MIG_{number}": device.name}) for number, device in enumerate(claim.devices)}

    async def unprepare(self, reference):
        """A partition that does not exist need not be taken apart."""


if __name__ == "__main__":
    driver.main(Partitions)
