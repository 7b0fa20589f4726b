"""NodeRestriction: what a node may write, and about which objects."""

from collections.abc import Callable
from typing import Any

import pytest

from drachma.server.access import authorization
from drachma.server.admission.noderestriction import NodeRestriction
from drachma.server.user import User
from drachma.store import memory, record
from tests import firstalpha
from tests.unit.server import client, people
from tests.unit.server.client import PODS, SLICES, Client
from tests.unit.server.people import MERGE

NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
MIRROR = {"kubernetes.io/config.mirror": "x"}


@pytest.fixture
async def admin() -> Client:
    server = await people.start()
    for name in ("n1", "n2"):
        await server.call("POST", NODES, {"metadata": {"name": name}})
    return server


def _pod(name: str, node: str, **spec: Any) -> dict[str, Any]:
    document = client.pod(name)
    return {**document, "spec": {**document["spec"], "nodeName": node, **spec}}


def _slice(node: str | None) -> dict[str, Any]:
    pool = {"name": node or "all", "generation": 1, "resourceSliceCount": 1}
    place = {"nodeName": node} if node else {"allNodes": True}
    return {"metadata": {"name": f"slice-{node}"}, "spec": {"driver": "d.example.com", "pool": pool, **place}}


async def test_a_node_makes_itself_and_no_other(admin: Client) -> None:
    await admin.call("DELETE", f"{NODES}/n1")
    n1 = admin.showing("n1")
    assert (await n1.call("POST", NODES, {"metadata": {"name": "n1"}})).code == 201
    refused = await n1.call("POST", NODES, {"metadata": {"name": "n3"}})
    assert refused.body["message"] == 'nodes "n3" is forbidden: node "n1" is not allowed to modify node "n3"'


@pytest.mark.parametrize(
    ("patch", "want"),
    [
        pytest.param({"metadata": {"labels": {"example.com/a": "1"}}}, "", id="labels-of-others"),
        pytest.param({"metadata": {"labels": {"kubernetes.io/hostname": "n1"}}}, "", id="its-name"),
        pytest.param({"metadata": {"labels": {"x.node.kubernetes.io/a": "1"}}}, "", id="labels-of-nodes"),
        pytest.param(
            {"metadata": {"labels": {"node-restriction.kubernetes.io/a": "1", "kubernetes.io/b": "2"}}},
            "is not allowed to modify labels: kubernetes.io/b, node-restriction.kubernetes.io/a",
            id="labels-that-pods-are-steered-by",
        ),
        pytest.param(
            {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
            'node "n1" is not allowed to modify taints',
            id="taints",
        ),
        pytest.param(
            {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"}]}},
            'node "n1" is not allowed to modify ownerReferences',
            id="owners",
        ),
        pytest.param({"spec": {"unschedulable": True}}, "", id="unschedulable"),
    ],
)
@pytest.mark.parametrize("below", ["", "/status"])
async def test_what_a_node_says_of_itself(admin: Client, patch: dict[str, Any], want: str, below: str) -> None:
    answer = await admin.showing("n1").call("PATCH", f"{NODES}/n1{below}", patch, content_type=MERGE)
    message = f'nodes "n1" is forbidden: {want}' if want else None
    assert (answer.code, answer.body.get("message")) == (403 if want else 200, message)
    other = await admin.showing("n2").call("PATCH", f"{NODES}/n1{below}", patch, content_type=MERGE)
    assert other.body["message"] == 'nodes "n1" is forbidden: node "n2" is not allowed to modify node "n1"'


async def test_a_lease_of_its_own(admin: Client) -> None:
    n1 = admin.showing("n1")
    assert (await n1.call("POST", LEASES, {"metadata": {"name": "n1"}})).code == 201
    refused = await n1.call("POST", LEASES, {"metadata": {"name": "n2"}})
    detail = "can only access node lease with the same name as the requesting node"
    assert refused.body["message"] == f'leases.coordination.k8s.io "n2" is forbidden: {detail}'


async def test_slices_of_its_own(admin: Client) -> None:
    n1 = admin.showing("n1")
    assert (await n1.call("POST", SLICES, _slice("n1"))).code == 201
    for other in ("n2", None):
        refused = await n1.call("POST", SLICES, _slice(other))
        detail = "can only create ResourceSlice with the same NodeName as the requesting node"
        assert refused.body["message"].endswith(f"is forbidden: {detail}")
    await admin.call("POST", SLICES, _slice("n2"))
    assert (await n1.call("DELETE", f"{SLICES}/slice-n2")).code == 403
    assert (await n1.call("DELETE", f"{SLICES}/slice-n1")).code == 200


def _node_slice(node: str | None) -> dict[str, Any]:
    spec = {"nodeName": node, "driverName": "d.example.com", "namedResourcesWithAttributes": [{"name": "a"}]}
    return {"metadata": {"name": node or "network"}, "spec": spec}


def _slice_of_1_30(node: str | None) -> dict[str, Any]:
    content = {"driverName": "d.example.com", "namedResources": {"instances": [{"name": "a"}]}}
    return {"metadata": {"name": node or "network"}, "nodeName": node, **content}


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        pytest.param("NodeResourceSlice", _node_slice, id="of-the-kep"),
        pytest.param("ResourceSlice", _slice_of_1_30, id="of-1.30"),
    ],
)
async def test_slices_of_the_first_alpha_of_its_own(kind: str, made: Callable[[str | None], dict[str, Any]]) -> None:
    admin = await people.start(gates=firstalpha.GATES)
    n1, slices = admin.showing("n1"), f"/apis/resource.k8s.io/v1alpha2/{kind.lower()}s"
    assert (await n1.call("POST", slices, made("n1"))).code == 201
    detail = f"can only create {kind} with the same NodeName as the requesting node"
    for other in ("n2", None):
        refused = await n1.call("POST", slices, made(other))
        assert refused.body["message"].endswith(f"is forbidden: {detail}")
    stored = (await admin.call("POST", slices, made("n2"))).body
    assert (await n1.call("PUT", f"{slices}/n2", stored)).code == 403
    assert (await n1.call("DELETE", f"{slices}/n2")).code == 403
    assert (await n1.call("DELETE", slices)).code == 403
    own = (await n1.call("GET", f"{slices}/n1")).body
    assert (await n1.call("PUT", f"{slices}/n1", own)).code == 200
    assert (await n1.call("DELETE", f"{slices}/n1")).code == 200
    await admin.store.close()


async def test_a_slice_of_v1_is_no_way_to_one_of_1_30_of_the_same_name() -> None:
    admin = await people.start(gates=firstalpha.GATES)
    n1, slices = admin.showing("n1"), "/apis/resource.k8s.io/v1alpha2/resourceslices"
    stored = (await admin.call("POST", slices, {**_slice_of_1_30("n2"), "metadata": {"name": "slice-n1"}})).body
    assert (await n1.call("POST", SLICES, _slice("n1"))).code == 201
    assert (await n1.call("PUT", f"{slices}/slice-n1", stored)).code == 403
    assert (await n1.call("DELETE", f"{slices}/slice-n1")).code == 403
    await admin.store.close()


@pytest.mark.parametrize(
    ("status", "want"),
    [
        pytest.param({"phase": "Running"}, "", id="its-phase"),
        pytest.param({"resourceClaimStatuses": [{"name": "c"}]}, "cannot update resource claim statues", id="claims"),
        pytest.param(
            {"extendedResourceClaimStatus": {"resourceClaimName": "c", "requestMappings": []}},
            "cannot update extended resource claim status",
            id="extended-resources",
        ),
        pytest.param(
            {"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "c"}]},
            "cannot update node allocatable resource claim statuses",
            id="allocatable-resources",
        ),
    ],
)
async def test_the_status_of_its_pods(admin: Client, status: dict[str, Any], want: str) -> None:
    claims = [{"name": "c", "resourceClaimName": "c"}]
    await admin.call("POST", PODS, _pod("p", "n1", resourceClaims=claims))
    patch = {"status": status}
    answer = await admin.showing("n1").call("PATCH", f"{PODS}/p/status", patch, content_type=MERGE)
    message = f'pods "p" is forbidden: node "n1" {want}' if want else None
    assert (answer.code, answer.body.get("message")) == (403 if want else 200, message)


async def test_nothing_of_pods_elsewhere(admin: Client) -> None:
    await admin.call("POST", PODS, _pod("p", "n1"))
    n2 = admin.showing("n2")
    itself = "with spec.nodeName set to itself"
    patch = {"status": {"phase": "Failed"}}
    refused = await n2.call("PATCH", f"{PODS}/p/status", patch, content_type=MERGE)
    assert refused.body["message"].endswith(f'node "n2" can only update pod status for pods {itself}')
    refused = await n2.call("DELETE", f"{PODS}/p")
    assert refused.body["message"].endswith(f'node "n2" can only delete pods {itself}')
    refused = await n2.call("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}})
    assert refused.body["message"].endswith(f"node n2 can only evict pods {itself}")
    refused = await n2.call("DELETE", f"{PODS}/ghost")
    assert (refused.body["message"], refused.body["details"]["kind"]) == ('pod "ghost" not found', "pod")
    labels = {"metadata": {"labels": {"a": "b"}}}
    refused = await admin.showing("n1").call("PATCH", f"{PODS}/p/status", labels, content_type=MERGE)
    assert refused.body["message"].endswith('node "n1" cannot update labels through pod status')
    evicted = await admin.showing("n1").call("POST", f"{PODS}/p/eviction", {"metadata": {"name": "p"}})
    assert evicted.code == 201


@pytest.mark.parametrize(
    ("change", "want"),
    [
        pytest.param({}, "", id="good"),
        pytest.param(
            {"annotations": {}},
            'pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods',
            id="no-mirror",
        ),
        pytest.param({"nodeName": "n2"}, 'node "n1" can only create pods with spec.nodeName set to itself', id="away"),
        pytest.param(
            {"owner": None}, 'node "n1" can only create pods with an owner reference set to itself', id="no-owner"
        ),
        pytest.param(
            {"owner": {"controller": False}},
            'node "n1" can only create pods with a controller owner reference set to itself',
            id="no-controller",
        ),
        pytest.param(
            {"owner": {"blockOwnerDeletion": True}},
            'node "n1" must not set blockOwnerDeletion on an owner reference',
            id="blocks-deletion",
        ),
        pytest.param({"owner": {"uid": "other"}}, "node n1 UID mismatch: expected other got ", id="another-uid"),
        pytest.param(
            {"volumes": [{"name": "v", "secret": {"secretName": "s"}}]},
            'node "n1" can not create pods that reference secrets',
            id="a-secret",
        ),
        pytest.param(
            {"volumes": [{"name": "v", "csi": {"driver": "d"}}]},
            'node "n1" can not create pods that reference csidrivers (via CSI volumes)',
            id="a-driver",
        ),
        pytest.param(
            {"serviceAccountName": "default"},
            'node "n1" can not create pods that reference serviceaccounts',
            id="a-service-account",
        ),
    ],
)
async def test_a_mirror_pod(admin: Client, change: dict[str, Any], want: str) -> None:
    uid = (await admin.call("GET", f"{NODES}/n1")).body["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid, "controller": True}
    spec = {field: value for field, value in change.items() if field not in ("annotations", "owner")}
    document = _pod("p", "n1", **spec)
    owners = [{**owner, **(change.get("owner") or {})}] if change.get("owner", {}) is not None else []
    document["metadata"] = {
        "name": "p",
        "annotations": change.get("annotations", MIRROR),
        "ownerReferences": owners,
    }
    answer = await admin.showing("n1").call("POST", PODS, document)
    if want:
        assert (answer.code, want in answer.body["message"]) == (403, True), answer.body["message"]
    else:
        assert answer.code == 201, answer.body


@pytest.mark.parametrize(
    ("bound", "audiences", "want"),
    [
        pytest.param(None, (), "node requested token not bound to a pod", id="unbound"),
        pytest.param({"kind": "Secret"}, (), "node requested token not bound to a pod", id="bound-to-a-secret"),
        pytest.param({"uid": ""}, (), "node requested token with a pod binding without a uid", id="no-uid"),
        pytest.param(
            {"name": "q", "uid": "u2"},
            (),
            "node requested token bound to a pod scheduled on a different node",
            id="elsewhere",
        ),
        pytest.param({}, ("a", "b"), "node may only request 0 or 1 audiences", id="two-audiences"),
        pytest.param({}, ("vault",), "", id="an-audience-of-the-pod"),
        pytest.param(
            {}, ("bank",), 'system:node:n1 is not authorized to request tokens for audience "bank"', id="a-stranger"
        ),
    ],
)
async def test_tokens_for_its_pods(bound: dict[str, str] | None, audiences: tuple[str, ...], want: str) -> None:
    store = memory.MemoryStore()
    token = {"serviceAccountToken": {"audience": "vault"}}
    for name, node, uid in (("p", "n1", "u1"), ("q", "n2", "u2")):
        content = {"nodeName": node, "volumes": [{"projected": {"sources": [token]}}]}
        draft = record.stamped({"metadata": {"name": name, "uid": uid}, "spec": content})
        await store.create(record.Key("pods", "default", name), draft, uid=uid)
    restriction = NodeRestriction(store, authorization.Union(()))
    spec: dict[str, Any] = {"audiences": list(audiences)}
    if bound is not None:
        spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u1", **bound}
    n1 = User(name="system:node:n1", groups=("system:nodes",))
    detail = restriction.check_token(n1, namespace="default", name="robot", request={"spec": spec})
    assert detail == want
    assert restriction.check_token(User(name="ann"), namespace="default", name="robot", request={}) == ""
