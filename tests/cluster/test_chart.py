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
                "dashboard": {"enabled": True},
                "node": {"enabled": True},
            },
            [
                *(
                    "scheduler",
                    "queueing",
                    "exporter",
                    "dashboard",
                    "node",
                    "--image=registry.example.com/drachma:1",
                    "-n",
                    "gpus",
                ),
                *("--replicas=3", "--scheduler-name=pilot", "--neighbours"),
            ],
            id="all-but-controllers",
        ),
        pytest.param(
            {"scheduler": {"enabled": False}, "node": {"enabled": True, "driverImage": "registry.example.com/gpu:1"}},
            ["node", "--driver-image=registry.example.com/gpu:1"],
            id="agents-with-a-driver",
        ),
        pytest.param(
            {"scheduler": {"enabled": False}, "controllers": {"enabled": True, "names": CONTROLLERS.split(",")}},
            ["controllers", f"--controllers={CONTROLLERS}"],
            id="all-controllers",
        ),
        pytest.param(
            {
                "scheduler": {"enabled": False},
                "dashboard": {
                    "enabled": True,
                    "publicUrl": "https://dashboard.example.com",
                    "certificateSecret": "dashboard-tls",
                    "userHeader": "X-Forwarded-User",
                    "groupsHeader": "X-Forwarded-Groups",
                    "trustedProxies": ["10.0.0.0/8", "fd00::/8"],
                },
            },
            [
                *("dashboard", "--public-url=https://dashboard.example.com", "--certificate-secret=dashboard-tls"),
                *("--proxy-user-header=X-Forwarded-User", "--proxy-groups-header=X-Forwarded-Groups"),
                *("--trusted-proxy=10.0.0.0/8", "--trusted-proxy=fd00::/8"),
            ],
            id="dashboard-behind-a-proxy",
        ),
        pytest.param(
            {
                "namespace": "gpus",
                "scheduler": {"enabled": False},
                "queueing": {"enabled": True, "webhooks": {"enabled": True}},
                "autoscaler": {"enabled": True},
            },
            ["queueing", "--webhooks", "autoscaler", "-n", "gpus"],
            id="webhooks-by-cert-manager",
        ),
        pytest.param(
            {
                "scheduler": {"enabled": False},
                "queueing": {"enabled": True, "webhooks": {"enabled": True, "caBundle": "YXV0aG9yaXR5"}},
                "autoscaler": {"enabled": True, "command": "make-nodes --fast", "nodeGroups": "a: 'b'\nc: \"d\"\n"},
            },
            [
                *("queueing", "--webhook-authority=ca.crt", "autoscaler", "--node-groups=groups.yaml"),
                "--command=make-nodes --fast",
            ],
            id="own-certificate-and-groups",
        ),
    ],
)
def test_the_chart_gives_the_same_objects(
    values: Document, arguments: list[str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ca.crt").write_text("authority")
    (tmp_path / "groups.yaml").write_text("a: 'b'\nc: \"d\"\n")
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
        pytest.param("dashboard.enabled=true,dashboard.userHeader=X-User", "go together", id="header-of-anybody"),
        pytest.param("dashboard.publicUrl=dashboard.example.com", "publicUrl", id="url-without-scheme"),
        pytest.param("controllers.enabled=true", "name the controllers", id="no-controllers"),
        pytest.param("controllers.enabled=true,controllers.names={nothing}", "nothing is not known", id="unknown"),
    ],
)
def test_wrong_values_are_refused(values: str, want: str) -> None:
    done = _run("helm", "template", "drachma", str(DEPLOY / "chart"), "--set", values, "--kube-version", "1.37.0")
    assert done.returncode != 0
    assert want in done.stderr


BASES = ("autoscaler", "dashboard", "exporter", "node", "queueing", "queueing-webhooks", "scheduler")


@pytest.mark.parametrize("name", BASES)
def test_a_base_gives_the_same_objects(name: str) -> None:
    done = _run("kustomize", "build", str(DEPLOY / "kustomize" / name))
    assert done.returncode == 0, done.stderr
    component, *options = name.split("-")
    assert _by_name(done.stdout) == _printed(component, *(f"--{each}" for each in options), "--image=drachma")
