"""``drachma migrate``: manifests on standard output, the report on standard error."""

import pathlib

from typer.testing import CliRunner

from drachma.api import manifest
from drachma.cli import root

CLUSTER = """
apiVersion: resource.k8s.io/v1alpha2
kind: NodeResourceSlice
metadata: {name: s}
spec:
  nodeName: n
  driverName: d.example.com
  namedResourcesWithAttributes: [{name: gpu-0, attributes: [{name: memory, quantity: 16Gi}]}]
---
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClass
metadata: {name: c}
driverName: d.example.com
structuredParameters: true
---
apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClaim
metadata: {name: my}
spec: {resourceClassName: c, allocationMode: Immediate}
"""
IMMEDIATE = (
    "ResourceClaim default/my: allocationMode Immediate: claims of v1 do not stay allocated when no pod uses them"
)


def run(tmp_path: pathlib.Path, *arguments: str) -> tuple[int, str, str]:
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER)
    outcome = CliRunner().invoke(root.app, ["migrate", "-f", str(path), *arguments])
    return outcome.exit_code, outcome.stdout, outcome.stderr


def test_manifests_and_report(tmp_path: pathlib.Path) -> None:
    code, out, err = run(tmp_path)
    assert code == 0
    kinds = [each.content["kind"] for each in manifest.read(out)]
    assert kinds == ["DeviceClass", "ResourceClaim", "ResourceSlice"]
    assert err.splitlines() == [
        f"drachma: not expressed: {IMMEDIATE}",
        "drachma: checked: ResourceClaim default/my: gets gpu-0 on n",
    ]


def test_a_dry_run_only_reports(tmp_path: pathlib.Path) -> None:
    code, out, err = run(tmp_path, "--dry-run", "--no-check")
    assert (code, out) == (0, "")
    assert len(err.splitlines()) == 1
