"""Attacks by a compromised node or a greedy user; docs/security.md names each of these."""

import json
from typing import Any

import pytest

from tests.unit.server import client, people
from tests.unit.server.client import CLAIMS, PODS, SLICES, Client
from tests.unit.server.people import MERGE, RBAC, rule

NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
SECRETS = "/api/v1/namespaces/default/secrets"
GROUP = "rbac.authorization.k8s.io"
LABEL = {"metadata": {"labels": {"x": "y"}}}
APPLY = "application/apply-patch+yaml"


def _slice(name: str, node: str) -> dict[str, Any]:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": name}}
    return {**head, "spec": {"driver": "d.example.com", "pool": pool, "nodeName": node}}


@pytest.fixture
async def admin() -> Client:
    """Two nodes with a lease, a slice and a pod each; the second node's pod has a claim and a secret."""
    server = await people.start()
    await server.call("POST", CLAIMS, client.claim("c2"))
    await server.call("POST", SECRETS, {"metadata": {"name": "s2"}, "stringData": {"k": "v"}})
    volumes = [{"name": "v", "secret": {"secretName": "s2"}}]
    claims = [{"name": "c", "resourceClaimName": "c2"}]
    for number, more in (("1", {}), ("2", {"volumes": volumes, "resourceClaims": claims})):
        node = f"n{number}"
        await server.call("POST", NODES, {"metadata": {"name": node}})
        await server.call("POST", LEASES, {"metadata": {"name": node}, "spec": {"holderIdentity": node}})
        await server.call("POST", SLICES, _slice(f"s{number}", node))
        pod = client.pod(f"p{number}")
        made = await server.call("POST", PODS, {**pod, "spec": {**pod["spec"], "nodeName": node, **more}})
        assert made.code == 201, made.body
    return server


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        pytest.param("GET", f"{SLICES}/s2", None, id="slice-read"),
        pytest.param("PATCH", f"{SLICES}/s2", LABEL, id="slice-changed"),
        pytest.param("PATCH", f"{SLICES}/s2", {"spec": {"nodeName": "n1"}}, id="slice-taken"),
        pytest.param("DELETE", f"{SLICES}/s2", None, id="slice-deleted"),
        pytest.param("POST", SLICES, _slice("new", "n2"), id="slice-made-for-another"),
        pytest.param("POST", SLICES, {**_slice("new", "n2"), "spec": {"allNodes": True}}, id="slice-for-all"),
        pytest.param("GET", SLICES, None, id="slices-listed"),
        pytest.param("DELETE", SLICES, None, id="slices-deleted"),
        pytest.param("DELETE", f"{SLICES}?fieldSelector=spec.nodeName=n2", None, id="slices-of-another-deleted"),
        pytest.param("PATCH", f"{LEASES}/n2", {"spec": {"holderIdentity": "n1"}}, id="lease-changed"),
        pytest.param("DELETE", f"{LEASES}/n2", None, id="lease-deleted"),
        pytest.param("GET", f"{LEASES}/n2", None, id="lease-read"),
        pytest.param("PATCH", f"{NODES}/n2", LABEL, id="node-labelled"),
        pytest.param("PATCH", f"{NODES}/n2/status", {"status": {"phase": "Pending"}}, id="node-status"),
        pytest.param("PATCH", f"{NODES}/n2", {"metadata": {"finalizers": ["a/b"]}}, id="node-finalizers"),
        pytest.param("DELETE", f"{NODES}/n2", None, id="node-deleted"),
        pytest.param(
            "PATCH",
            f"{NODES}/n1",
            {"metadata": {"labels": {"node-restriction.kubernetes.io/x": "y"}}},
            id="labels-that-steer-pods",
        ),
        pytest.param("PATCH", f"{NODES}/n1", {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}, id="taints"),
        pytest.param("PATCH", f"{PODS}/p2/status", {"status": {"phase": "Failed"}}, id="pod-status"),
        pytest.param("DELETE", f"{PODS}/p2", None, id="pod-deleted"),
        pytest.param("POST", f"{PODS}/p2/eviction", {"metadata": {"name": "p2"}}, id="pod-evicted"),
        pytest.param(
            "PATCH",
            f"{PODS}/p1/status",
            {"status": {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "c2"}]}},
            id="a-claim-for-its-own-pod",
        ),
        pytest.param("POST", PODS, client.pod("new"), id="a-pod-that-reads-for-it"),
        pytest.param("GET", f"{SECRETS}/s2", None, id="secret-of-a-pod-elsewhere"),
        pytest.param("GET", SECRETS, None, id="secrets-listed"),
        pytest.param("GET", f"{CLAIMS}/c2", None, id="claim-of-a-pod-elsewhere"),
        pytest.param("POST", CLAIMS, client.claim("new"), id="claim-made"),
    ],
)
async def test_a_node_against_another(admin: Client, method: str, path: str, body: Any) -> None:
    before = admin.store.revision
    answer = await admin.showing("n1").call(method, path, body, content_type=MERGE if method == "PATCH" else "")
    assert (answer.code, answer.body["reason"], admin.store.revision) == (403, "Forbidden", before)


@pytest.mark.parametrize(
    ("method", "path", "body", "content_type"),
    [
        pytest.param("PATCH", f"{CLAIMS}/c2", LABEL, MERGE, id="patched"),
        pytest.param("PATCH", f"{CLAIMS}/c2/status", {"status": {"reservedFor": []}}, MERGE, id="status"),
        pytest.param("PATCH", f"{CLAIMS}/c2?fieldManager=m", client.claim("c2"), APPLY, id="applied"),
        pytest.param("PUT", f"{CLAIMS}/c2", client.claim("c2"), "", id="put"),
        pytest.param("DELETE", f"{CLAIMS}/c2", None, "", id="deleted"),
        pytest.param("DELETE", CLAIMS, None, "", id="all-deleted"),
        pytest.param("GET", f"{CLAIMS}?watch=1", None, "", id="all-watched"),
    ],
)
async def test_a_node_writes_no_claims(admin: Client, method: str, path: str, body: Any, content_type: str) -> None:
    """Not even those of its own pods, which it may read."""
    n2 = admin.showing("n2")
    assert (await n2.call("GET", f"{CLAIMS}/c2")).code == 200
    before = admin.store.revision
    answer = await n2.call(method, path, body, content_type=content_type)
    assert (answer.code, admin.store.revision) == (403, before)


ADMIN = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
ANN = {"kind": "User", "name": "ann"}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        pytest.param(
            "POST",
            f"{RBAC}/namespaces/default/rolebindings",
            {"metadata": {"name": "x"}, "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"}, "subjects": [ANN]},
            id="binding-the-admins-role",
        ),
        pytest.param("PATCH", f"{RBAC}/namespaces/default/roles/own", {"rules": [ADMIN]}, id="more-in-its-own-role"),
        pytest.param(
            "POST",
            f"{RBAC}/namespaces/default/roles",
            {"metadata": {"name": "x"}, "rules": [rule("escalate bind", "roles", group=GROUP)]},
            id="the-leave-to-escalate",
        ),
        pytest.param(
            "PATCH",
            f"{RBAC}/namespaces/default/rolebindings/strong",
            {"subjects": [ANN]},
            id="joining-a-stronger-binding",
        ),
        pytest.param(
            "POST",
            f"{RBAC}/clusterroles",
            {"metadata": {"name": "x", "labels": {f"{GROUP}/aggregate-to-view": "true"}}, "rules": [ADMIN]},
            id="a-part-of-an-aggregated-role",
        ),
        pytest.param(
            "POST",
            f"{RBAC}/clusterroles",
            {
                "metadata": {"name": "x"},
                "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
            },
            id="a-role-that-gathers-others",
        ),
    ],
)
async def test_a_user_who_manages_roles_gets_no_more(admin: Client, method: str, path: str, body: Any) -> None:
    manages = rule("get list create update patch delete", "roles rolebindings", group=GROUP)
    await people.grant(admin, "ann", manages, namespace="default", name="own")
    await people.grant(admin, "ann", rule("create", "clusterroles", group=GROUP), name="cluster-own")
    await people.grant(admin, "bob", rule("get", "secrets"), namespace="default", name="strong")
    before = admin.store.revision
    answer = await admin.showing("ann").call(method, path, body, content_type=MERGE if method == "PATCH" else "")
    assert (answer.code, answer.body["reason"], admin.store.revision) == (403, "Forbidden", before)


async def test_a_change_of_roles_counts_for_the_next_request(admin: Client) -> None:
    await people.grant(admin, "ann", rule("get", "secrets"), namespace="default")
    ann = admin.showing("ann")
    assert (await ann.call("GET", f"{SECRETS}/s2")).code == 200
    await admin.call("DELETE", f"{RBAC}/namespaces/default/rolebindings/r")
    assert (await ann.call("GET", f"{SECRETS}/s2")).code == 403


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"f:metadata": {}}, id="metadata"),
        pytest.param({"f:metadata": {".": {}, "f:name": {}, "f:uid": {}}}, id="name-and-uid"),
        pytest.param({"f:apiVersion": {}, "f:kind": {}, "f:metadata": {}}, id="everything-but-the-spec"),
    ],
)
async def test_ownership_of_identity_cannot_be_claimed(version: str, fields: dict[str, Any]) -> None:
    """A client sends entries in which it has applied the identity of an object, and then applies without it."""
    server = await client.start()
    document = (await server.call("POST", client.CLAIMS, client.claim())).body
    entry = {
        "manager": "me",
        "operation": "Apply",
        "apiVersion": f"resource.k8s.io/{version}",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    path = f"{client.CLAIMS}/{document['metadata']['name']}"
    document["metadata"]["managedFields"] = [entry]
    assert (await server.call("PUT", path, document)).code == 200
    applied = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"}}
    answer = await server.send(
        "PATCH",
        f"{path}?fieldManager=me",
        json.dumps(applied).encode(),
        content_type="application/apply-patch+yaml",
    )
    assert answer.code == 200
    assert answer.body["metadata"]["uid"] == document["metadata"]["uid"]
    assert answer.body["spec"] == document["spec"]
