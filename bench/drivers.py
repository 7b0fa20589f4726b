"""Drivers as their users wait for them: claims prepared over the socket, 10,000 devices published, a test's cluster.

Beside drachma's SDK runs, in the same run and on the same API server, a driver in Go on upstream's helper, where it can
be built. Its client allows itself five requests a second, which is client-go's default.
"""

from __future__ import annotations

import asyncio
import pathlib
import statistics
import sys
import tempfile
import time

from tests.peers import programs

from bench.timing import table
from drachma import errors, testing
from drachma.api import node, resourceslice
from drachma.client import Change, Selection, http
from drachma.driver.conformance import stage as stages
from drachma.driver.conformance.stage import PublishedDevice, Stage
from drachma.driver.conformance.subject import ProcessSubject
from drachma.listening import addresses
from drachma.nodewire.rpc import services
from drachma.process import hosting
from drachma.runtime import clock

_CLAIMS = 100
_DEVICES = 10_000
_FEW = 4
_CLUSTERS = 5

_PROGRAM = """
import sys
from drachma import driver

class Gpus(driver.Driver):
    name = "py.example.com"

    async def pools(self):
        return [driver.pool(self.node, [driver.device(f"dev-{n}").attributes(index=n) for n in range(COUNT)])]

    async def prepare(self, claim):
        return {device: driver.edits(env={"DEVICE": device.name}) for device in claim.devices}

    async def unprepare(self, reference):
        pass

driver.main(Gpus)
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="b") as name:
        folder = pathlib.Path(name)
        kubeconfig = folder / "kubeconfig"

        async def beside(host: hosting.Host) -> None:
            host.ready()
            while not kubeconfig.exists():
                await asyncio.sleep(0.01)
            await _compare(folder, kubeconfig)

        options = hosting.Options(
            address=addresses.Address.parse("127.0.0.1:0"),
            kubeconfig_out=kubeconfig,
            disabled_plugins=("ServiceAccount", "TaintNodesByCondition"),
        )
        hosting.run(options, beside)
    rows = []
    for _ in range(_CLUSTERS):
        begun = time.perf_counter()
        with testing.sync_cluster(nodes=3):
            rows.append(time.perf_counter() - begun)
    table("a cluster of three nodes for a test", ["start, median of 5"], [[f"{statistics.median(rows) * 1000:.0f} ms"]])


async def _compare(folder: pathlib.Path, kubeconfig: pathlib.Path) -> None:
    reached = http.find_access(kubeconfig)
    async with http.HttpClient(reached, clock=clock.SystemClock()) as client:
        await client.create_document(node.Node, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker"}})
        few = [_Driver(name, client, folder / f"few-{len(name)}", kubeconfig, devices=_FEW) for name in _names()]
        many = [_Driver(name, client, folder / f"many-{len(name)}", kubeconfig, devices=_DEVICES) for name in _names()]
        for each in few:
            await each.stage.start()
        await _prepare(few)
        for each in few:
            await each.stage.subject.kill()
        rows = [[each.name, *await each.publish()] for each in many]
        table(f"publishing {_DEVICES} devices", ["driver", "slices", "writes", "start to visible"], rows)


_OURS = "drachma's SDK"
_THEIRS = "upstream's helper, Go"


def _names() -> list[str]:
    try:
        programs.build("driver")
    except programs.MissingError as missing:
        print(f"left out: {missing}")
        return [_OURS]
    return [_OURS, _THEIRS]


def _command(name: str, root: pathlib.Path, cdi: pathlib.Path, *, devices: int) -> list[str]:
    if name == _OURS:
        program = _PROGRAM.replace("COUNT", str(devices))
        return [sys.executable, "-c", program, "--root-dir", str(root), "--cdi-dir", str(cdi)]
    go = str(programs.build("driver"))
    options = ["-driver", "go.example.com", "-node", "worker", "-devices", str(devices)]
    return [go, *options, "-root", str(root), "-cdi", str(cdi)]


class _Driver:
    def __init__(
        self, name: str, client: http.HttpClient, folder: pathlib.Path, kubeconfig: pathlib.Path, *, devices: int
    ) -> None:
        self.name = name
        self._client = client
        registry, cdi = folder / "plugins_registry", folder / "cdi"
        self.driver = "py.example.com" if name == _OURS else "go.example.com"
        for each in (folder / "plugins" / self.driver, registry, cdi):
            each.mkdir(parents=True)
        command = _command(name, folder, cdi, devices=devices)
        environment = {"KUBECONFIG": str(kubeconfig), "NODE_NAME": "worker"}
        self.stage = Stage(
            client,
            ProcessSubject(command, environment, output=folder / "output"),
            node="worker",
            registration=lambda: next((path for path in sorted(registry.iterdir()) if path.is_socket()), None),
            cdi=cdi,
        )

    async def publish(self) -> list[str]:
        """Slices, writes, and how long it took from the start of the process."""
        selection = Selection(fields=f"spec.driver={self.driver}")
        await self._client.delete_collection(resourceslice.ResourceSlice, selection)
        listing = await self._client.list(resourceslice.ResourceSlice, selection)
        devices: dict[str, int] = {}
        writes = 0
        begun = time.perf_counter()
        async with self._client.watch(
            resourceslice.ResourceSlice, selection, resource_version=listing.resource_version
        ) as watch:
            await self.stage.subject.start()
            while sum(devices.values()) < _DEVICES:
                if not (events := await watch.batch()):
                    raise errors.UnreachableError(f"{self.driver}: the watch ended before all devices were published")
                for event in events:
                    if event.change in (Change.ADDED, Change.MODIFIED):
                        devices[event.object.metadata.name] = len(event.object.spec.devices)
                        writes += 1
        took = time.perf_counter() - begun
        await self.stage.subject.kill()
        return [str(len(devices)), str(writes), f"{took:.2f} s"]


async def _prepare(drivers: list[_Driver]) -> None:
    """New claims and then the same again, one driver after the other for each."""
    times: dict[tuple[str, str], list[float]] = {}
    channels = {each.name: services.channel(each.stage.info.endpoint) for each in drivers}
    device = resourceslice.Device(name="dev-0")
    for _ in range(_CLAIMS):
        for each in drivers:
            claim = await each.stage.claim(PublishedDevice("worker", device))
            for act, method in (
                ("new", "NodePrepareResources"),
                ("again", "NodePrepareResources"),
                ("undone", "NodeUnprepareResources"),
            ):
                request = services.DRA[0].method(method).request(claims=[stages.reference(claim)])
                begun = time.perf_counter()
                response = await services.call(channels[each.name], services.DRA[0], method, request, timeout=30)
                times.setdefault((each.name, act), []).append(time.perf_counter() - begun)
                assert not response.claims[claim.metadata.uid].error
    for channel in channels.values():
        await channel.close(None)
    for each in drivers:
        await each.stage.clean_up()
    rows = [
        [
            name,
            act,
            f"{statistics.median(taken) * 1000:.2f} ms",
            f"{sorted(taken)[int(len(taken) * 0.99)] * 1000:.2f} ms",
        ]
        for (name, act), taken in times.items()
    ]
    table(f"{_CLAIMS} claims over the socket, with the driver's GET of each", ["driver", "claim", "p50", "p99"], rows)


if __name__ == "__main__":
    main()
