"""Node groups for cluster-autoscaler: each call of its externalgrpc provider, over gRPC, on a cluster."""

import contextlib
import pathlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import grpc
import grpc.aio
import msgspec
import pytest

from drachma import errors, testing
from drachma.api import node as nodes
from drachma.api import resourceslice, types
from drachma.nodewire.rpc import services
from drachma.process import cloudprovider, providercredentials
from drachma.process.cloudprovider import MESSAGES, SERVICE
from drachma.server.decoding.protobuf import decoding
from drachma.simulate import NodeGroup
from drachma.simulate.autoscaler import Provider
from drachma.simulate.autoscaler.provider import SimulatedProvider
from tests.scenarios import schedulers

_GPUS = testing.resource_slice("t-gpus", driver="gpu.example.com", pool="t").on_node("t").devices("gpu-0", "gpu-1")
_GROUP = NodeGroup(name="gpu", node=testing.node("t").build(), slices=(_GPUS.build(),), min=1, max=4, price=2.5)
_PLAIN = NodeGroup(name="plain", node=testing.node("t").build(), labels={"pool": "plain"})


class _Slow:
    """A provider whose nodes come later, under names of their own."""

    keeps_names = False

    def __init__(self) -> None:
        self.asked = 0

    async def grow(self, _group: NodeGroup, names: Sequence[str]) -> None:
        self.asked += len(names)

    async def remove(self, _group: NodeGroup, _node: str) -> None:
        raise AssertionError("nothing is there to be removed")


class _World:
    def __init__(self, world: schedulers.SchedulerWorld, channel: grpc.aio.Channel) -> None:
        self.world = world
        self._channel = channel

    async def ask(self, method: str, **fields: Any) -> Any:
        request = SERVICE.method(method).request(**fields)
        answer = await services.call(self._channel, SERVICE, method, request, timeout=30)
        await self.world.settle()
        return answer

    async def refused(self, method: str, **fields: Any) -> str:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await self.ask(method, **fields)
        return services.problem(raised.value)

    async def size(self) -> int:
        answer = await self.ask("NodeGroupTargetSize", id="gpu")
        return int(answer.targetSize)


@contextlib.asynccontextmanager
async def _served(provider: Provider | None = None) -> AsyncIterator[_World]:
    async with schedulers.cluster(scheduler=False) as world:
        around = world.world.surroundings
        source = provider or SimulatedProvider(around.client)
        service = cloudprovider.CloudProvider(around, (_GROUP, _PLAIN), source)
        await world.settle()
        async with (
            service.serving("127.0.0.1:0") as port,
            grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel,
        ):
            yield _World(world, channel)


def _node(name: str, **labels: str) -> Any:
    return MESSAGES.ExternalGrpcNode(name=name, labels=labels)


async def test_groups_and_their_nodes() -> None:
    async with _served() as world:
        listed = await world.ask("NodeGroups")
        assert [(each.id, each.minSize, each.maxSize) for each in listed.nodeGroups] == [
            ("gpu", 1, 4),
            ("plain", 0, 1000),
        ]
        for node, group in (
            (_node("a", **{"drachma.dev/node-group": "gpu"}), "gpu"),
            (_node("b", pool="plain"), "plain"),
            (_node("c"), ""),
        ):
            assert (await world.ask("NodeGroupForNode", node=node)).nodeGroup.id == group


async def test_a_template_has_the_node_and_its_slices() -> None:
    async with _served() as world:
        template = await world.ask("NodeGroupTemplateNodeInfo", id="gpu")
        node = decoding._message(template.nodeBytes, types.get("core/v1.Node"), 0)
        (slices,) = (
            decoding._message(each, types.get("resource.k8s.io/v1.ResourceSlice"), 0)
            for each in template.resourceSliceBytes
        )
        assert node["metadata"]["name"] == "gpu-template"
        assert node["metadata"]["labels"]["drachma.dev/node-group"] == "gpu"
        assert node["status"]["allocatable"]["cpu"] == "4"
        assert slices["spec"]["nodeName"] == "gpu-template"
        assert [each["name"] for each in slices["spec"]["devices"]] == ["gpu-0", "gpu-1"]


async def test_a_group_grows_and_shrinks() -> None:
    async with _served() as world:
        assert await world.size() == 0
        await world.ask("NodeGroupIncreaseSize", id="gpu", delta=2)
        await world.ask("Refresh")
        assert await world.size() == 2
        names = sorted(str(each.metadata.name) for each in await world.world.all_of(nodes.Node))
        assert names == ["gpu-new-1", "gpu-new-2"]
        instances = (await world.ask("NodeGroupNodes", id="gpu")).instances
        assert sorted(each.id for each in instances) == ["drachma://gpu-new-1", "drachma://gpu-new-2"]
        await world.ask("NodeGroupDeleteNodes", id="gpu", nodes=[_node("gpu-new-1")])
        assert await world.size() == 1
        assert len(await world.world.all_of(resourceslice.ResourceSlice)) == 1


async def test_refusals() -> None:
    async with _served() as world:
        await world.ask("NodeGroupIncreaseSize", id="gpu", delta=1)
        told = "rpc error: code = InvalidArgument desc = "
        assert await world.refused("NodeGroupIncreaseSize", id="gpu", delta=4) == (
            f"{told}group gpu: size 5: at most 4 nodes are allowed"
        )
        assert await world.refused("NodeGroupIncreaseSize", id="gpu") == f"{told}group gpu: delta: 0: must be above 0"
        assert await world.refused("NodeGroupTargetSize", id="x") == f"{told}there is no node group 'x'"
        assert await world.refused("NodeGroupDeleteNodes", id="gpu", nodes=[_node("other")]) == (
            f"{told}node other does not belong to group gpu"
        )
        assert await world.refused("NodeGroupDeleteNodes", id="gpu", nodes=[_node("gpu-new-1")]) == (
            f"{told}group gpu: at least 1 nodes have to stay"
        )
        assert await world.refused("NodeGroupDecreaseTargetSize", id="gpu", delta=-1) == (
            f"{told}group gpu: delta: -1: 0 nodes were requested and have not come"
        )


class _Reluctant(_Slow):
    """A provider whose machines go some time after they were removed."""

    def __init__(self) -> None:
        super().__init__()
        self.removed: list[str] = []

    async def remove(self, _group: NodeGroup, node: str) -> None:
        self.removed.append(node)


async def test_nodes_that_are_going_do_not_count() -> None:
    """Two calls in a row must not leave fewer nodes than the group has to have, though the nodes are still there."""
    provider = _Reluctant()
    async with _served(provider) as world:
        label = {"drachma.dev/node-group": "gpu"}
        for name in ("a", "b"):
            built = testing.node(name, labels=label).build()
            spec = msgspec.structs.replace(built.spec, provider_id=f"cloud://{name}")
            await world.world.client.create(msgspec.structs.replace(built, spec=spec))
        await world.world.settle()
        assert await world.size() == 2
        await world.ask("NodeGroupDeleteNodes", id="gpu", nodes=[_node("a"), _node("a")])
        assert await world.size() == 1
        assert "at least 1 nodes have to stay" in await world.refused(
            "NodeGroupDeleteNodes", id="gpu", nodes=[_node("b")]
        )
        assert provider.removed == ["a"]
        states = {
            each.id: each.status.instanceState for each in (await world.ask("NodeGroupNodes", id="gpu")).instances
        }
        assert states == {"cloud://a": 3, "cloud://b": 1}


async def test_nodes_that_have_not_come_count_and_can_be_given_up() -> None:
    provider = _Slow()
    async with _served(provider) as world:
        await world.ask("NodeGroupIncreaseSize", id="gpu", delta=3)
        assert (provider.asked, await world.size()) == (3, 3)
        await world.world.create(testing.node("machine-17", labels={"drachma.dev/node-group": "gpu"}))
        assert await world.size() == 3
        await world.ask("NodeGroupDecreaseTargetSize", id="gpu", delta=-1)
        assert await world.size() == 2
        assert list((await world.ask("NodeGroupNodes", id="gpu")).instances) == []


async def test_the_price_of_a_node() -> None:
    async with _served() as world:
        node = _node("a", **{"drachma.dev/node-group": "gpu"})
        begin, end = MESSAGES.Timestamp(seconds=1000), MESSAGES.Timestamp(seconds=1000 + 7200)
        answer = await world.ask("PricingNodePrice", node=node, startTimestamp=begin, endTimestamp=end)
        assert answer.price == 5.0
        assert "belongs to no group" in await world.refused("PricingNodePrice", node=_node("b"))
        assert (await world.ask("GPULabel")).label == "drachma.dev/accelerator"
        await world.ask("GetAvailableGPUTypes")
        await world.ask("Cleanup")


def test_only_loopback_is_served_without_a_certificate(tmp_path: pathlib.Path) -> None:
    none = {"certificate": None, "key": None, "client_ca": None}
    assert providercredentials.read_credentials("127.0.0.1:1", **none) is None
    assert providercredentials.read_credentials("[::1]:1", **none) is None
    pair = {"certificate": tmp_path / "c", "key": tmp_path / "k", "client_ca": None}
    for address in ("0.0.0.0:1", "example.com:1"):
        for given in (none, pair):
            with pytest.raises(errors.InvalidValueError, match="requires --certificate, --key and --client-ca"):
                providercredentials.read_credentials(address, **given)
    with pytest.raises(errors.InvalidValueError, match="both are required"):
        providercredentials.read_credentials("127.0.0.1:1", **{**none, "key": tmp_path / "key"})
    with pytest.raises(errors.InvalidValueError, match="No such file"):
        providercredentials.read_credentials("127.0.0.1:1", **pair)
