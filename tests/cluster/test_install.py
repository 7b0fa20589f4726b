"""The chart, installed with helm as docs/production.md says: the pods that controllers make run with own accounts.

No kubelet runs here. The command of each pod is started as a process that sees the files and variables that a container
would see: token, authority and namespace of its account, and the address of the API server.
"""

import contextlib
import pathlib
import ssl
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from tests import patience, ports
from tests.cluster import controlplane, installation, objects, programs, queues
from tests.scenarios import processes, wire

Document = dict[str, Any]

CHART = pathlib.Path(__file__).parents[2] / "deploy" / "chart"
NAMESPACE = installation.NAMESPACE
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_FILES = "/run/secrets/kubernetes.io/serviceaccount"


@pytest.fixture
def plane(tmp_path: pathlib.Path) -> Iterator[controlplane.ControlPlane]:
    """Return a control plane of its own, on which nothing of drachma was installed before."""
    programs.require(*programs.CONTROL_PLANE, "helm")
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode:
        pytest.skip("only root can show a process the files of an account")
    with controlplane.control_plane(tmp_path, gates=(), apis="api/ga=true") as running, running.kube_controllers():
        yield running


@pytest.fixture
def cluster(plane: controlplane.ControlPlane, admin: wire.Wire) -> wire.Wire:
    objects.create(admin, objects.device_class(), objects.node("n1"), objects.resource_slice("n1", 2))
    return admin


def _helm(plane: controlplane.ControlPlane, *arguments: str) -> str:
    command = [str(programs.built("helm")), *arguments, "--kubeconfig", str(plane.kubeconfig)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _pods(admin: wire.Wire) -> dict[str, Document]:
    """Return the pods of components by name."""
    items = admin.call("GET", _PODS).body["items"]
    live = [each for each in items if "deletionTimestamp" not in each["metadata"]]
    return {each["metadata"]["labels"]["app.kubernetes.io/component"]: each for each in live}


@contextlib.contextmanager
def _running(plane: controlplane.ControlPlane, admin: wire.Wire, pod: Document) -> Iterator[int]:
    """Run the command of a pod until the end of the block; return its port as soon as it is ready."""
    (container,) = pod["spec"]["containers"]
    account = pod["spec"]["serviceAccountName"]
    answer = admin.call("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token", {"spec": {}})
    folder = plane.folder / account
    folder.mkdir()
    (folder / "token").write_text(answer.body["status"]["token"])
    (folder / "ca.crt").write_bytes(plane.authority.read_bytes())
    (folder / "namespace").write_text(NAMESPACE)
    place = urllib.parse.urlsplit(plane.url)
    with ports.reserved() as port:
        # All processes share the addresses of this machine.
        arguments = [each.replace("0.0.0.0:10443", f"127.0.0.1:{port}") for each in container["args"]]
        assert f"--secure-address=127.0.0.1:{port}" in arguments
        script = f'mount -t tmpfs tmpfs /run && mkdir -p {_FILES} && mount --bind {folder} {_FILES} && exec "$@"'
        command = ["unshare", "--mount", "sh", "-c", script, "sh", *processes.DRACHMA, *arguments]
        variables = {"KUBERNETES_SERVICE_HOST": place.hostname or "", "KUBERNETES_SERVICE_PORT": str(place.port)}
        with plane.running(account, command, **variables, KUBECONFIG="", HOME=str(folder)) as program:
            patience.until(lambda: _readiness(program, port), lambda seen: seen == "ok", what=f"{account} is ready")
            yield port
            program.check()


def _readiness(program: controlplane.Program, port: int) -> str:
    program.check()
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(f"https://127.0.0.1:{port}/readyz", context=unverified) as answer:
            return "ok" if answer.status == 200 else str(answer.status)
    except urllib.error.HTTPError as error:
        return error.read().decode()
    except OSError as error:
        return str(error)


def _install(plane: controlplane.ControlPlane, values: Sequence[str]) -> None:
    options = [part for value in values for part in ("--set", value)]
    _helm(plane, "upgrade", "--install", "drachma", str(CHART), "--set", "image=drachma:test", *options)


def test_the_chart_runs_and_goes(plane: controlplane.ControlPlane, cluster: wire.Wire) -> None:
    if queues.DEFINITIONS.is_dir():
        queues.install_definitions(cluster)
    objects.create_if_absent(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}})
    _install(plane, ["replicas=1", "queueing.enabled=true", "exporter.enabled=true"])
    want = {"scheduler", "queueing", "exporter"}
    pods = patience.until(lambda: _pods(cluster), lambda seen: set(seen) == want, what="all components have a pod")
    with contextlib.ExitStack() as stack:
        for name in sorted(want):
            stack.enter_context(_running(plane, cluster, pods[name]))
        objects.create(cluster, objects.claim("c"))
        objects.create(cluster, objects.pod("p", claim_name="c", scheduler="drachma-scheduler"))
        assert objects.wait_for_node(cluster, "p") == "n1"
        for name in want:
            assert installation.refusals(plane, name) == set()
    _install(plane, ["replicas=2", "queueing.enabled=true", "exporter.enabled=true", "scheduler.neighbours=true"])
    deployment = cluster.call("GET", f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/drachma-scheduler").body
    assert deployment["spec"]["replicas"] == 2
    assert "--neighbours" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    _helm(plane, "uninstall", "drachma")
    roles = cluster.call("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles").body["items"]
    assert [each["metadata"]["name"] for each in roles if each["metadata"]["name"].startswith("drachma")] == []
    assert objects.wait_for_node(cluster, "p") == "n1", "running pods stay"
