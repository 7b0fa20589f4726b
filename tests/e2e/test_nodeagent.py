"""kubectl with the agent of a node that is a process of its own, and whose containers are processes."""

import os
from collections.abc import Iterator

import pytest

from tests.e2e import nodeprocess
from tests.e2e.conftest import Kubectl, eventually
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
    with nodeprocess.control_plane(tmp_path_factory.mktemp("agent")) as started:
        yield started


@pytest.fixture(scope="module")
def environment(server: processes.Process, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    return {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(server.kubeconfig), "TZ": "UTC"}


@pytest.fixture(scope="module")
def agent(server: processes.Process, tmp_path_factory: pytest.TempPathFactory) -> Iterator[nodeprocess.Agent]:
    with nodeprocess.agent(server, tmp_path_factory.mktemp("node"), runtime="process") as started:
        yield started


def test_what_runs_on_a_node_of_its_own(kubectl: Kubectl, agent: nodeprocess.Agent) -> None:
    kubectl("apply", "-f", "-", stdin=POD)
    kubectl("wait", "pod/box", "--for=condition=Ready", "--timeout=90s")
    assert kubectl("get", "pod", "box", "-o", "jsonpath={.spec.nodeName} {.status.podIP}") == "n1 127.0.0.1"
    assert eventually(kubectl, "logs", "box", want="began") == "began\n"
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
    kubectl("delete", "pod", "box", "--timeout=90s")
