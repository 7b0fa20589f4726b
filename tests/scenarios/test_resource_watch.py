"""The resource watch: what a driver says over its socket is published by its node, and goes when it goes."""

import asyncio
import contextlib
import pathlib
import tempfile
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc.aio
import prometheus_client

from drachma import errors
from drachma.api import meta, node
from drachma.api.v1alpha2.resourceslice import Attribute, NamedResource, NodeResourceSlice, NodeResourceSliceSpec
from drachma.node import agentmetrics
from drachma.node.drivers import instances, plugins
from drachma.nodewire.rpc import messages, services
from drachma.process import embedded
from drachma.runtime import queuemetrics
from drachma.store import memory
from drachma.testing import manualclock
from drachma.values import quantity
from tests import firstalpha, patience

DRIVER = "cards.example.com"
LOOK_SECONDS = 61.0

Models = list[dict[str, Any]]


class Driver:
    """A driver of Kubernetes 1.30, as far as it says what there is; it prepares nothing."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._endpoint = folder / "dra.sock"
        self._registration = folder / "r" / "reg.sock"
        self._said: asyncio.Queue[Models] = asyncio.Queue()
        self._servers: list[grpc.aio.Server] = []

    def say(self, models: Models) -> None:
        self._said.put_nowait(models)

    async def start(self) -> None:
        self._registration.parent.mkdir(exist_ok=True)
        registration = {"GetInfo": self._get_info, "NotifyRegistrationStatus": self._notify}
        await self._serve(self._endpoint, services.NODE_1_30, {"NodeListAndWatchResources": self._resources})
        await self._serve(self._registration, services.REGISTRATION, registration)

    async def stop(self) -> None:
        self._registration.unlink(missing_ok=True)
        for server in self._servers:
            await server.stop(grace=None)

    async def _serve(self, path: pathlib.Path, service: services.Service, handlers: Any) -> None:
        server = grpc.aio.server()
        services.serve(server, service, handlers)
        server.add_insecure_port(f"unix:{path}")
        await server.start()
        self._servers.append(server)

    async def _get_info(self, _request: Any, _context: Any) -> Any:
        versions = [services.DRA[0].advertised, services.NODE_1_30.advertised]
        return messages.REGISTRATION.PluginInfo(
            type="DRAPlugin", name=DRIVER, endpoint=str(self._endpoint), supported_versions=versions
        )

    async def _notify(self, _request: Any, _context: Any) -> Any:
        return messages.REGISTRATION.RegistrationStatusResponse()

    async def _resources(self, _request: Any, _context: Any) -> AsyncIterator[Any]:
        while True:
            models = await self._said.get()
            yield messages.DRA_1_30.NodeListAndWatchResourcesResponse(resources=models)


class Machine:
    """A node with its directories, on a server that has its Node and its slices."""

    def __init__(self, folder: pathlib.Path, client: Any) -> None:
        self.client = client
        self.clock = manualclock.ManualClock()
        self.driver = Driver(folder)
        self._folder = folder

    @contextlib.asynccontextmanager
    async def running(self, *, shaky: Any = None) -> AsyncIterator[None]:
        """An agent's drivers, looked after through the machine's client or a shaky one."""
        registry = prometheus_client.CollectorRegistry()
        own = plugins.Plugins(
            "worker",
            self._folder / "r",
            client=shaky or self.client,
            metrics=agentmetrics.AgentMetrics(registry).node_metrics("worker"),
            queues=queuemetrics.Metrics(registry),
            clock=self.clock,
            on_driver=lambda: None,
            on_health=lambda _driver, _devices: None,
            gates=firstalpha.GATES,
        )
        task = asyncio.create_task(own.run(await self.client.get(node.Node, "worker")))
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def slices(self) -> list[NodeResourceSlice]:
        return list((await self.client.list(NodeResourceSlice)).items)

    async def names(self) -> list[str]:
        """The names of all resources, slice by slice."""
        contents = [each.spec.named_resources_with_attributes or () for each in await self.slices()]
        return sorted(",".join(each.name for each in content) for content in contents)

    async def until(self, holds: Callable[[list[str]], bool], *, passing: float = 0.0) -> None:
        """Waits until it holds for the names of resources; with every look some seconds pass."""
        async with asyncio.timeout(patience.SECONDS):
            while not holds(await self.names()):
                if passing:
                    await self.clock.advance(passing)
                await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def machine() -> AsyncIterator[Machine]:
    with tempfile.TemporaryDirectory(prefix="d") as folder:
        async with embedded.server(memory.MemoryStore(), gates=firstalpha.GATES) as server:
            worker = Machine(pathlib.Path(folder), server.client)
            await server.client.create(node.Node(metadata=meta.ObjectMeta(name="worker")))
            try:
                yield worker
            finally:
                await worker.driver.stop()


def model(*names: str) -> dict[str, Any]:
    return {"namedResources": {"instances": [{"name": name} for name in names]}}


VALUES: dict[str, dict[str, Any]] = {
    "memory": {"quantity": {"string": "16Gi"}},
    "shared": {"bool": False},
    "cores": {"int": 0},
    "lanes": {"intSlice": {"ints": [1, 2]}},
    "model": {"string": ""},
    "modes": {"stringSlice": {"strings": ["a", "b"]}},
    "runtime": {"version": "1.2.3"},
}


async def test_what_a_driver_says_is_published_under_its_node() -> None:
    async with machine() as worker:
        attributes = [{"name": name, "attributeValue": value} for name, value in VALUES.items()]
        worker.driver.say([{"namedResources": {"instances": [{"name": "gpu-0", "attributes": attributes}]}}])
        await worker.driver.start()
        async with worker.running():
            await worker.until(lambda names: names == ["gpu-0"])
            [published] = await worker.slices()
            owner = await worker.client.get(node.Node, "worker")
            [reference] = published.metadata.owner_references
            assert (reference.kind, reference.uid) == ("Node", owner.metadata.uid)
            assert published.metadata.name.startswith("worker-cards.example.com-")
            assert published.spec == NodeResourceSliceSpec(
                node_name="worker",
                driver_name=DRIVER,
                named_resources_with_attributes=(
                    NamedResource(
                        name="gpu-0",
                        attributes=(
                            Attribute(name="memory", quantity_value=quantity.Quantity.parse("16Gi")),
                            Attribute(name="shared", bool_value=False),
                            Attribute(name="cores", int_value=0),
                            Attribute(name="lanes", int_slice=(1, 2)),
                            Attribute(name="model", string_value=""),
                            Attribute(name="modes", string_slice=("a", "b")),
                            Attribute(name="runtime", version_value="1.2.3"),
                        ),
                    ),
                ),
            )


async def test_slices_follow_what_a_driver_says_and_go_when_it_is_gone() -> None:
    async with machine() as worker:
        worker.driver.say([model("gpu-0"), model("gpu-1", "gpu-2")])
        await worker.driver.start()
        async with worker.running():
            await worker.until(lambda names: names == ["gpu-0", "gpu-1,gpu-2"])
            before = {each.metadata.name for each in await worker.slices()}
            worker.driver.say([model("gpu-0"), model("gpu-1")])
            await worker.until(lambda names: names == ["gpu-0", "gpu-1"])
            assert {each.metadata.name for each in await worker.slices()} == before
            worker.driver.say([model("gpu-0")])
            await worker.until(lambda names: names == ["gpu-0"])
            [published] = await worker.slices()
            await worker.client.delete(NodeResourceSlice, published.metadata.name)
            await worker.until(lambda names: names == ["gpu-0"], passing=LOOK_SECONDS)
            await worker.driver.stop()
            await worker.until(lambda names: not names, passing=instances.GONE_SECONDS)


async def test_slices_belong_to_the_node_that_is_there_when_it_is_made_anew() -> None:
    async with machine() as worker:
        worker.driver.say([model("gpu-0")])
        await worker.driver.start()
        async with worker.running():
            await worker.until(lambda names: names == ["gpu-0"])
            [before] = await worker.slices()
            await worker.client.delete(node.Node, "worker")
            anew = await worker.client.create(node.Node(metadata=meta.ObjectMeta(name="worker")))
            worker.driver.say([model("gpu-1")])
            await worker.until(lambda names: names == ["gpu-1"])
            [after] = await worker.slices()
            assert after.metadata.name == before.metadata.name
            assert [each.uid for each in after.metadata.owner_references] == [anew.metadata.uid]


class Shaky:
    """A client that does not reach the server when it first asks for slices."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._is_broken = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def list(self, kind: Any, *arguments: Any, **more: Any) -> Any:
        if kind is NodeResourceSlice and self._is_broken:
            self._is_broken = False
            raise errors.UnreachableError("no connection")
        return await self._client.list(kind, *arguments, **more)


async def test_what_was_left_by_drivers_of_before_is_removed() -> None:
    async with machine() as worker:
        for on in ("worker", "another"):
            spec = NodeResourceSliceSpec(
                node_name=on, driver_name=DRIVER, named_resources_with_attributes=(NamedResource(name=on),)
            )
            await worker.client.create(NodeResourceSlice(metadata=meta.ObjectMeta(name=on), spec=spec))
        async with worker.running(shaky=Shaky(worker.client)):
            await worker.until(lambda names: names == ["another"], passing=1.0)


async def test_what_makes_no_sense_is_not_published() -> None:
    async with machine() as worker:
        wrong = {"name": "memory", "attributeValue": {"quantity": {"string": "much"}}}
        worker.driver.say([{"namedResources": {"instances": [{"name": "gpu-0", "attributes": [wrong]}]}}])
        worker.driver.say([model("gpu-1")])
        await worker.driver.start()
        async with worker.running():
            await worker.until(lambda names: names == ["gpu-1"])
