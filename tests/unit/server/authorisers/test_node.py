"""The node authorizer: what a node may do, by what its pods refer to."""

from typing import Any

import pytest

from drachma.server.access.authorization import Attributes
from drachma.server.authorisers import defaultroles, nodegraph
from drachma.server.authorisers.node import NodeAuthoriser
from drachma.server.surface import fieldselector
from drachma.server.user import User
from drachma.store import memory, record

NODE = User(name="system:node:n1", groups=("system:nodes", "system:authenticated"))
UNRELATED = "no relationship found between node 'n1' and this object"
GET_ONLY = "can only get individual resources of this type"

POD: dict[str, Any] = {
    "metadata": {"name": "p"},
    "spec": {
        "nodeName": "n1",
        "serviceAccountName": "robot",
        "imagePullSecrets": [{"name": "pull"}],
        "initContainers": [{"envFrom": [{"secretRef": {"name": "env"}}, {"configMapRef": {"name": "env"}}]}],
        "containers": [
            {
                "env": [
                    {"name": "a", "valueFrom": {"secretKeyRef": {"name": "key"}}},
                    {"name": "b", "valueFrom": {"configMapKeyRef": {"name": "key"}}},
                ]
            }
        ],
        "volumes": [
            {"name": "v1", "secret": {"secretName": "volume"}},
            {"name": "v2", "configMap": {"name": "volume"}},
            {"name": "v3", "projected": {"sources": [{"secret": {"name": "part"}}, {"configMap": {"name": "part"}}]}},
            {"name": "v4", "persistentVolumeClaim": {"claimName": "disk"}},
            {"name": "v5", "ephemeral": {}},
            {"name": "v6", "csi": {"nodePublishSecretRef": {"name": "csi"}}},
            {"name": "v7", "rbd": {"secretRef": {"name": "rbd"}}},
        ],
        "resourceClaims": [{"name": "one", "resourceClaimName": "direct"}, {"name": "two"}, {"name": "three"}],
    },
    "status": {
        "resourceClaimStatuses": [{"name": "two", "resourceClaimName": "made"}, {"name": "three"}],
        "extendedResourceClaimStatus": {"resourceClaimName": "extended"},
    },
}


class Cluster:
    def __init__(self) -> None:
        self.store = memory.MemoryStore()
        rules = defaultroles.read().rules("system:node")
        self.authoriser = NodeAuthoriser(nodegraph.NodeGraph(self.store), rules)

    async def put(self, resource: str, name: str, document: dict[str, Any], *, namespace: str = "") -> None:
        key, draft = record.Key(resource, namespace, name), record.stamped(document)
        stored = self.store.get(key)
        if stored is None:
            await self.store.create(key, draft)
        else:
            await self.store.update(key, draft, revision=stored.revision)

    def ask(
        self,
        verb: str,
        resource: str,
        place: str = "",
        *,
        user: User = NODE,
        fields: str = "",
        version: str = "",
    ) -> str:
        """Return the refusal; empty if the action is allowed."""
        full, _, subresource = resource.partition("#")
        group, _, plural = full.rpartition("/")
        namespace, _, name = place.rpartition("/")
        opinion = self.authoriser.authorise(
            Attributes(
                user=user,
                verb=verb,
                group=group,
                version=version,
                resource=plural,
                subresource=subresource,
                namespace=namespace,
                name=name,
                fields=tuple(fieldselector.terms(fields)) if fields else (),
            )
        )
        return "" if opinion.is_allowed else opinion.reason or "no opinion"


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.mark.parametrize("name", ["pull", "env", "key", "volume", "part", "csi", "rbd"])
async def test_secrets_of_its_pods(cluster: Cluster, name: str) -> None:
    assert cluster.ask("get", "secrets", f"lab/{name}") == UNRELATED
    await cluster.put("pods", "p", POD, namespace="lab")
    assert [cluster.ask(verb, "secrets", f"lab/{name}") for verb in ("get", "list", "watch")] == ["", "", ""]
    assert cluster.ask("get", "secrets", f"other/{name}") == UNRELATED
    assert cluster.ask("get", "secrets", f"lab/{name}", user=_node("n2")) != ""
    await cluster.store.delete(record.Key("pods", "lab", "p"))
    assert cluster.ask("get", "secrets", f"lab/{name}") == UNRELATED


@pytest.mark.parametrize(
    ("resource", "place"),
    [
        pytest.param("configmaps", "lab/env", id="config-map-of-environment"),
        pytest.param("configmaps", "lab/key", id="config-map-of-variable"),
        pytest.param("configmaps", "lab/volume", id="config-map-of-volume"),
        pytest.param("configmaps", "lab/part", id="config-map-of-projection"),
        pytest.param("persistentvolumeclaims", "lab/disk", id="volume-claim"),
        pytest.param("persistentvolumeclaims", "lab/p-v5", id="ephemeral-volume"),
        pytest.param("resource.k8s.io/resourceclaims", "lab/direct", id="claim"),
        pytest.param("resource.k8s.io/resourceclaims", "lab/made", id="claim-from-a-template"),
        pytest.param("resource.k8s.io/resourceclaims", "lab/extended", id="claim-of-extended-resources"),
        pytest.param("serviceaccounts", "lab/robot", id="service-account"),
        pytest.param("pods", "lab/p", id="the-pod"),
    ],
)
async def test_what_its_pods_need(cluster: Cluster, resource: str, place: str) -> None:
    await cluster.put("pods", "q", {**POD, "spec": {**POD["spec"], "nodeName": "n2"}}, namespace="lab")
    assert cluster.ask("get", resource, place) == UNRELATED
    await cluster.put("pods", "p", POD, namespace="lab")
    assert cluster.ask("get", resource, place) == ""


async def test_a_mirror_pod_gives_nothing(cluster: Cluster) -> None:
    mirror = {**POD, "metadata": {"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}}
    await cluster.put("pods", "p", mirror, namespace="lab")
    assert cluster.ask("get", "pods", "lab/p") == ""
    assert cluster.ask("get", "secrets", "lab/pull") == UNRELATED


async def test_volumes_of_its_pods(cluster: Cluster) -> None:
    csi = {"nodeStageSecretRef": {"namespace": "vault", "name": "stage"}, "controllerPublishSecretRef": {"name": "no"}}
    volume = {"metadata": {"name": "v"}, "spec": {"claimRef": {"namespace": "lab", "name": "disk"}, "csi": csi}}
    await cluster.put("persistentvolumes", "v", volume)
    assert cluster.ask("get", "persistentvolumes", "v") == UNRELATED
    await cluster.put("pods", "p", POD, namespace="lab")
    assert cluster.ask("get", "persistentvolumes", "v") == cluster.ask("get", "secrets", "vault/stage") == ""
    assert cluster.ask("get", "secrets", "lab/no") == UNRELATED
    await cluster.put("persistentvolumes", "v", {**volume, "spec": {}})
    assert cluster.ask("get", "persistentvolumes", "v") == cluster.ask("get", "secrets", "vault/stage") == UNRELATED


async def test_claims_are_read_only(cluster: Cluster) -> None:
    await cluster.put("pods", "p", POD, namespace="lab")
    claims = "resource.k8s.io/resourceclaims"
    for verb in ("list", "watch", "create", "update", "patch", "delete", "deletecollection"):
        assert cluster.ask(verb, claims, "lab/direct") == GET_ONLY
    assert cluster.ask("patch", f"{claims}#status", "lab/direct") == GET_ONLY
    assert cluster.ask("get", f"{claims}#status", "lab/direct") == "cannot get subresource"


@pytest.mark.parametrize(
    ("slices", "stored_as"),
    [
        pytest.param("resource.k8s.io/resourceslices", "resource.k8s.io/resourceslices", id="v1"),
        pytest.param(
            "resource.k8s.io/noderesourceslices", "resource.k8s.io/v1alpha2/noderesourceslices", id="first-alpha"
        ),
    ],
)
async def test_slices_of_its_own(cluster: Cluster, slices: str, stored_as: str) -> None:
    await cluster.put(stored_as, "own", {"metadata": {"name": "own"}, "spec": {"nodeName": "n1"}})
    await cluster.put(stored_as, "foreign", {"metadata": {"name": "foreign"}, "spec": {"nodeName": "n2"}})
    for verb in ("get", "update", "patch", "delete"):
        assert (cluster.ask(verb, slices, "own"), cluster.ask(verb, slices, "foreign")) == ("", UNRELATED)
    assert cluster.ask("list", slices, fields="spec.nodeName=n1") == ""
    limited = "can only list/watch/deletecollection resourceslices with nodeName field selector"
    for fields in ("", "spec.nodeName=n2", "spec.nodeName!=n1"):
        assert cluster.ask("deletecollection", slices, fields=fields) == limited


async def test_slices_of_1_30_are_not_those_of_the_same_name_in_v1(cluster: Cluster) -> None:
    slices, stored_as = "resource.k8s.io/resourceslices", "resource.k8s.io/v1alpha2/resourceslices"
    await cluster.put(slices, "a", {"metadata": {"name": "a"}, "spec": {"nodeName": "n1"}})
    await cluster.put(stored_as, "a", {"metadata": {"name": "a"}, "nodeName": "n2"})
    await cluster.put(stored_as, "b", {"metadata": {"name": "b"}, "nodeName": "n1"})
    for verb in ("get", "update", "patch", "delete"):
        assert cluster.ask(verb, slices, "a", version="v1") == ""
        assert cluster.ask(verb, slices, "a", version="v1alpha2") == UNRELATED
        assert cluster.ask(verb, slices, "b", version="v1alpha2") == ""
    assert cluster.ask("list", slices, fields="nodeName=n1", version="v1alpha2") == ""
    assert cluster.ask("list", slices, fields="nodeName=n2", version="v1alpha2") != ""


@pytest.mark.parametrize(
    ("verb", "resource", "place", "want"),
    [
        pytest.param("update", "coordination.k8s.io/leases", "kube-node-lease/n1", "", id="its-lease"),
        pytest.param(
            "update",
            "coordination.k8s.io/leases",
            "kube-node-lease/n2",
            "can only access node lease with the same name as the requesting node",
            id="another-lease",
        ),
        pytest.param(
            "get",
            "coordination.k8s.io/leases",
            "kube-system/n1",
            'can only access leases in the "kube-node-lease" system namespace',
            id="a-lease-elsewhere",
        ),
        pytest.param("get", "nodes", "n1", "", id="its-node"),
        pytest.param("get", "nodes", "n2", "node 'n1' cannot read 'n2', only its own Node object", id="another-node"),
        pytest.param("list", "nodes", "", "node 'n1' cannot read all nodes, only its own Node object", id="all-nodes"),
        pytest.param("delete", "nodes", "n1", "no opinion", id="deleting-its-node"),
        pytest.param("list", "services", "", "", id="what-all-nodes-read"),
        pytest.param("create", "events", "lab/", "", id="what-all-nodes-write"),
        pytest.param("get", "apps/deployments", "lab/d", "no opinion", id="what-nodes-do-not-read"),
        pytest.param(
            "list", "pods", "lab/", "can only list/watch pods with spec.nodeName field selector", id="all-pods"
        ),
        pytest.param("patch", "pods#status", "lab/p", "", id="statuses-are-for-admission"),
        pytest.param("patch", "pods", "lab/p", "no opinion", id="patching-pods"),
        pytest.param("delete", "secrets", "lab/s", "can only read resources of this type", id="writing-secrets"),
        pytest.param("list", "secrets", "", "can only read namespaced object of this type", id="all-secrets"),
        pytest.param("list", "secrets", "lab/", "No Object name found", id="secrets-of-a-namespace"),
        pytest.param("create", "serviceaccounts#token", "lab/robot", UNRELATED, id="tokens-of-strangers"),
        pytest.param("get", "storage.k8s.io/csinodes", "n1", "", id="its-csi-node"),
    ],
)
async def test_what_is_its_own(cluster: Cluster, verb: str, resource: str, place: str, want: str) -> None:
    assert cluster.ask(verb, resource, place) == want


@pytest.mark.parametrize(
    ("user", "want"),
    [
        pytest.param(User(name="system:node:n1"), "no opinion", id="without-the-group"),
        pytest.param(User(name="n1", groups=("system:nodes",)), "no opinion", id="without-the-name"),
        pytest.param(
            User(name="system:node:", groups=("system:nodes",)), 'unknown node for user "system:node:"', id="nameless"
        ),
    ],
)
async def test_who_is_no_node(cluster: Cluster, user: User, want: str) -> None:
    assert cluster.ask("get", "nodes", "n1", user=user) == want


async def test_a_graph_in_use_keeps_up(cluster: Cluster) -> None:
    assert cluster.ask("get", "secrets", "lab/pull") == UNRELATED
    for number in range(600):
        await cluster.put("pods", "p", {**POD, "metadata": {"name": "p", "x": number}}, namespace="lab")
        cluster.ask("get", "secrets", "lab/pull", user=User(name="ann"))
    assert cluster.ask("get", "secrets", "lab/pull") == ""


def _node(name: str) -> User:
    return User(name=f"system:node:{name}", groups=("system:nodes",))
