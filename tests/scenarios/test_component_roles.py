"""Every component under its own account: on a busy small cluster with roles, nothing that they ask for is refused.

Read from the audit log of ``drachma up``: a role that lacks a verb fails here.
"""

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests import certificaterequests, patience
from tests.scenarios import processes, wire

Document = dict[str, Any]

POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
"""
COMPONENTS = ("system:serviceaccount:kube-system:", "system:kube-", "system:node:")
WORKERS = frozenset({
    "certificate-controller", "deployment-controller", "disruption-controller", "generic-garbage-collector",
    "job-controller", "namespace-controller", "node-controller", "replicaset-controller",
    "resource-claim-controller", "resourcequota-controller", "root-ca-cert-publisher", "service-account-controller",
    "resourcepoolstatusrequest-controller", "system:kube-controller-manager", "system:kube-scheduler",
    "system:node:node-1", "ttl-after-finished-controller",
})  # fmt: skip
"""Who has something to do in what follows."""
CORE = "/api/v1/namespaces/work"
POD: Document = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {
        "containers": [{"name": "c", "image": "x:1", "resources": {"claims": [{"name": "gpu"}]}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}],
    },
}
JOB_POD: Document = {
    "metadata": {"annotations": {"simulation.drachma.dev/run-seconds": "1"}},
    "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x:1"}]},
}
REQUEST: Document = {"name": "gpu", "exactly": {"deviceClassName": "gpu.simulation.drachma.dev"}}
WORKLOADS: tuple[tuple[str, Document], ...] = (
    ("/api/v1/namespaces", {"metadata": {"name": "work"}}),
    (f"{CORE}/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "50"}}}),
    (
        "/apis/resource.k8s.io/v1/namespaces/work/resourceclaimtemplates",
        {"metadata": {"name": "one-gpu"}, "spec": {"spec": {"devices": {"requests": [REQUEST]}}}},
    ),
    (
        "/apis/apps/v1/namespaces/work/deployments",
        {
            "metadata": {"name": "d"},
            "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "a"}}, "template": POD},
        },
    ),
    (
        "/apis/policy/v1/namespaces/work/poddisruptionbudgets",
        {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}},
    ),
    (
        "/apis/batch/v1/namespaces/work/jobs",
        {
            "metadata": {"name": "j"},
            "spec": {"completions": 2, "parallelism": 2, "ttlSecondsAfterFinished": 0, "template": JOB_POD},
        },
    ),
    (
        f"{CORE}/secrets",
        {
            "metadata": {"name": "token", "annotations": {"kubernetes.io/service-account.name": "default"}},
            "type": "kubernetes.io/service-account-token",
        },
    ),
    (
        "/apis/certificates.k8s.io/v1/certificatesigningrequests",
        {
            "metadata": {"name": "r"},
            "spec": {
                "request": certificaterequests.encoded("system:node:n", "system:nodes"),
                "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
                "usages": ["digital signature", "client auth"],
            },
        },
    ),
    (
        "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests",
        {"metadata": {"name": "s"}, "spec": {"driver": "gpu.simulation.drachma.dev"}},
    ),
    (
        "/apis/resource.k8s.io/v1/devicetaintrules",
        {
            "metadata": {"name": "t"},
            "spec": {
                "deviceSelector": {"driver": "gpu.simulation.drachma.dev", "pool": "node-1"},
                "taint": {"key": "broken", "effect": "NoExecute"},
            },
        },
    ),
)


def items(admin: wire.Wire, path: str) -> list[Document]:
    listed: list[Document] = admin.call("GET", path).body["items"]
    return listed


def until_status(admin: wire.Wire, path: str, field: str, value: int) -> None:
    """Until the status of an object has a value in a field."""
    patience.until(
        lambda: admin.call("GET", path).body.get("status", {}),
        lambda status: status.get(field) == value,
        what=f"{path}: {field} is {value}",
    )


def events(log: pathlib.Path) -> Iterator[Document]:
    # What stands after the last end of a line is being written.
    for line in log.read_text().rpartition("\n")[0].splitlines():
        event = json.loads(line)
        if event["user"]["username"].startswith(COMPONENTS):
            yield event


def work(admin: wire.Wire) -> None:
    """What keeps every component busy: workloads with claims, their changes, and their end."""
    patience.until(lambda: items(admin, "/api/v1/nodes"), lambda nodes: len(nodes) == 3, what="nodes")
    for path, document in WORKLOADS:
        made = admin.call("POST", path, document)
        assert made.code == 201, made.body
    deployment = "/apis/apps/v1/namespaces/work/deployments/d"
    until_status(admin, deployment, "availableReplicas", 3)
    patience.until(
        lambda: items(admin, "/apis/batch/v1/namespaces/work/jobs"),
        lambda jobs: not jobs,
        what="a job that is done and gone",
    )
    template = {"spec": {"template": {"metadata": {"annotations": {"again": "1"}}}}}
    admin.call("PATCH", deployment, template, content_type="application/merge-patch+json")
    until_status(admin, deployment, "updatedReplicas", 3)
    cordon = {"spec": {"taints": [{"key": "gone", "effect": "NoExecute"}]}}
    admin.call("PATCH", "/api/v1/nodes/node-0", cordon, content_type="application/merge-patch+json")
    patience.until(
        lambda: [each for each in items(admin, f"{CORE}/pods") if each["spec"].get("nodeName") == "node-0"],
        lambda pods: not pods,
        what="a node that pods leave",
    )
    assert admin.call("DELETE", "/api/v1/namespaces/work").code == 200
    patience.until(
        lambda: admin.call("GET", "/api/v1/namespaces/work"), lambda answer: answer.code == 404, what="a namespace goes"
    )


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    """The audit log of components that have been busy, and still run."""
    folder = tmp_path_factory.mktemp("roles")
    policy, audit = folder / "policy.yaml", folder / "audit.log"
    policy.write_text(POLICY)
    options = ("--nodes", "3", "--audit-policy-file", str(policy), "--audit-log-path", str(audit))
    with processes.running(folder / "data", command_name="up", options=options) as server, wire.Wire(server) as admin:
        work(admin)
        yield audit


def users(log: pathlib.Path) -> set[str]:
    return {event["user"]["username"].removeprefix(COMPONENTS[0]) for event in events(log)}


def test_nothing_is_refused_to_any_of_them(log: pathlib.Path) -> None:
    refused: set[str] = set()
    gone: set[tuple[str, str]] = set()
    for event in events(log):
        user, path = event["user"]["username"], event["requestURI"].partition("?")[0]
        status = event.get("responseStatus", {})
        if event["verb"] == "delete" and status.get("code") == 200:
            gone.add((user, path))
        # What goes away with its namespace is refused to everybody, and what a node has removed itself to the node:
        # it may ask once more where it does not know yet that the object is gone.
        is_over = "because it is being terminated" in status.get("message", "")
        is_over |= user.startswith("system:node:") and (user, path) in gone
        if status.get("code") in (401, 403) and not is_over:
            refused.add(f"{user} {event['verb']} {path}")
    assert not refused


def test_all_of_them_were_at_work(log: pathlib.Path) -> None:
    patience.until(lambda: WORKERS - users(log), lambda idle: not idle, what="each of them has done something")
