"""Components with exactly the permissions of their manifests do their work, and are refused nothing."""

import functools
import json
import pathlib
import ssl
import urllib.error
import urllib.request
from typing import Any

import yaml

from drachma import deployment
from drachma.deployment import components
from tests import patience, ports
from tests.scenarios import processes, wire

Document = dict[str, Any]

POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"
NAMESPACE = "drachma-system"
READER = "reader"
USER_HEADER = "X-Forwarded-User"
PERMISSIONS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings",
}
REQUEST: Document = {"name": "gpu", "exactly": {"deviceClassName": "gpu.simulation.drachma.dev"}}
CLAIM: Document = {"metadata": {"name": "gpu"}, "spec": {"devices": {"requests": [REQUEST]}}}
POD: Document = {
    "metadata": {"name": "p"},
    "spec": {
        "schedulerName": "drachma-scheduler",
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}],
        "containers": [{"name": "c", "image": "x:1", "resources": {"claims": [{"name": "gpu"}]}}],
    },
}


def _install(admin: wire.Wire, component: deployment.Component) -> str:
    """Create the account of a component with its permissions; return a token."""
    settings = deployment.Settings(image="drachma:test", namespace=NAMESPACE)
    for document in deployment.documents([component], settings):
        if document["kind"] in PERMISSIONS:
            path = PERMISSIONS[document["kind"]].format(document["metadata"].get("namespace"))
            made = admin.call("POST", path, document)
            assert made.code == 201, made.body
    return _token(admin, NAMESPACE, f"drachma-{component.name}")


def _token(admin: wire.Wire, namespace: str, account: str) -> str:
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    token: str = admin.call("POST", path, {"spec": {}}).body["status"]["token"]
    return token


def _answers(audit: pathlib.Path, component: str) -> list[Document]:
    """Return the audit events of a component's account."""
    account = f"system:serviceaccount:{NAMESPACE}:drachma-{component}"
    events = [json.loads(line) for line in audit.read_text().rpartition("\n")[0].splitlines()]
    return [each for each in events if each["user"]["username"] == account]


def _refusals(events: list[Document]) -> set[str]:
    return {f"{each['verb']} {each['requestURI']}" for each in events if each["responseStatus"]["code"] in (401, 403)}


async def test_a_deployed_scheduler_is_refused_nothing(tmp_path: pathlib.Path) -> None:
    policy, audit, kubeconfig = tmp_path / "policy.yaml", tmp_path / "audit.log", tmp_path / "scheduler.yaml"
    policy.write_text(POLICY)
    options = ("--nodes", "1", "--audit-policy-file", str(policy), "--audit-log-path", str(audit))
    with processes.running(tmp_path / "data", command_name="up", options=options) as server, wire.Wire(server) as admin:
        content = yaml.safe_load(server.kubeconfig.read_text())
        content["users"][0]["user"] = {"token": _install(admin, components.scheduler("drachma-scheduler"))}
        kubeconfig.write_text(yaml.safe_dump(content))
        arguments = ("scheduler", "--kubeconfig", str(kubeconfig), "--scheduler-name=drachma-scheduler")
        async with processes.command(*arguments, f"--leader-elect-resource-namespace={NAMESPACE}"):
            admin.call("POST", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims", CLAIM)
            admin.call("POST", "/api/v1/namespaces/default/pods", POD)
            patience.until(
                lambda: admin.call("GET", "/api/v1/namespaces/default/pods/p").body["spec"].get("nodeName"),
                lambda node: node == "node-0",
                what="the pod has a node",
            )
        own = _answers(audit, "scheduler")
    assert _refusals(own) == set()
    assert any(each["requestURI"].endswith("/leases/drachma-scheduler") for each in own)


def _allow_reader(admin: wire.Wire) -> None:
    """Let an account and a person of one name read the objects of a namespace."""
    admin.call("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": READER}})
    binding = {
        "metadata": {"name": READER},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [
            {"kind": "ServiceAccount", "name": READER, "namespace": "default"},
            {"kind": "User", "name": READER},
        ],
    }
    made = admin.call("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", binding)
    assert made.code == 201, made.body


def _open(url: str, authority: pathlib.Path, **headers: str) -> tuple[int, str]:
    """Return status and text of a page, whose certificate must be of the authority; 0 if there is no answer yet."""
    if not authority.exists():
        return 0, ""
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=str(authority))) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except urllib.error.URLError as error:
        if isinstance(error.reason, ConnectionError):
            return 0, str(error)
        raise


async def test_a_deployed_dashboard_reads_as_its_users_only(tmp_path: pathlib.Path) -> None:
    policy, audit, kubeconfig = tmp_path / "policy.yaml", tmp_path / "audit.log", tmp_path / "dashboard.yaml"
    policy.write_text(POLICY)
    options = ("--nodes", "1", "--audit-policy-file", str(policy), "--audit-log-path", str(audit))
    proxy = components.Proxy(user_header=USER_HEADER, networks=("127.0.0.0/8",))
    component = components.dashboard(proxy=proxy)
    folder = tmp_path / "certificates"
    with (
        processes.running(tmp_path / "data", command_name="up", options=options) as server,
        wire.Wire(server) as admin,
        ports.reserved() as port,
    ):
        content = yaml.safe_load(server.kubeconfig.read_text())
        content["users"][0]["user"] = {"token": _install(admin, component)}
        kubeconfig.write_text(yaml.safe_dump(content))
        _allow_reader(admin)
        admin.call("POST", "/api/v1/namespaces/default/pods", POD)
        arguments = [
            each.replace("/tmp/certificates", str(folder)).replace("0.0.0.0:8443", f"127.0.0.1:{port}")
            for each in component.arguments
        ]
        url, authority = f"https://localhost:{port}", folder / "ca.crt"
        async with processes.command(*arguments, "--kubeconfig", str(kubeconfig)):
            patience.until(lambda: _open(f"{url}/readyz", authority)[0], lambda code: code == 200, what="it is ready")
            for headers in ({"Authorization": f"Bearer {_token(admin, 'default', READER)}"}, {USER_HEADER: READER}):
                patience.until(
                    functools.partial(_open, f"{url}/pods?namespace=default", authority, **headers),
                    lambda answer: "/pods/default/p" in answer[1],
                    what=f"a user signed in by {', '.join(headers)} sees its pod",
                )
                assert "/pods/kube-system/" not in _open(f"{url}/pods", authority, **headers)[1]
            assert "Sign in" in _open(f"{url}/pods", authority)[1]
        own = _answers(audit, "dashboard")
    assert _refusals([each for each in own if "impersonatedUser" not in each]) == set()
    unread = {each["requestURI"] for each in own if "impersonatedUser" not in each}
    assert unread <= {"/version", "/api", "/apis"}, "nothing is read with the account of the dashboard"
    assert {each["impersonatedUser"]["username"] for each in own if "impersonatedUser" in each} == {READER}
