"""Roles and bindings, as clients see them."""

from typing import Any

import pytest

from tests.unit.server.client import Client

GROUP = "/apis/rbac.authorization.k8s.io/v1"
ROLES = f"{GROUP}/namespaces/default/roles"
CLUSTER_ROLES = f"{GROUP}/clusterroles"
BINDINGS = f"{GROUP}/namespaces/default/rolebindings"
CLUSTER_BINDINGS = f"{GROUP}/clusterrolebindings"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
NO_VERBS = {**PODS, "verbs": []}
READER = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}


def _role(*rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": "reader"}, "rules": list(rules), **more}


def _binding(*subjects: dict[str, Any], **role: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "b"},
        "subjects": list(subjects),
        "roleRef": {"kind": "Role", "name": "reader", **role},
    }


async def test_a_role_without_rules_says_so(server: Client) -> None:
    created = await server.call("POST", ROLES, _role())
    assert (created.code, created.body["rules"]) == (201, None)


async def test_an_update_makes_what_is_not_there(server: Client) -> None:
    document = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", **_role(PODS)}
    created = await server.call("PUT", f"{CLUSTER_ROLES}/reader", document)
    assert (created.code, created.body["rules"]) == (201, [PODS])


async def test_bindings_are_completed(server: Client) -> None:
    created = await server.call(
        "POST", BINDINGS, _binding({"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s"})
    )
    assert created.body["roleRef"] == READER
    assert created.body["subjects"] == [
        {"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"},
        {"kind": "ServiceAccount", "name": "s"},
    ]


@pytest.mark.parametrize(
    ("path", "document", "want_message"),
    [
        pytest.param(ROLES, _role(NO_VERBS), "rules[0].verbs: Required value", id="no-verbs"),
        pytest.param(
            ROLES,
            _role({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}),
            'rules[0].nonResourceURLs: Invalid value: ["/metrics"]: namespaced rules cannot apply to non-resource URLs',
            id="paths-in-a-namespace",
        ),
        pytest.param(
            CLUSTER_ROLES,
            _role({**PODS, "nonResourceURLs": ["/a"]}),
            'rules[0].nonResourceURLs: Invalid value: ["/a"]: rules cannot apply to both regular resources and '
            "non-resource URLs",
            id="paths-and-resources",
        ),
        pytest.param(
            CLUSTER_ROLES,
            _role(aggregationRule={"clusterRoleSelectors": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]}),
            "[aggregationRule.clusterRoleSelectors[0].matchExpressions[0].values: Required value: must be specified "
            "when `operator` is 'In' or 'NotIn', aggregationRule.clusterRoleSelectors[0]: Invalid value: null: "
            "invalid label selector.]",
            id="bad-aggregation",
        ),
        pytest.param(
            CLUSTER_BINDINGS,
            _binding({"kind": "ServiceAccount", "name": "s"}),
            '[roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole", '
            "subjects[0].namespace: Required value]",
            id="a-role-of-a-namespace-for-the-cluster",
        ),
        pytest.param(
            BINDINGS,
            _binding({"kind": "User"}, name=""),
            "[subjects[0].name: Required value, roleRef.name: Required value]",
            id="no-names",
        ),
    ],
)
async def test_what_is_refused(server: Client, path: str, document: dict[str, Any], want_message: str) -> None:
    refusal = await server.call("POST", path, document)
    assert (refusal.code, refusal.body["message"].partition(" is invalid: ")[2]) == (422, want_message)


async def test_a_binding_stays_one_of_its_role(server: Client) -> None:
    await server.call("POST", BINDINGS, _binding())
    patch = {"roleRef": {"name": "writer"}}
    refusal = await server.call("PATCH", f"{BINDINGS}/b", patch, content_type="application/merge-patch+json")
    assert refusal.body["message"].endswith(
        'roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"writer"}: '
        "field is immutable"
    )


async def test_columns(server: Client) -> None:
    await server.call("POST", ROLES, _role())
    subjects = {"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "namespace": "n", "name": "s"}
    await server.call("POST", BINDINGS, _binding(*subjects))
    roles = (await server.call("GET", ROLES, headers=TABLE)).body
    assert [column["name"] for column in roles["columnDefinitions"]] == ["Name", "Created At"]
    row = (await server.call("GET", BINDINGS, headers=TABLE)).body["rows"][0]["cells"]
    assert (row[:2], row[3:]) == (["b", "Role/reader"], ["u", "", "n/s"])
