"""``drachma scheduler`` as users run it: processes of their own, by kubeconfig; one of them leads, or all work."""

import asyncio
import pathlib

import pytest

from drachma.api import event, lease, pod, resourceclaim
from drachma.client import Client, http, protocol
from drachma.runtime import clock
from drachma.scheduler.peering import peerlease
from drachma.testing import claim, device_class, node, resource_slice
from drachma.testing import pod as a_pod
from tests import patience
from tests.scenarios import processes, schedulers

COUNT = 100


async def bound(client: Client, name: str) -> None:
    """Creates a pod and returns when it is bound."""
    made = await client.create(schedulers.completed(a_pod(name).container("c").build()))
    start = made.metadata.resource_version
    async with client.watch(pod.Pod, protocol.Selection("default"), resource_version=start) as watch:
        while True:
            for event in await watch.batch():
                if event.object.metadata.name == name and event.object.spec.node_name:
                    return


async def test_schedulers_lead_one_after_the_other(tmp_path: pathlib.Path) -> None:
    with processes.running(tmp_path / "data") as server:
        arguments = ("--kubeconfig", str(server.kubeconfig))
        async with (
            asyncio.timeout(2 * patience.SECONDS),
            http.HttpClient(http.find_access(server.kubeconfig), clock=clock.SystemClock()) as client,
        ):
            await client.create(node("n1").build())
            async with processes.command("scheduler", *arguments) as first:
                await bound(client, "p")
                held = await client.get(lease.Lease, "kube-scheduler", namespace="kube-system")
                async with processes.command("scheduler", *arguments) as second:
                    assert await processes.stopped(first) == 0
                    await bound(client, "q")
                    taken = await client.get(lease.Lease, "kube-scheduler", namespace="kube-system")
                    assert taken.spec.holder_identity != held.spec.holder_identity
                    assert await processes.stopped(second) == 0


async def test_a_scheduler_takes_up_what_a_killed_one_left(tmp_path: pathlib.Path) -> None:
    """Without peers nobody else can have a pod in hand: what the dead one began is simply gone on with."""
    with processes.running(tmp_path / "data") as server:
        arguments = ("--kubeconfig", str(server.kubeconfig), "--no-leader-elect")
        async with (
            asyncio.timeout(2 * patience.SECONDS),
            http.HttpClient(http.find_access(server.kubeconfig), clock=clock.SystemClock()) as client,
        ):
            await create_pods(client)
            async with processes.command("scheduler", *arguments) as first:
                await until_bound(client, left=COUNT - 1)
                first.kill()
            async with processes.command("scheduler", *arguments):
                await until_bound(client, left=0)
            refused = [each for each in (await client.list(event.Event)).items if each.reason == "FailedScheduling"]
            assert refused == []


async def test_two_schedulers_share_the_work_and_one_dies(tmp_path: pathlib.Path) -> None:
    with processes.running(tmp_path / "data") as server:
        arguments = ("--kubeconfig", str(server.kubeconfig), "--peers")
        async with (
            asyncio.timeout(2 * patience.SECONDS),
            http.HttpClient(http.find_access(server.kubeconfig), clock=clock.SystemClock()) as client,
            processes.command("scheduler", *arguments),
            processes.command("scheduler", *arguments) as second,
        ):
            await until_joined(client, 2)
            await create_pods(client)
            await until_bound(client, left=COUNT - 10)
            second.kill()
            await until_bound(client, left=0)
            claims = (await client.list(resourceclaim.ResourceClaim)).items
            allocations = [each.status.allocation for each in claims if each.status.allocation is not None]
            devices = {result.device for each in allocations for result in each.devices.results}
            assert len(allocations) == len(devices) == COUNT
            refused = [each for each in (await client.list(event.Event)).items if each.reason == "FailedScheduling"]
            assert refused == []


async def until_joined(client: Client, count: int) -> None:
    """Returns when so many schedulers are there."""
    listing = await client.list(lease.Lease, peerlease.SELECTION)
    names = {each.metadata.name for each in listing.items}
    version = listing.resource_version
    async with client.watch(lease.Lease, peerlease.SELECTION, resource_version=version) as watch:
        while len(names) < count:
            names |= {each.object.metadata.name for each in await watch.batch()}


async def create_pods(client: Client) -> None:
    """A node with as many devices as pods, each with a claim."""
    await client.create(node("n1").build())
    await client.create(device_class("gpu", 'device.driver == "gpu.example.com"').build())
    gpus = [f"gpu-{number}" for number in range(COUNT)]
    await client.create(resource_slice("n1", driver="gpu.example.com").on_node("n1").devices(*gpus).build())
    for number in range(COUNT):
        await client.create(claim(f"c{number}").request("gpu", device_class="gpu").build())
        waiting = a_pod(f"p{number}").container("c", claims=("x",)).claim("x", claim=f"c{number}")
        await client.create(schedulers.completed(waiting.build()))


async def until_bound(client: Client, *, left: int) -> None:
    """Returns when no more than so many pods are left that are not bound."""
    listing = await client.list(pod.Pod)
    pending = {each.metadata.name for each in listing.items if not each.spec.node_name}
    async with client.watch(pod.Pod, resource_version=listing.resource_version) as watch:
        while len(pending) > left:
            for each in await watch.batch():
                if each.object.spec.node_name:
                    pending.discard(each.object.metadata.name)


@pytest.mark.parametrize(
    ("arguments", "code", "want"),
    [
        pytest.param(("--kubeconfig", "/nowhere/config"), 1, "/nowhere/config", id="no-kubeconfig"),
        pytest.param(("--feature-gates", "DRAMagic=true"), 2, "unrecognized feature gate: DRAMagic", id="unknown-gate"),
    ],
)
async def test_refused(arguments: tuple[str, ...], code: int, want: str) -> None:
    async with asyncio.timeout(patience.SECONDS), processes.command("scheduler", *arguments) as process:
        _, said = await process.communicate()
        assert process.returncode == code
        assert said.decode().startswith("drachma: ")
        assert want in said.decode()
