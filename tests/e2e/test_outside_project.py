"""Somebody else's project: it installs drachma with the testing kit, and its test of three lines passes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]

MANIFEST = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.simulation.drachma.dev}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  resourceClaims: [{name: gpu, resourceClaimName: gpu}]
  containers: [{name: c, image: train:1, resources: {claims: [{name: gpu}]}}]
"""

PROGRAM = """
import sys, pytest
code = pytest.main(sys.argv[1:])
import drachma
print(drachma.__file__)
sys.exit(code)
"""

TEST = """
def test_training_gets_a_gpu(drachma_cluster):
    drachma_cluster.apply(open("train.yaml").read())
    assert drachma_cluster.pod("train").running().devices
"""


_OFFLINE = ("No matching distribution found", "ConnectionError", "Connection refused", "Temporary failure", "timed out")


def _install(folder: Path) -> None:
    """Puts drachma, built as it is published, into a folder; what it depends on is here already."""
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-compile",
        "--disable-pip-version-check",
    ]
    pip += ["--target", str(folder), str(PROJECT)]
    ran = subprocess.run(pip, capture_output=True, text=True, timeout=300, check=False)
    if ran.returncode and any(sign in ran.stderr for sign in _OFFLINE):
        pytest.skip("the package registry cannot be reached: drachma cannot be built without what builds it")
    assert ran.returncode == 0, ran.stderr


def test_a_project_of_its_own(tmp_path: Path) -> None:
    _install(tmp_path / "site")
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.yaml").write_text(MANIFEST)
    (project / "test_train.py").write_text(TEST)
    site = tmp_path / "site"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, "-q", "-p", "no:cacheprovider"],
        cwd=project,
        env={**environment, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 passed" in ran.stdout
    assert ran.stdout.splitlines()[-1] == str(site / "drachma" / "__init__.py")
