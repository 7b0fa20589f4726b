"""``drachma controllers`` as users run it: a process of its own, by kubeconfig, one leader at a time."""

import asyncio
import pathlib

import pytest

from drachma.api import lease, pod
from drachma.client import Client, http
from drachma.runtime import clock
from tests import patience
from tests.scenarios import processes
from tests.scenarios.test_controllers import watched
from tests.unit.controllers import builders


async def said(process: asyncio.subprocess.Process, text: str) -> None:
    """Waits for a line in the log."""
    assert process.stderr is not None, "it is piped"
    async for line in process.stderr:
        if text in line.decode():
            return
    raise AssertionError(f"it ended without saying {text!r}")


async def make_pod(client: Client, name: str) -> None:
    """A pod from a template; returns when its claim is made."""
    await client.create(builders.a_pod(name, gpu="t").build())

    async def has_claim() -> bool:
        return bool((await client.get(pod.Pod, name, namespace="default")).status.resource_claim_statuses)

    await watched(client, pod.Pod, has_claim)


async def test_controllers_lead_one_after_the_other(tmp_path: pathlib.Path) -> None:
    with processes.running(tmp_path / "data") as server:
        access = http.find_access(server.kubeconfig)
        arguments = ("--kubeconfig", str(server.kubeconfig))
        async with asyncio.timeout(2 * patience.SECONDS), http.HttpClient(access, clock=clock.SystemClock()) as client:
            await client.create(builders.a_template())
            async with processes.command("controllers", *arguments) as first:
                await make_pod(client, "p")
                async with processes.command("controllers", *arguments) as second:
                    held = await client.get(lease.Lease, "kube-controller-manager", namespace="kube-system")
                    assert await processes.stopped(first) == 0
                    await said(second, "leads by lease kube-system/kube-controller-manager")
                    await make_pod(client, "q")
                    taken = await client.get(lease.Lease, "kube-controller-manager", namespace="kube-system")
                    assert taken.spec.holder_identity != held.spec.holder_identity
                    assert await processes.stopped(second) == 0


@pytest.mark.parametrize(
    ("arguments", "code", "want"),
    [
        pytest.param(("--controllers", "nonsense"), 2, "nonsense is not known: there are", id="unknown-controller"),
        pytest.param(("--controllers", "-job-controller"), 2, "selects no controller", id="no-controller"),
        pytest.param(("--feature-gates", "Nonsense=true"), 2, "unrecognized feature gate: Nonsense", id="unknown-gate"),
        pytest.param(("--kubeconfig", "/nonexistent"), 1, "/nonexistent", id="no-kubeconfig"),
    ],
)
async def test_what_it_refuses(arguments: tuple[str, ...], code: int, want: str) -> None:
    async with asyncio.timeout(patience.SECONDS), processes.command("controllers", *arguments) as process:
        _, output = await process.communicate()
        assert process.returncode == code
        assert want in output.decode()
        assert output.decode().count("\n") == 1
