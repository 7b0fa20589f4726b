"""``drachma get`` on a running control plane, as a user runs it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests import patience
from tests.scenarios import processes


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[processes.Process]:
    folder = tmp_path_factory.mktemp("get") / "data"
    options = ("--nodes", "2", "--profile", "gpu-server")
    with processes.running(folder, command_name="up", options=options) as started:
        yield started


def get(server: processes.Process, *arguments: str) -> str:
    command = [sys.executable, "-m", "drachma", "get", *arguments, "--kubeconfig", str(server.kubeconfig)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ, timeout=120)
    return answer.stdout


def test_nodes_and_devices(server: processes.Process) -> None:
    lines = patience.until(
        lambda: get(server, "nodes").splitlines(),
        # What machines have comes a moment after they are there.
        lambda seen: [line.split()[3] for line in seen[1:]] == ["gpu=8/8,nic=4/4"] * 2,
        what="two nodes with their devices",
    )
    assert lines[0].split() == ["NAME", "STATUS", "PODS", "FREE", "DEVICES", "AGE"]
    assert [line.split()[:3] for line in lines[1:]] == [["node-0", "Ready", "0/110"], ["node-1", "Ready", "0/110"]]
    devices = json.loads(
        get(server, "devices", "--node", "node-1", "--driver", "gpu.simulation.drachma.dev", "-o", "json")
    )
    assert [each["name"] for each in devices["items"]] == [f"gpu-{number}" for number in range(8)]
