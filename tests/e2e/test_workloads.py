"""kubectl on a control plane with simulated machines: rollouts that end, and a drain that minds a budget."""

import json
import os
import pathlib
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests import patience
from tests.e2e.conftest import Kubectl
from tests.scenarios import processes


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[processes.Process]:
    """A whole control plane with two machines."""
    folder = tmp_path_factory.mktemp("workloads") / "data"
    options = ("--nodes", "2", "--profile", "cpu")
    with processes.running(folder, command_name="up", options=options) as started:
        yield started


@pytest.fixture(scope="module")
def environment(server: processes.Process, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    return {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(server.kubeconfig), "TZ": "UTC"}


def _specs(kubectl: Kubectl, *selection: str) -> list[dict[str, Any]]:
    """What the pods are that are not about to go: a rollout has ended before the last old one has."""
    pods = json.loads(kubectl("get", "pods", *selection, "-o", "json"))["items"]
    return [pod["spec"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]


def _nodes(kubectl: Kubectl) -> list[str]:
    return sorted(spec["nodeName"] for spec in _specs(kubectl))


def _images(kubectl: Kubectl, *selection: str) -> list[str]:
    return [spec["containers"][0]["image"] for spec in _specs(kubectl, *selection)]


def _addresses(kubectl: Kubectl) -> list[str]:
    return kubectl("get", "pods", "-o", "jsonpath={.items[*].status.podIP}").split()


def _endpoints(kubectl: Kubectl, service: str, *, count: int) -> set[str]:
    """The addresses of a service that are ready, once there are so many."""
    selector = f"kubernetes.io/service-name={service}"

    def ready() -> set[str]:
        slices = json.loads(kubectl("get", "endpointslices", "-l", selector, "-o", "json"))
        endpoints = [each for one in slices["items"] for each in one["endpoints"] or ()]
        return {address for each in endpoints if each["conditions"]["ready"] for address in each["addresses"]}

    return patience.until(ready, lambda addresses: len(addresses) == count, what=f"{count} endpoints of {service}")


def test_a_deployment_is_rolled_out_scaled_and_undone(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=web:1", "--replicas=2")
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=90s")
    kubectl("expose", "deployment", "web", "--port=80")
    assert _endpoints(kubectl, "web", count=2) <= set(_addresses(kubectl))
    kubectl("set", "image", "deployment/web", "web=web:2")
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=90s")
    kubectl("scale", "deployment/web", "--replicas=3")
    kubectl("rollout", "undo", "deployment/web")
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=90s")
    assert _images(kubectl) == ["web:1"] * 3
    assert kubectl("get", "deployment", "web", "--no-headers").split()[:4] == ["web", "3/3", "3", "3"]


def test_a_pod_is_gone_when_its_deletion_returns(kubectl: Kubectl) -> None:
    kubectl("run", "one", "--image=x")
    kubectl("wait", "pod/one", "--for=condition=Ready", "--timeout=90s")
    kubectl("delete", "pod", "one", "--timeout=90s")
    assert "NotFound" in kubectl("get", "pod", "one", fails=True)


def test_a_drain_minds_the_budget(kubectl: Kubectl, kubectl_binary: pathlib.Path, environment: dict[str, str]) -> None:
    kubectl("create", "deployment", "web", "--image=web:1", "--replicas=4")
    kubectl("rollout", "status", "deployment/web", "--timeout=90s")
    kubectl("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=3")
    kubectl("wait", "poddisruptionbudget/web", "--for=condition=DisruptionAllowed", "--timeout=90s")

    def drained() -> list[str]:
        kubectl("drain", "node-0", "--timeout=90s")
        kubectl("rollout", "status", "deployment/web", "--timeout=90s")
        return _nodes(kubectl)

    # A pod may still come to a node before the scheduler has heard that nothing more is to run there.
    patience.until(drained, lambda nodes: nodes == ["node-1"] * 4, what="all pods are on the other node")
    kubectl("delete", "poddisruptionbudget", "web")
    kubectl("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=4")
    kubectl("wait", "poddisruptionbudget/web", "--for=jsonpath={.status.observedGeneration}=1", "--timeout=90s")
    command = [str(kubectl_binary), "drain", "node-1", "--timeout=90s"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as draining:
        assert draining.stderr is not None, "it is piped"
        refusal = "Cannot evict pod as it would violate the pod's disruption budget"
        assert any(refusal in line for line in draining.stderr)
        draining.kill()
    assert _nodes(kubectl) == ["node-1"] * 4
    kubectl("uncordon", "node-0", "node-1")


STATEFUL = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: "db:1", volumeMounts: [{name: data, mountPath: /data}]}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: c, image: "agent:1"}]}
"""


@pytest.mark.parametrize(
    ("workload", "container", "pods"),
    [
        pytest.param("statefulset/db", "db", 2, id="stateful-set"),
        pytest.param("daemonset/agent", "agent", 2, id="daemon-set"),
    ],
)
def test_other_workloads_are_rolled_out_and_undone(
    kubectl: Kubectl, tmp_path: pathlib.Path, workload: str, container: str, pods: int
) -> None:
    (tmp_path / "w.yaml").write_text(STATEFUL)
    kubectl("apply", "-f", str(tmp_path / "w.yaml"))
    kubectl("rollout", "status", workload, "--timeout=90s")
    kubectl("set", "image", workload, f"c={container}:2")
    kubectl("rollout", "status", workload, "--timeout=90s")
    assert _images(kubectl, "-l", f"app={container}") == [f"{container}:2"] * pods
    kubectl("rollout", "undo", workload)
    kubectl("rollout", "status", workload, "--timeout=90s")
    assert _images(kubectl, "-l", f"app={container}") == [f"{container}:1"] * pods
    assert len(kubectl("rollout", "history", workload).strip().splitlines()) == 4


def test_a_cron_job_makes_jobs(kubectl: Kubectl) -> None:
    kubectl("create", "cronjob", "tick", "--image=x", "--schedule=0 0 1 1 *")
    kubectl("create", "job", "--from=cronjob/tick", "now")
    kubectl("wait", "job/now", "--for=condition=Complete", "--timeout=90s")
    assert kubectl("get", "cronjob", "tick", "--no-headers").split()[6:8] == ["<none>", "False"]
