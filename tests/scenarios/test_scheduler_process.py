"""``drachma scheduler`` as users run it: a process of its own, by kubeconfig, one leader at a time."""

import asyncio
import pathlib

import pytest

from drachma.api import lease, pod
from drachma.client import Client, http, protocol
from drachma.runtime import clock
from drachma.testing import node
from drachma.testing import pod as a_pod
from tests.scenarios import processes, schedulers


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
            asyncio.timeout(120),
            http.HttpClient(http.find_access(server.kubeconfig), time=clock.SystemClock()) as client,
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


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        pytest.param(("--kubeconfig", "/nowhere/config"), "/nowhere/config", id="no-kubeconfig"),
        pytest.param(("--feature-gates", "DRAMagic=true"), "unrecognized feature gate: DRAMagic", id="unknown-gate"),
    ],
)
async def test_refused(arguments: tuple[str, ...], want: str) -> None:
    async with asyncio.timeout(60), processes.command("scheduler", *arguments) as process:
        _, said = await process.communicate()
        assert process.returncode == 1
        assert said.decode().startswith("drachma: ")
        assert want in said.decode()
