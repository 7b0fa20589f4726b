"""The chart, installed with helm as docs/production.md says: the pods that controllers make run with own accounts.

No kubelet runs here. The command of each pod is started as a process that sees the files and variables that a container
would see: token, authority and namespace of its account, and the address of the API server.
"""

import base64
import contextlib
import datetime as dt
import pathlib
import ssl
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from drachma.process import webhookdeployment
from drachma.server.access import certificates
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
    if not queues.DEFINITIONS.is_dir():
        pytest.skip(f"Kueue's definitions absent: {queues.DEFINITIONS}")
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
def _running(
    plane: controlplane.ControlPlane, admin: wire.Wire, pod: Document, replacements: Mapping[str, str] | None = None
) -> Iterator[int]:
    """Run the command of a pod until the end of the block; return its port as soon as it is ready.

    Replacements are for places in its arguments that this machine has elsewhere.
    """
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
        # All processes share the addresses and files of this machine.
        number = next(each["containerPort"] for each in container["ports"])
        arguments = [
            each.replace(f"0.0.0.0:{number}", f"127.0.0.1:{port}").replace("/tmp/", f"{folder}/")
            for each in container["args"]
        ]
        for old, new in (replacements or {}).items():
            arguments = [each.replace(old, new) for each in arguments]
        assert any(each.endswith(f"=127.0.0.1:{port}") for each in arguments)
        script = f'mount -t tmpfs tmpfs /run && mkdir -p {_FILES} && mount --bind {folder} {_FILES} && exec "$@"'
        command = ["unshare", "--mount", "sh", "-c", script, "sh", *processes.DRACHMA, *arguments]
        variables = {"KUBERNETES_SERVICE_HOST": place.hostname or "", "KUBERNETES_SERVICE_PORT": str(place.port)}
        with plane.running(account, command, **variables, KUBECONFIG="", HOME=str(folder)) as program:
            patience.until(lambda: _readiness(program, port), lambda seen: seen == "ok", what=f"{account} is ready")
            yield port
            program.check()


def _readiness(program: controlplane.Program, port: int) -> str:
    program.check()
    return _answer(f"https://127.0.0.1:{port}/readyz").strip()


def _answer(url: str, **headers: str) -> str:
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, context=unverified) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return error.read().decode()
    except OSError as error:
        return str(error)


def _check_dashboard(admin: wire.Wire, port: int) -> None:
    """Look at the page of the pod with a token of an account that may read it, and of one that may not."""
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount"}
    accounts = [{**account, "metadata": {"name": name, "namespace": "default"}} for name in ("reader", "stranger")]
    objects.create(admin, *accounts, binding)

    def page(name: str) -> str:
        place = f"/api/v1/namespaces/default/serviceaccounts/{name}/token"
        token = admin.call("POST", place, {"spec": {}}).body["status"]["token"]
        return _answer(f"https://127.0.0.1:{port}/pods", Authorization=f"Bearer {token}")

    patience.until(lambda: page("reader"), lambda text: "/pods/default/p" in text, what="the reader sees the pod")
    assert "pods is forbidden" in patience.until(lambda: page("stranger"), what="the stranger has a page")
    assert "/pods/default/p" not in page("stranger")


def _install(plane: controlplane.ControlPlane, values: Sequence[str]) -> None:
    options = [part for value in values for part in ("--set", value)]
    _helm(plane, "upgrade", "--install", "drachma", str(CHART), "--set", "image=drachma:test", *options)


def test_the_chart_runs_and_goes(plane: controlplane.ControlPlane, cluster: wire.Wire) -> None:
    if queues.DEFINITIONS.is_dir():
        queues.install_definitions(cluster)
    objects.create_if_absent(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}})
    _install(plane, ["replicas=1", "queueing.enabled=true", "exporter.enabled=true", "dashboard.enabled=true"])
    want = {"scheduler", "queueing", "exporter", "dashboard"}
    pods = patience.until(lambda: _pods(cluster), lambda seen: set(seen) == want, what="all components have a pod")
    with contextlib.ExitStack() as stack:
        served = {name: stack.enter_context(_running(plane, cluster, pods[name])) for name in sorted(want)}
        objects.create(cluster, objects.claim("c"))
        objects.create(cluster, objects.pod("p", claim_name="c", scheduler="drachma-scheduler"))
        assert objects.wait_for_node(cluster, "p") == "n1"
        _check_dashboard(cluster, served["dashboard"])
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


def _direct_webhooks(admin: wire.Wire, port: int) -> None:
    """Have the API server reach the Service of the webhooks on this machine: no pod has an address here."""
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "drachma-queueing", "namespace": NAMESPACE},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    }
    admin.call("DELETE", f"{objects.path(service)}/drachma-queueing")
    objects.create(admin, service)
    for sort in ("mutating", "validating"):
        place = f"/apis/admissionregistration.k8s.io/v1/{sort}webhookconfigurations/kueue-{sort}-webhook-configuration"
        configuration = admin.call("GET", place).body
        for webhook in configuration["webhooks"]:
            webhook["clientConfig"]["service"]["port"] = port
        answer = admin.call("PUT", place, configuration)
        assert answer.code == 200, answer.body


@pytest.mark.skipif(not queues.DEFINITIONS.is_dir(), reason=f"Kueue's definitions absent: {queues.DEFINITIONS}")
def test_webhooks_of_the_chart_answer(
    plane: controlplane.ControlPlane, cluster: wire.Wire, tmp_path: pathlib.Path
) -> None:
    queues.install_definitions(cluster)
    objects.create_if_absent(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}})
    host = webhookdeployment.service(NAMESPACE).host
    files = certificates.ensure(tmp_path / "made", hosts=[host], now=dt.datetime.now(dt.UTC))
    secret = tmp_path / "secret"
    secret.mkdir()
    for name, file in (("tls.crt", files.certificate), ("tls.key", files.key), ("ca.crt", files.authority)):
        (secret / name).write_bytes(file.read_bytes())
    bundle = base64.b64encode(files.authority.read_bytes()).decode()
    values = ["replicas=1", "scheduler.enabled=false", "queueing.enabled=true", "queueing.webhooks.enabled=true"]
    _install(plane, [*values, f"queueing.webhooks.caBundle={bundle}"])
    pods = patience.until(lambda: _pods(cluster), lambda seen: set(seen) == {"queueing"}, what="queueing has a pod")
    with ports.reserved() as port:
        places = {"0.0.0.0:9443": f"127.0.0.1:{port}", "/certificates": str(secret)}
        with _running(plane, cluster, pods["queueing"], places):
            _direct_webhooks(cluster, port)
            queues.create_queue(cluster, "team")
            labels = {"kueue.x-k8s.io/queue-name": "not_a_name"}
            template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x:1"}]}}
            refusal = cluster.call(
                "POST", queues.JOBS, {"metadata": {"name": "bad", "labels": labels}, "spec": {"template": template}}
            )
            assert refusal.code == 403, refusal.body
            assert "kueue.x-k8s.io/queue-name]: Invalid value" in refusal.body["message"]
            queues.create_job(cluster, "queued", queue="team")
            patience.until(
                lambda: cluster.call("GET", "/apis/kueue.x-k8s.io/v1beta2/workloads").body["items"],
                what="the Job has a workload",
            )
            assert installation.refusals(plane, "queueing") == set()
