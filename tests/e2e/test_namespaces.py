"""kubectl on a whole control plane: the end of a namespace full of finalizers, quotas and limits."""

import os
from collections.abc import Iterator

import pytest

from tests.e2e.conftest import Kubectl
from tests.scenarios import processes

FULL = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: held, finalizers: [example.com/hold, example.com/too]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: plain}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: held, finalizers: [example.com/hold]}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: worker}
spec: {containers: [{name: c, image: x}]}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: x}]}
"""
CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: %s}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu, count: 2}}]}}
"""
LIMITS = """\
apiVersion: v1
kind: LimitRange
metadata: {name: l}
spec: {limits: [{type: Container, default: {cpu: 1}}]}
"""
DEVICES = "gpu.deviceclass.resource.k8s.io/devices"
PATH = DEVICES.replace(".", r"\.")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[processes.Process]:
    with processes.running(tmp_path_factory.mktemp("up") / "data", command_name="up") as started:
        yield started


@pytest.fixture(scope="module")
def environment(server: processes.Process, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    return {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(server.kubeconfig), "TZ": "UTC"}


def test_a_namespace_ends_when_its_last_finalizer_is_gone(kubectl: Kubectl, namespace: str) -> None:
    kubectl("apply", "-f", "-", stdin=FULL)
    kubectl("delete", "namespace", namespace, "--wait=false")
    of_namespace = f"namespace/{namespace}"
    kubectl("wait", of_namespace, "--for=condition=NamespaceFinalizersRemaining", "--timeout=90s")
    path = '{.status.conditions[?(@.type=="NamespaceFinalizersRemaining")].message}'
    assert kubectl("get", of_namespace, "-o", f"jsonpath={path}") == (
        "Some content in the namespace has finalizers remaining: "
        "example.com/hold in 2 resource instances, example.com/too in 1 resource instances"
    )
    assert kubectl("get", "configmaps,resourceclaims,pods,replicasets", "-o", "name").split() == [
        "configmap/held",
        "resourceclaim.resource.k8s.io/held",
    ]
    refused = kubectl("create", "configmap", "late", fails=True)
    assert f"forbidden: unable to create new content in namespace {namespace} because it is being terminated" in refused
    for held in ("configmap/held", "resourceclaim/held"):
        kubectl("patch", held, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    kubectl("wait", of_namespace, "--for=delete", "--timeout=90s")


def test_quotas_and_limits(kubectl: Kubectl) -> None:
    kubectl("create", "quota", "devices", f"--hard={DEVICES}=3,count/configmaps=5")
    kubectl("wait", "quota/devices", f"--for=jsonpath={{.status.hard.{PATH}}}=3", "--timeout=90s")
    kubectl("apply", "-f", "-", stdin=CLAIM % "one")
    refused = kubectl("apply", "-f", "-", stdin=CLAIM % "two", fails=True)
    assert f"exceeded quota: devices, requested: {DEVICES}=2, used: {DEVICES}=2, limited: {DEVICES}=3" in refused
    used = [line.split() for line in kubectl("describe", "quota", "devices").splitlines()]
    assert [DEVICES, "2", "3"] in used
    kubectl("delete", "resourceclaim", "one")
    kubectl("wait", "quota/devices", f"--for=jsonpath={{.status.used.{PATH}}}=0", "--timeout=90s")
    kubectl("apply", "-f", "-", stdin=CLAIM % "two")
    kubectl("apply", "-f", "-", stdin=LIMITS)
    described = kubectl("describe", "limits", "l")
    assert "Container" in described
    kubectl("run", "worker", "--image=x")
    assert kubectl("get", "pod", "worker", "-o", "jsonpath={.spec.containers[0].resources.limits.cpu}") == "1"
