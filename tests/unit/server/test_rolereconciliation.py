"""The default roles, when a server begins."""

from typing import Any

import pytest

from drachma.server import rolereconciliation
from tests.unit.server.client import Client

RBAC = "/apis/rbac.authorization.k8s.io/v1"
VIEWER = f"{RBAC}/clusterroles/system:public-info-viewer"
BINDING = f"{RBAC}/clusterrolebindings/system:public-info-viewer"
MERGE = "application/merge-patch+json"


@pytest.fixture
async def cluster(server: Client) -> Client:
    await rolereconciliation.reconcile(server.app.dispatcher)
    return server


async def _again(cluster: Client) -> int:
    """Reconcile again; return the number of writes."""
    before = cluster.store.revision
    await rolereconciliation.reconcile(cluster.app.dispatcher)
    return cluster.store.revision - before


async def test_what_is_there_is_not_written(cluster: Client) -> None:
    assert await _again(cluster) == 0


async def test_what_is_missing_is_made(cluster: Client) -> None:
    role = (await cluster.call("GET", VIEWER)).body
    await cluster.call("DELETE", VIEWER)
    assert await _again(cluster) == 1
    assert (await cluster.call("GET", VIEWER)).body["rules"] == role["rules"]


@pytest.mark.parametrize("protection", ["true", "false"])
async def test_rules_are_added_and_stay(cluster: Client, protection: str) -> None:
    own = {"verbs": ["get"], "nonResourceURLs": ["/own", "/healthz"]}
    annotations = {"rbac.authorization.kubernetes.io/autoupdate": protection}
    patch: dict[str, Any] = {"rules": [own], "metadata": {"annotations": annotations}}
    await cluster.call("PATCH", VIEWER, patch, content_type=MERGE)
    assert await _again(cluster) == (1 if protection == "true" else 0)
    rules = (await cluster.call("GET", VIEWER)).body["rules"]
    missing = ("/livez", "/readyz", "/version", "/version/")
    added = [{"verbs": ["get"], "nonResourceURLs": [path]} for path in missing]
    assert rules == [own, *(added if protection == "true" else [])]


async def test_subjects_and_labels_are_added_and_stay(cluster: Client) -> None:
    group = "rbac.authorization.k8s.io"
    own = {"kind": "User", "apiGroup": group, "name": "own"}
    labels = {"kubernetes.io/bootstrapping": None, "own": "x"}
    await cluster.call("PATCH", BINDING, {"subjects": [own], "metadata": {"labels": labels}}, content_type=MERGE)
    assert await _again(cluster) == 1
    binding = (await cluster.call("GET", BINDING)).body
    assert [subject["name"] for subject in binding["subjects"]] == [
        "own",
        "system:authenticated",
        "system:unauthenticated",
    ]
    assert binding["metadata"]["labels"] == {"kubernetes.io/bootstrapping": "rbac-defaults", "own": "x"}


async def test_a_binding_of_another_role_is_made_anew(cluster: Client) -> None:
    await cluster.call("DELETE", BINDING)
    role = {"kind": "ClusterRole", "name": "cluster-admin"}
    name = "system:public-info-viewer"
    await cluster.call("POST", f"{RBAC}/clusterrolebindings", {"metadata": {"name": name}, "roleRef": role})
    assert await _again(cluster) == 2
    assert (await cluster.call("GET", BINDING)).body["roleRef"]["name"] == name


async def test_aggregation_is_put_right(cluster: Client) -> None:
    view = f"{RBAC}/clusterroles/view"
    wanted = (await cluster.call("GET", view)).body["aggregationRule"]
    await cluster.call("PATCH", view, {"aggregationRule": None}, content_type=MERGE)
    selectors = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    await cluster.call("PATCH", VIEWER, {"aggregationRule": selectors}, content_type=MERGE)
    assert await _again(cluster) == 2
    assert (await cluster.call("GET", view)).body["aggregationRule"] == wanted
    assert "aggregationRule" not in (await cluster.call("GET", VIEWER)).body
