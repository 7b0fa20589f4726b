"""What ``drachma manifests node`` installs: its containers as processes, with the variables and the account printed."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from drachma.cli.root import app
from tests import patience
from tests.cluster import objects
from tests.scenarios import processes, wire

Document = dict[str, Any]

MACHINE = "machine-1"
NODE = f"drachma-{MACHINE}"
EXAMPLE = pathlib.Path(__file__).parents[2] / "examples" / "drivers" / "gpu-sim" / "gpu_sim.py"
ACCOUNT = "/api/v1/namespaces/drachma-system/serviceaccounts/drachma-node"
TOLERATION = {"key": "drachma.dev/simulated", "operator": "Exists"}
_KINDS = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding")


class Pod:
    """A pod of the DaemonSet: the folders that its containers see, and the values of its variables."""

    def __init__(self, spec: Document, folder: pathlib.Path) -> None:
        self._folders = {each["mountPath"]: folder / each["name"] for each in spec["containers"][0]["volumeMounts"]}
        for each in self._folders.values():
            each.mkdir(exist_ok=True)

    def variables(self, container: Document) -> dict[str, str]:
        """Return the environment of a container as a kubelet makes it."""
        values: dict[str, str] = {}
        for each in container["env"]:
            value = MACHINE if "valueFrom" in each else each["value"]
            values[each["name"]] = self.inside(_expand(value, values))
        return values

    def arguments(self, container: Document) -> list[str]:
        """Return the arguments of a container, with addresses that are free on this machine."""
        values = self.variables(container)
        return [
            self.inside(_expand(each, values)).replace("0.0.0.0:10250", "127.0.0.1:0") for each in container["args"]
        ]

    def inside(self, text: str) -> str:
        """Return a text with the folders of the pod as they are on this machine."""
        for path, folder in self._folders.items():
            text = re.sub(rf"(^|=){path}(?=/|$)", rf"\g<1>{folder}", text)
        return text


def _expand(text: str, values: dict[str, str]) -> str:
    return re.sub(r"\$\((\w+)\)", lambda name: values[name[1]], text)


@contextlib.contextmanager
def _running(command: list[str], environment: dict[str, str]) -> Iterator[None]:
    process = subprocess.Popen(command, env={**os.environ, **environment})
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def folder() -> Iterator[pathlib.Path]:
    # Paths of sockets are short.
    with tempfile.TemporaryDirectory(prefix="d-") as name:
        yield pathlib.Path(name)


@pytest.fixture(scope="module")
def server(folder: pathlib.Path) -> Iterator[processes.Process]:
    (folder / "bootstrap").mkdir()
    options = ("--bootstrap-kubeconfig-out", str(folder / "bootstrap" / "kubeconfig"), "--allow-loopback-nodes")
    with processes.running(folder / "data", command_name="up", options=options) as started:
        yield started


@pytest.fixture(scope="module")
def admin(server: processes.Process) -> Iterator[wire.Wire]:
    with wire.Wire(server) as connection:
        yield connection


@pytest.fixture(scope="module")
def agent(server: processes.Process, admin: wire.Wire, folder: pathlib.Path) -> Iterator[None]:
    printed = CliRunner().invoke(app, ["manifests", "node", "--driver-image=gpu:1"])
    documents = {each["kind"]: each for each in yaml.safe_load_all(printed.stdout)}
    objects.create(admin, *(documents[kind] for kind in _KINDS))
    pod = Pod(spec := documents["DaemonSet"]["spec"]["template"]["spec"], folder)
    agent_container, driver_container = spec["containers"]
    agent_command = [*processes.DRACHMA, *pod.arguments(agent_container)]
    driver_command = [sys.executable, str(EXAMPLE), *pod.arguments(driver_container)]
    driver_command += ["--kubeconfig", str(_account_kubeconfig(server, admin, folder))]
    with (
        _running(agent_command, pod.variables(agent_container)),
        _running(driver_command, pod.variables(driver_container)),
    ):
        patience.until(
            lambda: admin.call("GET", "/apis/resource.k8s.io/v1/resourceslices").body["items"],
            what="the driver publishes the devices of its node",
        )
        yield


def _account_kubeconfig(server: processes.Process, admin: wire.Wire, folder: pathlib.Path) -> pathlib.Path:
    """Return a kubeconfig of the account that the pods have."""
    token = admin.call("POST", f"{ACCOUNT}/token", {"spec": {}}).body["status"]["token"]
    content = yaml.safe_load(server.kubeconfig.read_text())
    content["users"][0]["user"] = {"token": token}
    path = folder / "account.kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return path


def test_a_pod_that_tolerates_simulation_gets_a_device(agent: None, admin: wire.Wire) -> None:
    objects.create(admin, objects.device_class(), objects.template("one"))
    tolerant, strict = (objects.pod(name, template_name="one") for name in ("tolerant", "strict"))
    tolerant["spec"]["tolerations"] = [TOLERATION]
    objects.create(admin, tolerant, strict)

    def phase(name: str) -> Any:
        return admin.call("GET", f"{objects.PODS}/{name}").body.get("status", {}).get("phase")

    patience.until(lambda: phase("tolerant"), lambda it: it == "Running", what="the pod runs")
    assert admin.call("GET", f"{objects.PODS}/tolerant").body["spec"]["nodeName"] == NODE
    assert phase("strict") == "Pending"
    taints = admin.call("GET", f"/api/v1/nodes/{NODE}").body["spec"]["taints"]
    assert [(each["key"], each["effect"]) for each in taints] == [("drachma.dev/simulated", "NoSchedule")]


def test_only_its_own_node_is_registered(agent: None, admin: wire.Wire) -> None:
    nodes = admin.call("GET", "/api/v1/nodes").body["items"]
    slices = admin.call("GET", "/apis/resource.k8s.io/v1/resourceslices").body["items"]
    assert [each["metadata"]["name"] for each in nodes] == [NODE]
    assert {each["spec"]["nodeName"] for each in slices} == {NODE}
