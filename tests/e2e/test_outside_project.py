"""Somebody else's project: it installs drachma with the testing kit, and its test of three lines passes."""

import os
import subprocess
import sys
from pathlib import Path

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

TEST = """
def test_training_gets_a_gpu(drachma_cluster):
    drachma_cluster.apply(open("train.yaml").read())
    assert drachma_cluster.pod("train").running().devices
"""


def _install(folder: Path) -> None:
    """Puts drachma as it is built into a folder; as its sources where nothing can be fetched to build it with."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), str(PROJECT)]
    if subprocess.run(pip, capture_output=True, timeout=120, check=False).returncode == 0:
        return
    folder.mkdir(exist_ok=True)
    (folder / "drachma").symlink_to(PROJECT / "src" / "drachma", target_is_directory=True)
    metadata = folder / "drachma-0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: drachma\nVersion: 0\n")
    (metadata / "entry_points.txt").write_text("[pytest11]\ndrachma = drachma.testing.pytestplugin\n")


def test_a_project_of_its_own(tmp_path: Path) -> None:
    _install(tmp_path / "site")
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.yaml").write_text(MANIFEST)
    (project / "test_train.py").write_text(TEST)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=project,
        env={**environment, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "1 passed" in ran.stdout
