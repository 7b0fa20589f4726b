"""kubectl with the agent of a node that is a process of its own, and whose containers are processes."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.e2e.conftest import Kubectl
from tests.scenarios import processes

POD = """
apiVersion: v1
kind: Pod
metadata: {name: box}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: none, command: [sh, -c, "echo began; exec sleep 600"]}]
---
apiVersion: v1
kind: Pod
metadata: {name: done}
spec:
  automountServiceAccountToken: false
  restartPolicy: Never
  containers: [{name: c, image: none, command: [sh, -c, "echo done"]}]
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[processes.Process]:
    """A control plane that lets nodes in by a bootstrap token."""
    folder = tmp_path_factory.mktemp("agent")
    options = ("--bootstrap-kubeconfig-out", str(folder / "bootstrap.kubeconfig"))
    with processes.running(folder / "data", command_name="up", options=options) as started:
        yield started


@pytest.fixture(scope="module")
def environment(server: processes.Process, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    return {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(server.kubeconfig), "TZ": "UTC"}


class Agent:
    """The agent of a node, which can be killed and started again."""

    def __init__(self, command: list[str]) -> None:
        self._command = command
        self._process = subprocess.Popen(command, env=dict(os.environ))

    def restart(self) -> None:
        self._process.kill()
        self._process.wait(60)
        self._process = subprocess.Popen(self._command, env=dict(os.environ))

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(60)


@pytest.fixture(scope="module")
def agent(server: processes.Process, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    folder = tmp_path_factory.mktemp("node")
    options = ["--name", "n1", "--kubeconfig", str(folder / "kubeconfig"), "--listen", "127.0.0.1:0"]
    options += ["--bootstrap-kubeconfig", str(server.folder.parent / "bootstrap.kubeconfig")]
    command = [sys.executable, "-c", "from drachma.cli import main; main()", "node", "--root", str(folder / "root")]
    started = Agent([*command, *options, "--runtime", "process"])
    try:
        yield started
    finally:
        started.end()


def test_what_runs_on_a_node_of_its_own(kubectl: Kubectl, agent: Agent) -> None:
    kubectl("apply", "-f", "-", stdin=POD)
    kubectl("wait", "pod/box", "--for=condition=Ready", "--timeout=90s")
    assert kubectl("get", "pod", "box", "-o", "jsonpath={.spec.nodeName} {.status.podIP}") == "n1 127.0.0.1"
    assert kubectl("logs", "box") == "began\n"
    kubectl("wait", "pod/done", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=90s")
    assert kubectl("exec", "box", "--", "echo", "hello") == "hello\n"
    assert kubectl("get", "--raw", "/api/v1/nodes/n1/proxy/healthz") == "ok"
    agent.restart()
    kubectl("wait", "pod/box", "--for=jsonpath={.status.containerStatuses[0].restartCount}=1", "--timeout=90s")
    kubectl("wait", "pod/box", "--for=condition=Ready", "--timeout=90s")
    last = "jsonpath={.status.containerStatuses[0].lastState.terminated.reason}"
    assert kubectl("get", "pod", "box", "-o", last) == "ContainerStatusUnknown"
    assert kubectl("logs", "box", "--previous") == "began\n"
    assert kubectl("logs", "done") == "done\n"
    kubectl("delete", "pod", "box", "--timeout=60s")
