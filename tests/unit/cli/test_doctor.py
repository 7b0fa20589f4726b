"""``drachma doctor`` from files: what it prints, and its exit code."""

import json
import pathlib
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from drachma.cli.root import app


def _slice(count: int) -> dict[str, Any]:
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": count}
    spec = {"driver": "gpu.example.com", "nodeName": "n1", "pool": pool, "devices": [{"name": "gpu-0"}]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}


def _run(folder: pathlib.Path, *arguments: str, slices: int) -> tuple[int, str]:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": ready}
    (folder / "cluster.yaml").write_text(yaml.safe_dump_all([node, _slice(slices)]), encoding="utf-8")
    result = CliRunner().invoke(app, ["doctor", "-f", str(folder), *arguments])
    return result.exit_code, result.output


def test_a_healthy_cluster(tmp_path: pathlib.Path) -> None:
    assert _run(tmp_path, slices=1) == (0, "No problems.\n")


def test_a_finding_with_its_evidence_and_advice(tmp_path: pathlib.Path) -> None:
    want = (
        "ERROR pool gpu.example.com/n1: has 1 of 2 slices, so no device of it is allocated [pool-incomplete]\n"
        "    ResourceSlice s\n"
        "    advice: look at the log of the driver gpu.example.com; it has not published the rest\n"
    )
    assert _run(tmp_path, slices=2) == (1, want)


def test_json(tmp_path: pathlib.Path) -> None:
    code, text = _run(tmp_path, "-o", "json", slices=2)
    assert (code, [each["check"] for each in json.loads(text)["findings"]]) == (1, ["pool-incomplete"])


@pytest.mark.parametrize(
    ("options", "want"),
    [
        pytest.param(["--fix"], "--fix: goes with a running cluster, not with -f", id="fix-of-files"),
        pytest.param(["--yes"], "--yes: goes with --fix", id="yes-alone"),
    ],
)
def test_options_that_do_not_go_together(tmp_path: pathlib.Path, options: list[str], want: str) -> None:
    result = CliRunner().invoke(app, ["doctor", "-f", str(tmp_path), *options])
    assert want in f"{result.output}{result.exception}"
    assert result.exit_code != 0
