"""Containers whose security context their node's runtime cannot enforce: refused, or run with a warning."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest

from drachma.api import pod
from drachma.node import agent
from drachma.node.agents import Agents
from drachma.node.runtimes.protocol import Work
from drachma.node.simulation import hardware
from drachma.node.simulation.runtime import SimulatedRuntime
from drachma.runtime import Surroundings, controller
from tests.scenarios import controlplane

FIELD = "securityContext.seccompProfile"


class UnableRuntime(SimulatedRuntime):
    """A runtime that knows no seccomp profiles."""

    name: Final = "unable://1"  # type: ignore[misc]
    has_files: Final = True  # type: ignore[misc]

    def unenforced(self, work: Work) -> Sequence[str]:
        return [FIELD] if work.setup.security.seccomp is not None else []


def _document(name: str, context: Mapping[str, object]) -> dict[str, object]:
    container = {"name": "c", "image": "i", "command": ["run"], "securityContext": context}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container], "automountServiceAccountToken": False, "nodeName": "node-0"},
    }


@pytest.mark.parametrize("is_allowed", [False, True], ids=["refused", "allowed"])
async def test_what_cannot_be_enforced(tmp_path: pathlib.Path, is_allowed: bool) -> None:
    files = agent.PodFiles(tmp_path, {}, allows_unenforced=is_allowed)

    def agents(around: Surroundings) -> Any:
        built = Agents(around, hardware.build("cpu", 1), UnableRuntime(around.clock), files=files)
        return lambda: controller.run_all(around, [built])

    async with controlplane.control_plane() as cluster:
        cluster.launch("agents", agents)
        await cluster.settle()
        for name, context in (("plain", {}), ("confined", {"seccompProfile": {"type": "RuntimeDefault"}})):
            await cluster.client.create_document(pod.Pod, _document(name, context))
        await cluster.advance(5)
        pods = [await cluster.client.get(pod.Pod, name, namespace="default") for name in ("plain", "confined")]
        phases = [each.status.phase for each in pods]
        warned, failed = await cluster.events("UnenforcedSecurity"), await cluster.events("Failed")
    if is_allowed:
        assert phases == ["Running", "Running"]
        assert warned == [f"Container c runs without {FIELD}, which runtime unable cannot enforce"]
        assert failed == []
    else:
        refusal = f"Error: container c: runtime unable cannot enforce {FIELD}; "
        assert phases == ["Running", "Pending"]
        assert warned == []
        assert failed == [f"{refusal}--allow-unenforced-security runs such containers without"]
