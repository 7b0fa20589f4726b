"""Public charts, installed by helm on simulated nodes: ``python -m tests.peers.charts`` prints the table of the docs.

The charts are parts of Go modules. Go fetches those into its cache; nothing of them is part of this project.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

from tests import gobuild
from tests.peers import programs
from tests.scenarios import nodecluster

_SECONDS = 240


class Chart(NamedTuple):
    """A chart in a Go module, and the demo manifests that come with it.

    ``sum`` is the hash of the module in Go's form.
    """

    name: str
    module: str
    version: str
    sum: str
    folder: str
    demos: tuple[str, ...] = ()


CHARTS = (
    Chart(
        "dra-example-driver",
        "sigs.k8s.io/dra-example-driver",
        "v0.2.0",
        "h1:wIVDmIza7969HfPl0EFuB2B45Axd2U3Mt9nXex53iYs=",
        "deployments/helm/dra-example-driver",
        demos=("demo/*.yaml",),
    ),
    Chart(
        "jobset",
        "sigs.k8s.io/jobset",
        "v0.10.1",
        "h1:u8QKifNsrWVrlRFe6w2ofYTqFT9ma2DRHxfeB2m9xyU=",
        "charts/jobset",
        demos=("config/samples/batch*.yaml",),
    ),
    Chart(
        "lws",
        "sigs.k8s.io/lws",
        "v0.7.0",
        "h1:qWfzX8+UBak+Hq0+m/PuE3uO0mp/3dmm5q/h/7z31A8=",
        "charts/lws",
        demos=("docs/examples/**/lws*.yaml",),
    ),
    Chart(
        "kueue",
        "sigs.k8s.io/kueue",
        "v0.14.0",
        "h1:lDR34L42/k17opLfkZbZ+taymLaPpryj3ZBbvKqs/N4=",
        "charts/kueue",
        demos=("cmd/kueueviz/examples/*.yaml",),
    ),
)


class Report(NamedTuple):
    """Demo manifests of a chart that were applied, and those that were refused."""

    applied: Sequence[pathlib.Path]
    refused: Sequence[tuple[pathlib.Path, str]]


def fetch(chart: Chart) -> pathlib.Path:
    """Return the folder of a chart's module, fetched if it is not there yet.

    Raises:
        programs.MissingError: there is no Go, or the module cannot be fetched.
    """
    command = [gobuild.go_command(chart.name), "mod", "download", "-json", f"{chart.module}@{chart.version}"]
    # The hash below replaces the checksum database, which need not be reachable.
    environment = {**os.environ, "GONOSUMDB": "*"}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    described = json.loads(done.stdout or "{}")
    if "Dir" not in described:
        raise programs.MissingError(f"{chart.name}: {described.get('Error') or done.stderr.strip()}")
    assert described["Sum"] == chart.sum, f"{chart.module}: has the hash {described['Sum']}, not {chart.sum}"
    return pathlib.Path(described["Dir"])


def install(chart: Chart, source: pathlib.Path, kubeconfig: pathlib.Path) -> int:
    """Install a chart, wait until its pods are ready, and return the number of its objects.

    Raises:
        RuntimeError: helm fails; the text is its message.
    """
    namespace = f"{chart.name}-system"
    where = ["--namespace", namespace, "--kubeconfig", str(kubeconfig)]
    waits = ["--create-namespace", "--wait", "--timeout", "180s"]
    _run_helm("install", chart.name, str(source / chart.folder), *where, *waits)
    manifest = _run_helm("get", "manifest", chart.name, *where)
    return sum(line.startswith("kind: ") for line in manifest.splitlines())


def remove_webhooks(kubeconfig: pathlib.Path) -> None:
    """Delete all webhook configurations: simulated pods answer no calls, as refusals of the API server say."""
    for kind in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        command = ["kubectl", "--kubeconfig", str(kubeconfig), "delete", kind, "--all"]
        subprocess.run(command, capture_output=True, timeout=_SECONDS, check=True)


def try_demos(chart: Chart, source: pathlib.Path, kubeconfig: pathlib.Path) -> Report:
    """Apply each demo manifest of a chart on its own."""
    applied: list[pathlib.Path] = []
    refused: list[tuple[pathlib.Path, str]] = []
    for path in sorted({path for pattern in chart.demos for path in source.glob(pattern)}):
        command = [sys.executable, "-m", "drachma", "apply", "-f", str(path), "--kubeconfig", str(kubeconfig)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        if done.returncode:
            refused.append((path.relative_to(source), done.stderr.strip().splitlines()[-1]))
        else:
            applied.append(path.relative_to(source))
    return Report(applied, refused)


def _run_helm(*arguments: str) -> str:
    helm = programs.built("helm")
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "HOME": home}
        done = subprocess.run(
            [str(helm), *arguments], env=environment, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    if done.returncode:
        raise RuntimeError(f"helm {arguments[0]} {arguments[1]}: {done.stderr.strip()}")
    return done.stdout


def main() -> None:
    """Install all charts, each on a cluster of its own, and print one row for each."""
    sys.stdout.write("| chart | version | installed | demo manifests applied | refused |\n|---|---|---|---|---|\n")
    for chart in CHARTS:
        try:
            source = fetch(chart)
        except programs.MissingError as missing:
            sys.stdout.write(f"| {chart.name} | {chart.version} | not fetched: {missing} | | |\n")
            continue
        with nodecluster.control_plane("--nodes", "3") as server:
            try:
                objects = f"{install(chart, source, server.kubeconfig)} objects, all pods ready"
            except RuntimeError as error:
                objects = str(error).replace("\n", " ")
            remove_webhooks(server.kubeconfig)
            report = try_demos(chart, source, server.kubeconfig)
        total = len(report.applied) + len(report.refused)
        refused = "<br>".join(f"`{path.name}`: {problem}" for path, problem in report.refused)
        row = f"| {chart.name} | {chart.version} | {objects} | {len(report.applied)} of {total} | {refused} |\n"
        sys.stdout.write(row)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
