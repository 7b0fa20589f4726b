"""A scheduler with exactly the permissions of its manifests: it leads, schedules a pod with a claim, and is refused
nothing.
"""

import json
import pathlib
from typing import Any

import yaml

from drachma import deployment
from drachma.deployment import components
from tests import patience
from tests.scenarios import processes, wire

Document = dict[str, Any]

POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n"
NAMESPACE = "drachma-system"
ACCOUNT = f"system:serviceaccount:{NAMESPACE}:drachma-scheduler"
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


def _install(admin: wire.Wire) -> str:
    """Create the account of the scheduler with its permissions; return a token."""
    settings = deployment.Settings(image="drachma:test", namespace=NAMESPACE)
    for document in deployment.documents([components.scheduler("drachma-scheduler")], settings):
        if document["kind"] in PERMISSIONS:
            path = PERMISSIONS[document["kind"]].format(document["metadata"].get("namespace"))
            made = admin.call("POST", path, document)
            assert made.code == 201, made.body
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/drachma-scheduler/token"
    token: str = admin.call("POST", path, {"spec": {}}).body["status"]["token"]
    return token


async def test_a_deployed_scheduler_is_refused_nothing(tmp_path: pathlib.Path) -> None:
    policy, audit, kubeconfig = tmp_path / "policy.yaml", tmp_path / "audit.log", tmp_path / "scheduler.yaml"
    policy.write_text(POLICY)
    options = ("--nodes", "1", "--audit-policy-file", str(policy), "--audit-log-path", str(audit))
    with processes.running(tmp_path / "data", command_name="up", options=options) as server, wire.Wire(server) as admin:
        content = yaml.safe_load(server.kubeconfig.read_text())
        content["users"][0]["user"] = {"token": _install(admin)}
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
        events = [json.loads(line) for line in audit.read_text().rpartition("\n")[0].splitlines()]
    own = [each for each in events if each["user"]["username"] == ACCOUNT]
    refused = {f"{each['verb']} {each['requestURI']}" for each in own if each["responseStatus"]["code"] in (401, 403)}
    assert refused == set()
    assert any(each["requestURI"].endswith("/leases/drachma-scheduler") for each in own)
