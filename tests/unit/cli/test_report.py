"""``drachma report`` from files."""

import json
import pathlib
import xml.etree.ElementTree as ET
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from drachma.cli.root import app

OBJECTS: list[dict[str, Any]] = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}},
    },
    {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "n1-gpus"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}],
        },
    },
]


@pytest.fixture
def cluster(tmp_path: pathlib.Path) -> str:
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all(OBJECTS), encoding="utf-8")
    return str(tmp_path)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["report", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_utilisation(cluster: str) -> None:
    assert run("utilisation", "-f", cluster) == (
        "NODE   CPU   MEMORY   DRIVER            POOL   DEVICES   USED   SHARED   BLOCKED   FREE   COUNTERS\n"
        "n1     0%    0%       gpu.example.com   n1     2         0      0        0         2\n"
        "0 of 2 devices in use, 0 blocked by others, on 1 nodes\n"
    )
    assert json.loads(run("utilisation", "-f", cluster, "-o", "json"))["devices"]["free"] == 2
    ET.fromstring(run("utilisation", "-f", cluster, "-o", "svg"))


def test_fragmentation(cluster: str) -> None:
    assert run("fragmentation", "-f", cluster) == (
        "DRIVER            CLAIMS FOR              FIT   IDEAL   LOST\n"
        "gpu.example.com   1 device                2     2       0%\n"
        "gpu.example.com   2 devices of one node   1     1       0%\n"
    )
    assert json.loads(run("fragmentation", "-f", cluster, "-o", "json"))["drivers"][0]["fits"][1]["fits"] == 1
    ET.fromstring(run("fragmentation", "-f", cluster, "-o", "svg"))


def test_a_page_has_the_picture_and_the_numbers(cluster: str) -> None:
    page = CliRunner().invoke(app, ["report", "-f", cluster, "-o", "html"]).output
    assert page.startswith("<!doctype html>")
    assert "<svg " in page
    assert "<summary>All numbers</summary><pre>NODE " in page


@pytest.mark.parametrize("subject", ["utilization", "Utilisation"])
def test_both_spellings(cluster: str, subject: str) -> None:
    assert CliRunner().invoke(app, ["report", subject, "-f", cluster]).exit_code == 0


def test_a_subject_that_does_not_exist(cluster: str) -> None:
    refused = CliRunner().invoke(app, ["report", "utilisaton", "-f", cluster])
    assert str(refused.exception) == "report 'utilisaton': does not exist; did you mean utilisation?"
