"""Manifests of components: our own server takes each of them, and the restricted Pod Security level allows the pods."""

import pathlib
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from drachma.cli.root import app, load
from drachma.client import target
from drachma.queueing.component import resources
from tests.unit.server import client

Document = dict[str, Any]

PLURALS = {
    "Namespace": "namespaces",
    "ServiceAccount": "serviceaccounts",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "DaemonSet": "daemonsets",
    "Deployment": "deployments",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "NetworkPolicy": "networkpolicies",
    "Service": "services",
    "ConfigMap": "configmaps",
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}


def _print(*arguments: str) -> list[Document]:
    result = CliRunner().invoke(app, ["manifests", *arguments])
    assert result.exit_code == 0, result.output
    return list(yaml.safe_load_all(result.stdout))


def _path(document: Document) -> str:
    version, namespace = document["apiVersion"], document["metadata"].get("namespace")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{root}{f'/namespaces/{namespace}' if namespace else ''}/{PLURALS[document['kind']]}"


async def test_a_server_takes_every_object(tmp_path: pathlib.Path) -> None:
    groups, authority = tmp_path / "groups.yaml", tmp_path / "ca.crt"
    groups.write_text("groups: text\n")
    authority.write_text("-----BEGIN CERTIFICATE-----\n")
    documents = _print(
        *("scheduler", "queueing", "exporter", "dashboard", "autoscaler", f"--node-groups={groups}"),
        *("node", "--driver-image=driver:1"),
        *(
            "controllers",
            "--controllers",
            "job-controller,resourceclaim-controller",
            f"--webhook-authority={authority}",
        ),
    )
    server = await client.start()
    # Queues wait for the lease of Kueue, which is installed there.
    await server.call("POST", "/api/v1/namespaces", {"metadata": {"name": "kueue-system"}})
    for document in documents:
        answer = await server.call("POST", _path(document), document)
        assert answer.code == 201, (document["kind"], answer.body)
    kinds = ("DaemonSet", "Deployment")
    pods = [each["spec"]["template"]["spec"] for each in documents if each["kind"] in kinds]
    for number, spec in enumerate(pods):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{number}"}, "spec": spec}
        answer = await server.call("POST", "/api/v1/namespaces/drachma-system/pods", pod)
        assert answer.code == 201, answer.body


def test_a_component_is_bound_to_the_roles_of_its_work() -> None:
    documents = _print("controllers", "--controllers", "job-controller")
    roles = {each["roleRef"]["name"] for each in documents if "roleRef" in each}
    assert roles == {
        "drachma-controllers",
        "extension-apiserver-authentication-reader",
        "system:auth-delegator",
        "system:controller:job-controller",
        "system:kube-controller-manager",
    }


def test_queues_may_read_every_kind_that_they_watch() -> None:
    [role] = [each for each in _print("queueing") if each["kind"] == "ClusterRole"]
    readable = {
        (group, resource)
        for rule in role["rules"]
        if {"get", "list", "watch"} <= set(rule["verbs"])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    watched: tuple[target.Target[Any], ...] = (
        resources.JOBS,
        resources.JOB_SETS,
        resources.LEADER_WORKER_SETS,
        *resources.INSTALLED_JOBS.values(),
    )
    assert {(each.group, each.plural) for each in watched} <= readable


def test_the_commands_have_the_options_that_containers_are_started_with() -> None:
    documents = _print(
        *("scheduler", "--neighbours", "queueing", "exporter", "controllers", "--controllers", "job-controller"),
        *("dashboard", "--public-url=https://d.example.com", "--certificate-secret=tls"),
        *("--proxy-user-header=X-User", "--proxy-groups-header=X-Groups", "--trusted-proxy=10.0.0.0/8"),
        *("autoscaler", "--webhooks"),
    )
    for document in documents:
        if document["kind"] == "Deployment":
            [container] = document["spec"]["template"]["spec"]["containers"]
            name, *options = container["args"]
            known = {each for parameter in load(name).params for each in parameter.opts}
            assert {each.partition("=")[0] for each in options} <= known


def test_the_account_of_the_dashboard_has_no_permissions() -> None:
    documents = _print("dashboard")
    assert [each["kind"] for each in documents] == [
        *("Namespace", "ServiceAccount", "Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy")
    ]
    [pod] = [each["spec"]["template"]["spec"] for each in documents if each["kind"] == "Deployment"]
    [container] = pod["containers"]
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "https", "scheme": "HTTPS"}
    assert [each["containerPort"] for each in container["ports"]] == [8443]


def test_only_behind_a_proxy_that_names_users_may_the_dashboard_impersonate() -> None:
    documents = _print("dashboard", "--proxy-user-header=X-User", "--trusted-proxy=10.0.0.0/8")
    [role] = [each for each in documents if each["kind"] == "ClusterRole"]
    assert role["rules"] == [{"apiGroups": [""], "resources": ["groups", "users"], "verbs": ["impersonate"]}]


def test_cert_manager_makes_the_certificate_of_the_webhooks() -> None:
    documents = _print("queueing", "--webhooks", "-n", "gpus")
    [certificate] = [each for each in documents if each["kind"] == "Certificate"]
    [deployment] = [each for each in documents if each["kind"] == "Deployment"]
    [service] = [each for each in documents if each["kind"] == "Service"]
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    assert certificate["spec"]["secretName"] in [each.get("secret", {}).get("secretName") for each in volumes]
    assert certificate["spec"]["dnsNames"] == [f"{service['metadata']['name']}.gpus.svc"]
    for each in documents:
        if each["kind"].endswith("WebhookConfiguration"):
            assert each["metadata"]["annotations"] == {"cert-manager.io/inject-ca-from": "gpus/drachma-queueing"}
            assert {webhook["clientConfig"]["service"]["namespace"] for webhook in each["webhooks"]} == {"gpus"}


def test_the_autoscaler_reads_its_groups_from_a_configmap(tmp_path: pathlib.Path) -> None:
    groups = tmp_path / "groups.yaml"
    groups.write_text("kind: NodeGroup\n")
    documents = _print("autoscaler", f"--node-groups={groups}", "--command=make-nodes --fast")
    [stored] = [each for each in documents if each["kind"] == "ConfigMap"]
    [deployment] = [each for each in documents if each["kind"] == "Deployment"]
    assert stored["data"] == {"groups.yaml": "kind: NodeGroup\n"}
    pod = deployment["spec"]["template"]["spec"]
    assert {"name": "node-groups", "configMap": {"name": stored["metadata"]["name"]}} in pod["volumes"]
    assert "--command=make-nodes --fast" in pod["containers"][0]["args"]
    assert not [each for each in _print("autoscaler") if each["kind"] == "ConfigMap"]


def test_an_account_may_write_its_own_lease_only() -> None:
    [role] = [each for each in _print("scheduler", "--scheduler-name", "gpus") if each["kind"] == "Role"]
    assert [each.get("resourceNames") for each in role["rules"]] == [None, ["gpus"]]


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        pytest.param(
            ["dashbord"],
            "component 'dashbord': expected autoscaler, controllers, dashboard, exporter, node, queueing, scheduler",
            id="unknown",
        ),
        pytest.param(["controllers"], "name the controllers to run with --controllers", id="no-controllers"),
        pytest.param(["scheduler", "--controllers", "x"], "goes with the component controllers", id="not-asked-for"),
        pytest.param(["controllers", "--controllers", "x"], "x", id="no-such-controller"),
        pytest.param(["dashboard", "--proxy-user-header", "X-User"], "go together", id="header-of-anybody"),
        pytest.param(["scheduler", "--webhooks"], "go with the component queueing", id="webhooks-of-nobody"),
        pytest.param(["scheduler", "--node-groups", "x"], "goes with the component autoscaler", id="groups-of-nobody"),
        pytest.param(["dashboard", "--trusted-proxy", "10.0.0.0/8"], "go together", id="proxy-without-header"),
        pytest.param(
            ["scheduler", "--public-url", "https://d"], "goes with the component dashboard", id="no-dashboard"
        ),
        pytest.param(["scheduler", "--driver-image", "d"], "goes with the component node", id="no-node"),
    ],
)
def test_refused(arguments: list[str], want: str) -> None:
    result = CliRunner().invoke(app, ["manifests", *arguments])
    assert result.exit_code != 0
    assert want in f"{result.output}{result.exception}"


def test_agents_have_no_permissions_of_their_own_without_a_driver() -> None:
    kinds = [each["kind"] for each in _print("node")]
    assert kinds == ["Namespace", "ServiceAccount", "DaemonSet", "NetworkPolicy"]


def test_a_driver_sees_the_folder_of_its_agent_as_that_of_a_kubelet() -> None:
    [daemon_set] = [each for each in _print("node", "--driver-image=driver:1") if each["kind"] == "DaemonSet"]
    agent, driver = daemon_set["spec"]["template"]["spec"]["containers"]
    variables = {each["name"]: each.get("value") for each in driver["env"]}
    assert (driver["image"], driver["args"]) == ("driver:1", ["run"])
    assert f"--root={variables['KUBELET_ROOT']}" in agent["args"]
    assert f"--cdi-dir={variables['CDI_ROOT']}" in agent["args"]
    assert {each["mountPath"] for each in driver["volumeMounts"]} == {"/tmp", "/state", "/cdi"}
