"""The autoscaler beside a real scheduler: nodes come for pods that wait, and go when nobody needs them."""

import contextlib
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from msgspec import structs

from drachma import testing
from drachma.api import codec, configmap, lease, meta, pod, resourceslice
from drachma.api import node as nodes
from drachma.client import Client, patches
from drachma.node.agents import Agents
from drachma.node.simulation import hardware, runtime
from drachma.runtime import Surroundings
from drachma.simulate import NodeGroup
from drachma.simulate.autoscaler import Autoscaler, Provider, ProviderError, Settings
from drachma.simulate.autoscaler.machineprovider import MachineProvider
from drachma.simulate.autoscaler.provider import CommandProvider, SimulatedProvider
from tests.scenarios import schedulers

DRIVER = "gpu.example.com"


def group(name: str = "gpu", *, gpus: int = 2, most: int = 5, least: int = 0) -> NodeGroup:
    names = [f"gpu-{number}" for number in range(gpus)]
    slices = testing.resource_slice("t-gpus", driver=DRIVER, pool="t").on_node("t").devices(*names).build()
    return NodeGroup(name=name, node=testing.node("t").build(), slices=(slices,), max=most, min=least)


def gpu_pod(name: str) -> pod.Pod:
    return testing.pod(name).claim("gpu", template="gpu").container("c", claims=("gpu",)).build()


class Refusing:
    """A provider that has nothing to give until told otherwise."""

    keeps_names = True

    def __init__(self, inner: Provider) -> None:
        self.inner = inner
        self.is_open = False
        self.asked: list[tuple[str, int]] = []

    async def grow(self, group: NodeGroup, names: Sequence[str]) -> None:
        self.asked.append((group.name, len(names)))
        if not self.is_open:
            raise ProviderError("sold out")
        await self.inner.grow(group, names)

    async def remove(self, group: NodeGroup, node: str) -> None:
        await self.inner.remove(group, node)


class Losing(SimulatedProvider):
    """A provider whose nodes never come."""

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self.asked: list[int] = []

    async def grow(self, group: NodeGroup, names: Sequence[str]) -> None:
        self.asked.append(len(names))


class Booting:
    """A provider that chooses names, and whose nodes are not ready until they have booted."""

    keeps_names = False

    def __init__(self, client: Client) -> None:
        self.client = client
        self.asked: list[int] = []
        self.booting: list[tuple[NodeGroup, str]] = []

    async def grow(self, group: NodeGroup, names: Sequence[str]) -> None:
        self.asked.append(len(names))
        for _ in names:
            name = f"i-{len(self.booting)}"
            self.booting.append((group, name))
            labels = {"drachma.dev/node-group": group.name}
            taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
            metadata = {"name": name, "labels": labels}
            document = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": [taint]}}
            await self.client.create_document(nodes.Node, document)

    async def boot(self) -> None:
        for group, name in self.booting:
            node, *slices = group.make(name)
            for each in slices:
                await self.client.create(each)
            status = patches.merge({"status": codec.encode(node)["status"]})
            await self.client.patch(nodes.Node, name, patch=status, subresource="status")
            await self.client.patch(nodes.Node, name, patch=patches.merge({"spec": {"taints": None}}))

    async def remove(self, group: NodeGroup, node: str) -> None:
        raise AssertionError(node)


class World:
    def __init__(self, running: schedulers.SchedulerWorld, provider: Any) -> None:
        self.running = running
        self.provider = provider

    async def nodes(self) -> list[str]:
        listed = await self.running.client.list(nodes.Node)
        return sorted(str(each.metadata.name) for each in listed.items)

    async def rounds(self, count: int = 1, *, seconds: float = 10.0) -> None:
        for _ in range(count):
            await self.running.advance(seconds)
            await self.running.settle()


@contextlib.asynccontextmanager
async def world(
    groups: list[NodeGroup], *, provider: Any = SimulatedProvider, chosen: Settings | None = None
) -> AsyncIterator[World]:
    async with schedulers.cluster() as running:
        common = testing.device_class(DRIVER, f'device.driver == "{DRIVER}"')
        template = testing.claim_template("gpu").request("r", device_class=DRIVER, count=1)
        await running.create(common, template)
        made = provider(running.client)
        await running.world.start(lambda around: Autoscaler(around, groups, made, settings=chosen))
        yield World(running, made)


async def test_from_zero_and_back() -> None:
    async with world([group()]) as made:
        await made.running.create(gpu_pod("a"), gpu_pod("b"), gpu_pod("c"))
        await made.rounds(2)
        assert await made.nodes() == ["gpu-new-1", "gpu-new-2"]
        placed = [await made.running.node_of(name) for name in "abc"]
        assert sorted(set(placed)) == ["gpu-new-1", "gpu-new-2"]
        for name in "abc":
            await made.running.client.delete(pod.Pod, name, namespace="default", grace_period_seconds=0)
        await made.running.settle()
        await made.rounds(140)
        assert await made.nodes() == []


async def test_nothing_is_asked_for_twice() -> None:
    async with world([group()], provider=Losing) as made:
        await made.running.create(gpu_pod("a"))
        await made.rounds(5)
        assert made.provider.asked == [1]


async def test_a_node_that_does_not_come_is_asked_for_again_after_a_pause() -> None:
    async with world([group()], provider=Losing) as made:
        await made.running.create(gpu_pod("a"))
        await made.rounds(1)
        await made.rounds(1, seconds=900)
        await made.rounds(1, seconds=299)
        assert made.provider.asked == [1]
        await made.rounds(2)
        assert made.provider.asked == [1, 1]


@pytest.mark.parametrize("gpus", [pytest.param(2, id="devices"), pytest.param(0, id="no-devices")])
async def test_nothing_is_asked_for_twice_while_nodes_are_not_ready(gpus: int) -> None:
    bought = group(gpus=gpus) if gpus else structs.replace(group(), slices=())
    async with world([bought], provider=Booting) as made:
        names = [f"pod-{number}" for number in range(5)]
        for name in names:
            waiting = gpu_pod(name) if gpus else testing.pod(name).container("c", requests={"cpu": "3"}).build()
            await made.running.create(waiting)
        await made.rounds(6)
        assert len(made.provider.asked) == 1
        assert not any([await made.running.node_of(name) for name in names])
        await made.provider.boot()
        await made.rounds(3)
        assert len(made.provider.asked) == 1
        assert all([await made.running.node_of(name) for name in names])


async def test_nodes_from_before_are_not_the_requested_ones() -> None:
    async with world([group(gpus=1)], provider=Booting) as made:
        await made.running.create(gpu_pod("a"))
        await made.rounds(1)
        await made.provider.boot()
        await made.rounds(2)
        assert await made.running.node_of("a") == "i-0"
        made.provider.booting.clear()

        async def lose(group: NodeGroup, names: Sequence[str]) -> None:
            made.provider.asked.append(len(names))

        made.provider.grow = lose
        await made.running.create(gpu_pod("b"))
        await made.rounds(5)
        assert made.provider.asked == [1, 1]


async def test_nodes_that_boot_while_the_autoscaler_restarts_are_on_their_way() -> None:
    async with world([group(gpus=1)], provider=Booting) as made:
        await made.provider.grow(group(gpus=1), ["x"])
        await made.running.create(gpu_pod("a"))
        await made.rounds(3)
        assert made.provider.asked == [1]
        await made.rounds(1, seconds=900)
        await made.rounds(2, seconds=300)
        assert made.provider.asked == [1, 1]


async def test_a_group_that_fails_is_left_alone_and_another_one_grows() -> None:
    def refusing(client: Any) -> Refusing:
        return Refusing(SimulatedProvider(client))

    async with world([group("first"), group("second")], provider=refusing) as made:
        await made.running.create(gpu_pod("a"))
        await made.rounds(1)
        assert made.provider.asked == [("first", 1)]
        made.provider.is_open = True
        await made.rounds(2)
        assert made.provider.asked == [("first", 1), ("second", 1)]
        assert await made.running.node_of("a") == "second-new-1"


async def test_what_no_group_helps_is_said_once() -> None:
    async with world([group(most=0)]) as made:
        await made.running.create(gpu_pod("a"))
        await made.rounds(3)
        said = await made.running.events("NotTriggerScaleUp")
        assert len(said) == 1
        assert "Node group gpu cannot grow." in said[0]


async def test_a_node_whose_pods_fit_elsewhere_is_emptied_and_given_back() -> None:
    async with world([group(gpus=1)], chosen=Settings(unneeded=60, cooldown=0)) as made:
        mover = testing.pod("m").container("c").spec(termination_grace_period_seconds=0).build()
        await made.running.create(gpu_pod("a"))
        await made.rounds(2)
        stays = testing.node("stays").build()
        owner = await made.running.client.create(
            configmap.ConfigMap(metadata=meta.ObjectMeta(name="owner", namespace="default"))
        )
        await made.running.create(owned(mover, owner))
        await made.running.create(stays)
        assert await made.running.node_of("a") == "gpu-new-1"
        assert await made.running.node_of("m") == "gpu-new-1"
        await made.running.client.delete(pod.Pod, "a", namespace="default", grace_period_seconds=0)
        await made.rounds(12)
        assert await made.nodes() == ["stays"]
        assert any("evicted from node gpu-new-1" in text for text in await made.running.events("ScaleDown"))


async def test_minimum_is_kept() -> None:
    async with world([group(least=2)], chosen=Settings(unneeded=0, cooldown=0)) as made:
        await made.rounds(5)
        assert await made.nodes() == ["gpu-new-1", "gpu-new-2"]


def owned(made: pod.Pod, owner: meta.Object) -> pod.Pod:
    name, uid = owner.metadata.name, owner.metadata.uid
    reference = meta.OwnerReference(api_version="v1", kind="ConfigMap", name=name, uid=uid, controller=True)
    return structs.replace(made, metadata=structs.replace(made.metadata, owner_references=(reference,)))


SCRIPT = "import sys; open(sys.argv[1], 'a').write(' '.join(sys.argv[2:]) + chr(10))"


async def test_a_command_brings_nodes(tmp_path: Any) -> None:
    calls = tmp_path / "calls"
    provider = CommandProvider([sys.executable, "-c", SCRIPT, str(calls)])
    await provider.grow(group(), ["x", "y"])
    await provider.remove(group(), "node-1")
    assert calls.read_text(encoding="utf-8") == "grow gpu 2\nremove gpu node-1\n"


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        pytest.param(["/nonexistent/tool"], "No such file or directory", id="no-command"),
        pytest.param([sys.executable, "-c", "raise SystemExit('sold out')"], "ended with 1: sold out", id="failure"),
    ],
)
async def test_a_command_that_fails_is_said(command: list[str], problem: str) -> None:
    with pytest.raises(ProviderError, match=problem):
        await CommandProvider(command).grow(group(), ["x"])


async def test_a_command_may_leave_a_process_that_goes_on() -> None:
    """Tools of clouds start daemons that keep the error output of the command open."""
    leave = (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(20)\nelse:\n    os.write(2, b'daemon')"
    )
    await CommandProvider([sys.executable, "-c", leave], seconds=15).grow(group(), ["x"])


async def test_a_command_that_hangs_is_ended() -> None:
    hanging = CommandProvider([sys.executable, "-c", "import time; time.sleep(600)"], seconds=0.2)
    with pytest.raises(ProviderError, match=r"has not ended after 0\.2 seconds"):
        await hanging.grow(group(), ["x"])


# Simulated machines


def machines(around: Surroundings) -> Agents:
    """Agents of machines of which there is none yet."""
    return Agents(around, hardware.Hardware((), ()), runtime.SimulatedRuntime(around.clock))


async def test_machines_start_for_pods_run_them_and_go() -> None:
    """Their drivers say what they have after they are registered: nothing more is asked for in between."""
    async with schedulers.cluster() as running:
        await running.create(
            testing.device_class(DRIVER, f'device.driver == "{DRIVER}"'),
            testing.claim_template("gpu").request("r", device_class=DRIVER, count=1),
        )
        started: list[Agents] = []

        def with_agents(around: Surroundings) -> Agents:
            started.append(machines(around))
            return started[0]

        def scaling(around: Surroundings) -> Autoscaler:
            provider = MachineProvider(started[0], around.client)
            return Autoscaler(around, [group()], provider, settings=Settings(unneeded=60, cooldown=0))

        await running.world.start(with_agents, scaling)
        await running.create(gpu_pod("a"), gpu_pod("b"), gpu_pod("c"))
        made = World(running, None)
        await made.rounds(2)
        assert await made.nodes() == ["gpu-new-1", "gpu-new-2"]
        for name in "abc":
            assert (await running.client.get(pod.Pod, name, namespace="default")).status.phase == "Running"
            await running.client.delete(pod.Pod, name, namespace="default", grace_period_seconds=0)
        await made.rounds(20)
        assert await made.nodes() == []
        assert not (await running.client.list(resourceslice.ResourceSlice)).items
        assert await running.events("ScaleDown") == ["Normal ScaleDown: the node is not needed and is removed"] * 2


async def test_machines_of_nodes_that_are_there_are_started_again() -> None:
    async with schedulers.cluster() as running:
        await SimulatedProvider(running.client).grow(group(), ["gpu-new-1"])
        started: list[Agents] = []

        def with_agents(around: Surroundings) -> Agents:
            started.append(machines(around))
            return started[0]

        await running.world.start(with_agents)
        await MachineProvider(started[0], running.client).resume([group(), group("other")])
        await running.settle()
        renewed = await running.client.get(lease.Lease, "gpu-new-1", namespace="kube-node-lease")
        assert renewed.spec.holder_identity == "gpu-new-1"
        with pytest.raises(ProviderError, match="there is one of this name"):
            await MachineProvider(started[0], running.client).grow(group(), ["gpu-new-1"])
