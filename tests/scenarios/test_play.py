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
