"""A driver for network cards that are only imagined and shared by their bandwidth: each claim gets what it asks for."""

from drachma import driver


class Nics(driver.Driver):
    name = "nic.example.com"
    writes_metadata = True

    async def pools(self):
        return [driver.pool(self.node, map(self._nic, range(2)))]

    def _nic(self, number: int) -> driver.DeviceBuilder:
        nic = driver.device(f"nic-{number}").shared().attributes(index=number)
        return nic.consumable("bandwidth", "100G", default="1G", least="1G", most="100G", step="1G")

    async def prepare(self, claim):
        return {device: self._interface(number, device) for number, device in enumerate(claim.devices)}

    def _interface(self, number: int, device: driver.AllocatedDevice) -> driver.Prepared:
        bandwidth = str(device.consumed_capacity.get("bandwidth", "1G"))
        return driver.Prepared(
            edits=driver.edits(env={f"NIC_{number}": device.name, f"NIC_{number}_BANDWIDTH": bandwidth}),
            network_data={"interfaceName": f"net{number}"},
        )

    async def unprepare(self, reference):
        """An interface that does not exist need not be removed."""


if __name__ == "__main__":
    driver.main(Nics)
