"""Kubectl and the kinds of the two alphas, v1alpha2 and v1alpha3: one object of each, made once for all tests."""

import os
import pathlib
import subprocess
from collections.abc import Callable, Iterator

import pytest
from typer.testing import CliRunner

from drachma.cli import root
from tests.scenarios import processes

Ask = Callable[..., str]

FIRST_ALPHA = """
kind: NodeResourceSlice
apiVersion: resource.k8s.io/v1alpha2
metadata: {name: first-alpha}
spec:
  nodeName: worker-1
  driverName: cards.dra.example.com
  namedResourcesWithAttributes: [{name: gpu-0, attributes: [{name: memory, quantity: 16Gi}]}]
---
kind: ResourceSlice
apiVersion: resource.k8s.io/v1alpha2
metadata: {name: first-alpha}
nodeName: worker-2
driverName: cards.dra.example.com
namedResources: {instances: [{name: gpu-0}]}
---
kind: ResourceClass
apiVersion: resource.k8s.io/v1alpha2
metadata: {name: first-alpha}
driverName: cards.dra.example.com
structuredParameters: true
---
kind: ResourceClassParameters
apiVersion: resource.k8s.io/v1alpha2
metadata: {name: first-alpha}
filters: [{driverName: cards.dra.example.com, namedResources: {selector: "true"}}]
---
kind: ResourceClaimParameters
apiVersion: resource.k8s.io/v1alpha2
metadata: {name: first-alpha}
requests: [{driverName: cards.dra.example.com, namedResourcesWithAttributes: {selector: "true"}}]
---
kind: ResourceClaimTemplate
apiVersion: resource.k8s.io/v1alpha2
metadata: {name: first-alpha}
spec: {spec: {resourceClassName: first-alpha}}
---
kind: ResourceClaim
apiVersion: resource.k8s.io/v1alpha2
metadata: {name: first-alpha}
spec: {resourceClassName: first-alpha}
"""
FIRST_ALPHA_KINDS: tuple[tuple[str, list[str]], ...] = (
    ("noderesourceslices", ["worker-1", "cards.dra.example.com"]),
    ("resourceslices.v1alpha2.resource.k8s.io", ["worker-2", "cards.dra.example.com"]),
    ("resourceclasses", ["cards.dra.example.com"]),
    ("resourceclassparameters", []),
    ("resourceclaimparameters", []),
    ("resourceclaimtemplates.v1alpha2.resource.k8s.io", ["first-alpha", "WaitForFirstConsumer"]),
    ("resourceclaims.v1alpha2.resource.k8s.io", ["first-alpha", "WaitForFirstConsumer", "pending"]),
)


LAST_ALPHA = """
kind: DeviceClass
apiVersion: resource.k8s.io/v1alpha3
metadata: {name: last-alpha}
spec: {selectors: [{cel: {expression: device.driver == "cards.dra.example.com"}}]}
---
kind: ResourceSlice
apiVersion: resource.k8s.io/v1alpha3
metadata: {name: last-alpha}
spec:
  driver: cards.dra.example.com
  nodeName: worker-3
  pool: {name: worker-3, generation: 1, resourceSliceCount: 1}
  devices:
  - name: gpu-0
    basic: {attributes: {model: {string: T1000}}, capacity: {memory: 16Gi}}
---
kind: ResourceClaimTemplate
apiVersion: resource.k8s.io/v1alpha3
metadata: {name: last-alpha}
spec: {spec: {devices: {requests: [{name: gpu, deviceClassName: last-alpha, allocationMode: ExactCount, count: 1}]}}}
---
kind: ResourceClaim
apiVersion: resource.k8s.io/v1alpha3
metadata: {name: last-alpha}
spec: {devices: {requests: [{name: gpu, deviceClassName: last-alpha, allocationMode: ExactCount, count: 1}]}}
"""
LAST_ALPHA_KINDS = ("deviceclasses", "resourceslices", "resourceclaimtemplates", "resourceclaims")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[processes.Process]:
    """A server that serves the first alpha, too."""
    options = (*processes.ALONE, "--enable-first-alpha")
    with processes.running(tmp_path_factory.mktemp("alphas") / "data", options=options) as started:
        yield started


@pytest.fixture(scope="module")
def environment(server: processes.Process, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("home")
    return {"PATH": os.environ["PATH"], "HOME": str(home), "KUBECONFIG": str(server.kubeconfig), "TZ": "UTC"}


@pytest.fixture(scope="module")
def applied(server: processes.Process, kubectl_binary: pathlib.Path, environment: dict[str, str]) -> Iterator[Ask]:
    """Kubectl in a namespace that has one object of each kind."""

    def ask(*arguments: str, stdin: str | None = None) -> str:
        command = [str(kubectl_binary), "-n", "alphas", *arguments]
        done = subprocess.run(
            command, env=environment, input=stdin, text=True, capture_output=True, check=True, timeout=120
        )
        return done.stdout

    ask("create", "namespace", "alphas")
    assert ask("apply", "-f", "-", stdin=FIRST_ALPHA).count("created") == len(FIRST_ALPHA_KINDS)
    assert ask("apply", "-f", "-", stdin=LAST_ALPHA).count("created") == len(LAST_ALPHA_KINDS)
    yield ask
    assert ask("delete", "-f", "-", stdin=FIRST_ALPHA).count("deleted") == len(FIRST_ALPHA_KINDS)
    assert ask("delete", "-f", "-", stdin=LAST_ALPHA).count("deleted") == len(LAST_ALPHA_KINDS)


def test_get_of_the_first_alpha(applied: Ask) -> None:
    for kind, cells in FIRST_ALPHA_KINDS:
        [row] = applied("get", kind, "--no-headers").splitlines()
        assert row.split()[:-1] == ["first-alpha", *cells]
    selected = applied("get", "noderesourceslices", "--field-selector", "spec.nodeName=other", "-o", "name")
    assert selected == ""


def test_describe_of_the_first_alpha(applied: Ask) -> None:
    for kind, _ in FIRST_ALPHA_KINDS:
        assert "resource.k8s.io/v1alpha2" in applied("describe", kind, "first-alpha")


def test_explain_of_the_first_alpha(applied: Ask) -> None:
    for kind, _ in FIRST_ALPHA_KINDS:
        told = applied("explain", kind.partition(".")[0], "--api-version", "resource.k8s.io/v1alpha2")
        assert "VERSION:    v1alpha2" in told


def test_apply_again(applied: Ask) -> None:
    assert applied("apply", "-f", "-", stdin=FIRST_ALPHA).count("unchanged") == len(FIRST_ALPHA_KINDS)
    more = FIRST_ALPHA.replace("quantity: 16Gi", "quantity: 32Gi")
    assert "noderesourceslice.resource.k8s.io/first-alpha configured" in applied("apply", "-f", "-", stdin=more)
    path = "jsonpath={.spec.namedResourcesWithAttributes[0].attributes[0].quantity}"
    assert applied("get", "noderesourceslice", "first-alpha", "-o", path) == "32Gi"


def test_the_last_alpha(applied: Ask) -> None:
    for kind in LAST_ALPHA_KINDS:
        versioned = f"{kind}.v1alpha3.resource.k8s.io"
        assert applied("get", versioned, "last-alpha", "-o", "jsonpath={.apiVersion}") == "resource.k8s.io/v1alpha3"
        assert "last-alpha" in applied("describe", versioned, "last-alpha")
        assert "VERSION:    v1alpha3" in applied("explain", kind, "--api-version", "resource.k8s.io/v1alpha3")
    assert applied("apply", "-f", "-", stdin=LAST_ALPHA).count("unchanged") == len(LAST_ALPHA_KINDS)
    path = "jsonpath={.spec.devices[0].basic.capacity.memory}"
    assert applied("get", "resourceslices.v1alpha3.resource.k8s.io", "last-alpha", "-o", path) == "16Gi"
    path = "jsonpath={.spec.devices[0].capacity.memory.value}"
    assert applied("get", "resourceslices", "last-alpha", "-o", path) == "16Gi"


def test_live_objects_are_migrated(applied: Ask, server: processes.Process) -> None:
    outcome = CliRunner().invoke(root.app, ["migrate", "--kubeconfig", str(server.kubeconfig), "--dry-run"])
    assert (outcome.exit_code, outcome.stdout) == (0, "")
    assert "drachma: checked: ResourceClaim alphas/first-alpha: gets gpu-0 on worker-1" in outcome.stderr.splitlines()
