"""``drachma play`` as CI runs it: workloads, machines, logs, and exit codes."""

import os
import pathlib
import subprocess
import sys

import pytest

DEPLOYMENT = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.simulation.drachma.dev}}]}}}
---
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web}
spec:
  replicas: 2
  serviceName: web
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]
      containers: [{name: c, image: i, resources: {claims: [{name: gpu}]}}]
"""
WAITING = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  nodeSelector: {no: such}
  containers: [{name: c, image: i}]
"""


def play(folder: pathlib.Path, manifest: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "m.yaml").write_text(manifest)
    command = [sys.executable, "-m", "drachma", "play", "-f", str(folder / "m.yaml"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ, timeout=180)


def test_pods_of_a_workload_run_on_machines(tmp_path: pathlib.Path) -> None:
    answer = play(tmp_path, DEPLOYMENT, "--nodes", "1", "--logs")
    assert answer.returncode == 0, answer.stderr
    lines = answer.stdout.splitlines()
    assert lines[0] == "pod default/web-0: on node node-0"
    assert lines[1].startswith("  gpu, gpu: gpu.simulation.drachma.dev/node-0/gpu-")
    assert any(line.startswith("  | has device gpu.simulation.drachma.dev/") for line in lines)
    assert lines[-1] == "2 of 2 pods have a node"


def test_a_pod_that_waits(tmp_path: pathlib.Path) -> None:
    answer = play(tmp_path, WAITING, "--nodes", "1", "--profile", "cpu")
    assert answer.returncode == 1
    assert "waits: 0/1 nodes are available" in answer.stdout


@pytest.mark.parametrize(
    ("manifest", "want"),
    [
        pytest.param(WAITING.replace("image: i", "imagge: i"), 'unknown field "spec.containers[0].imagge"', id="typo"),
        pytest.param("a: [", "not YAML", id="not-yaml"),
    ],
)
def test_bad_input(tmp_path: pathlib.Path, manifest: str, want: str) -> None:
    answer = play(tmp_path, manifest)
    assert answer.returncode == 2
    assert want in answer.stderr
    assert "Traceback" not in answer.stderr


EVERYTHING = """
apiVersion: lamps.example.com/v1
kind: Lamp
metadata: {name: one}
spec: {colour: red}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.lamps.example.com}
spec:
  group: lamps.example.com
  scope: Namespaced
  names: {plural: lamps, kind: Lamp}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: v1
kind: Node
metadata: {name: hand-made}
status: {capacity: {cpu: "8", pods: "10"}, allocatable: {cpu: "8", pods: "10"}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: cores}
spec: {selectors: [{cel: {expression: 'device.driver == "cpu.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: cpu.example.com
  nodeName: hand-made
  pool: {name: hand-made, generation: 1, resourceSliceCount: 1}
  devices: [{name: socket-0, nodeAllocatableResources: {cpu: {mapping: {deviceMultiplier: "4"}}}}]
---
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClass
metadata: {name: old}
driverName: cpu.example.com
structuredParameters: true
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: cores}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  resourceClaims: [{name: r, resourceClaimName: c}]
  containers: [{name: c, image: i, resources: {claims: [{name: r}]}}]
"""


def test_definitions_nodes_made_by_hand_and_the_first_alpha(tmp_path: pathlib.Path) -> None:
    answer = play(tmp_path, EVERYTHING, "--feature-gates", "DrachmaFirstAlpha=true")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines()[:2] == [
        "pod default/p: on node hand-made",
        "  r, r: cpu.example.com/hand-made/socket-0",
    ]
