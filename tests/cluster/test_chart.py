"""The Helm chart and the kustomize bases, rendered as users do: the objects are those of ``drachma manifests``."""

import json
import pathlib
import subprocess
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from drachma.cli.root import app
from drachma.controllers import descriptors
from tests.cluster import programs

Document = dict[str, Any]

DEPLOY = pathlib.Path(__file__).parents[2] / "deploy"
CONTROLLERS = ",".join(each.name for each in descriptors.chosen())


def _run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    programs.require(program)
    return subprocess.run([str(programs.built(program)), *arguments], capture_output=True, text=True, check=False)


def _by_name(text: str) -> dict[tuple[str, str, str], Document]:
    documents = [each for each in yaml.safe_load_all(text) if each]
    return {(each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each for each in documents}


def _printed(*arguments: str) -> dict[tuple[str, str, str], Document]:
    result = CliRunner().invoke(app, ["manifests", *arguments])
    assert result.exit_code == 0, result.output
    return _by_name(result.stdout)


@pytest.mark.parametrize(
    ("values", "arguments"),
    [
        pytest.param({}, ["scheduler"], id="defaults"),
        pytest.param(
            {
                "image": "registry.example.com/drachma:1",
                "namespace": "gpus",
                "replicas": 3,
                "scheduler": {"schedulerName": "pilot", "neighbours": True},
                "queueing": {"enabled": True},
                "exporter": {"enabled": True},
            },
            [
                *("scheduler", "queueing", "exporter", "--image=registry.example.com/drachma:1", "-n", "gpus"),
                *("--replicas=3", "--scheduler-name=pilot", "--neighbours"),
            ],
            id="all-but-controllers",
        ),
        pytest.param(
            {"scheduler": {"enabled": False}, "controllers": {"enabled": True, "names": CONTROLLERS.split(",")}},
            ["controllers", f"--controllers={CONTROLLERS}"],
            id="all-controllers",
        ),
    ],
)
def test_the_chart_gives_the_same_objects(values: Document, arguments: list[str], tmp_path: pathlib.Path) -> None:
    file = tmp_path / "values.json"
    file.write_text(json.dumps(values))
    done = _run("helm", "template", "drachma", str(DEPLOY / "chart"), "-f", str(file), "--kube-version", "1.37.0")
    assert done.returncode == 0, done.stderr
    assert _by_name(done.stdout) == _printed(*arguments)


def test_the_chart_has_no_mistakes() -> None:
    done = _run("helm", "lint", "--strict", str(DEPLOY / "chart"))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("values", "want"),
    [
        pytest.param("replicas=0", "replicas", id="no-replicas"),
        pytest.param("replica=2", "replica", id="unknown-value"),
        pytest.param("controllers.enabled=true", "name the controllers", id="no-controllers"),
        pytest.param("controllers.enabled=true,controllers.names={nothing}", "nothing is not known", id="unknown"),
    ],
)
def test_wrong_values_are_refused(values: str, want: str) -> None:
    done = _run("helm", "template", "drachma", str(DEPLOY / "chart"), "--set", values, "--kube-version", "1.37.0")
    assert done.returncode != 0
    assert want in done.stderr


@pytest.mark.parametrize("name", ["exporter", "queueing", "scheduler"])
def test_a_base_gives_the_same_objects(name: str) -> None:
    done = _run("kustomize", "build", str(DEPLOY / "kustomize" / name))
    assert done.returncode == 0, done.stderr
    assert _by_name(done.stdout) == _printed(name, "--image=drachma")
