"""Reviews of the permissions of users."""

from typing import Any

import pytest

from drachma.server.authorisers import modes
from drachma.store import memory
from tests.unit.server import client
from tests.unit.server.client import Client

GROUP = "/apis/authorization.k8s.io/v1"
REVIEWS = f"{GROUP}/subjectaccessreviews"
LOCAL = f"{GROUP}/namespaces/default/localsubjectaccessreviews"
SELF = f"{GROUP}/selfsubjectaccessreviews"
RULES = f"{GROUP}/selfsubjectrulesreviews"
GET_POD = {"verb": "get", "resource": "pods", "namespace": "default"}
ONE = "exactly one of nonResourceAttributes or resourceAttributes must be specified"


@pytest.fixture
async def cluster() -> Client:
    """Return a server with RBAC, where ann may get pods in the default namespace, and all users the version."""
    store = memory.MemoryStore()
    server = await client.start(store=store, authoriser=modes.make(store, ["Node", "RBAC"]))
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    rule = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
    await server.call("POST", f"{rbac}/namespaces/default/roles", {"metadata": {"name": "r"}, "rules": [rule]})
    binding = {"metadata": {"name": "b"}, "roleRef": {"kind": "Role", "name": "r"}}
    ann = {"kind": "User", "name": "ann"}
    await server.call("POST", f"{rbac}/namespaces/default/rolebindings", {**binding, "subjects": [ann]})
    paths = {"verbs": ["get"], "nonResourceURLs": ["/version"]}
    await server.call("POST", f"{rbac}/clusterroles", {"metadata": {"name": "v"}, "rules": [paths]})
    binding = {"metadata": {"name": "b"}, "roleRef": {"kind": "ClusterRole", "name": "v"}}
    all_users = {"kind": "Group", "name": "all"}
    await server.call("POST", f"{rbac}/clusterrolebindings", {**binding, "subjects": [all_users]})
    return server


@pytest.mark.parametrize(
    ("spec", "want"),
    [
        pytest.param(
            {"user": "ann", "resourceAttributes": GET_POD},
            {"allowed": True, "reason": 'RBAC: allowed by RoleBinding "b/default" of Role "r" to User "ann"'},
            id="allowed",
        ),
        pytest.param({"user": "bob", "resourceAttributes": GET_POD}, {"allowed": False}, id="another-user"),
        pytest.param(
            {"user": "ann", "resourceAttributes": {"verb": "get", "resource": "pods"}},
            {"allowed": False},
            id="everywhere",
        ),
        pytest.param(
            {"user": "bob", "groups": ["system:masters"], "resourceAttributes": GET_POD},
            {"allowed": True},
            id="masters",
        ),
        pytest.param(
            {"groups": ["all"], "nonResourceAttributes": {"verb": "get", "path": "/version"}},
            {"allowed": True, "reason": 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "v" to Group "all"'},
            id="a-path",
        ),
        pytest.param(
            {"user": "bob", "resourceAttributes": {**GET_POD, "fieldSelector": {"rawSelector": "nonsense"}}},
            {
                "allowed": False,
                "evaluationError": "spec.resourceAttributes.fieldSelector ignored due to parse error",
            },
            id="a-limit-that-is-none",
        ),
        pytest.param(
            {
                "user": "bob",
                "resourceAttributes": {
                    **GET_POD,
                    "labelSelector": {
                        "requirements": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Maybe"}]
                    },
                },
            },
            {
                "allowed": False,
                "evaluationError": "spec.resourceAttributes.labelSelector partially ignored due to parse error",
            },
            id="a-limit-that-is-partly-none",
        ),
    ],
)
async def test_whether_a_user_may(cluster: Client, spec: dict[str, Any], want: dict[str, Any]) -> None:
    answer = await cluster.call("POST", REVIEWS, {"spec": spec})
    assert (answer.code, answer.body["spec"], answer.body["status"]) == (201, spec, want)
    assert answer.body["metadata"] == {}


async def test_whether_a_node_may_see_slices_of_its_own(cluster: Client) -> None:
    attributes = {"verb": "list", "group": "resource.k8s.io", "resource": "resourceslices"}
    own = {"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["n"]}]}
    spec = {"user": "system:node:n", "groups": ["system:nodes"]}
    answer = await cluster.call("POST", REVIEWS, {"spec": {**spec, "resourceAttributes": attributes}})
    assert answer.body["status"] == {
        "allowed": False,
        "reason": "node: can only list/watch/deletecollection resourceslices with nodeName field selector",
    }
    limited = {**attributes, "fieldSelector": own}
    answer = await cluster.call("POST", REVIEWS, {"spec": {**spec, "resourceAttributes": limited}})
    assert answer.body["status"] == {"allowed": True}


async def test_about_a_namespace(cluster: Client) -> None:
    answer = await cluster.call("POST", LOCAL, {"spec": {"user": "ann", "resourceAttributes": GET_POD}})
    assert (answer.body["metadata"], answer.body["status"]["allowed"]) == ({"namespace": "default"}, True)


async def test_about_oneself(cluster: Client) -> None:
    answer = await cluster.call("POST", SELF, {"spec": {"resourceAttributes": GET_POD}})
    assert answer.body["status"] == {"allowed": True}


@pytest.mark.parametrize(
    ("path", "review", "want"),
    [
        pytest.param(SELF, {"spec": {}}, f"spec: Invalid value: null: {ONE}", id="nothing"),
        pytest.param(
            REVIEWS,
            {"spec": {"user": "u", "resourceAttributes": {}, "nonResourceAttributes": {"path": "/"}}},
            f'spec: Invalid value: {{"Path":"/","Verb":""}}: {ONE}',
            id="both",
        ),
        pytest.param(
            REVIEWS,
            {"spec": {"resourceAttributes": {}}},
            'spec.user: Invalid value: "": at least one of user or group must be specified',
            id="nobody",
        ),
        pytest.param(
            LOCAL,
            {"spec": {"user": "u", "resourceAttributes": {"namespace": "other"}}},
            'spec.resourceAttributes.namespace: Invalid value: "other": must match metadata.namespace',
            id="another-namespace",
        ),
        pytest.param(
            REVIEWS,
            {"metadata": {"name": "n"}, "spec": {"user": "u", "resourceAttributes": {}}},
            'metadata: Invalid value: {"name":"n"}: must be empty',
            id="a-name",
        ),
        pytest.param(
            REVIEWS,
            {"spec": {"user": "u", "resourceAttributes": {"fieldSelector": {}}}},
            "spec.resourceAttributes.fieldSelector.requirements: Required value: when "
            "spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required",
            id="an-empty-limit",
        ),
    ],
)
async def test_what_is_refused(cluster: Client, path: str, review: dict[str, Any], want: str) -> None:
    answer = await cluster.call("POST", path, review)
    assert (answer.code, answer.body["message"]) == (422, f'.authorization.k8s.io "" is invalid: {want}')


async def test_what_one_may_do(cluster: Client) -> None:
    answer = await cluster.call("POST", RULES, {"spec": {"namespace": "default"}})
    assert answer.body["status"] == {"resourceRules": [], "nonResourceRules": [], "incomplete": False}
    assert (answer.code, answer.body["spec"]) == (201, {})
    refused = await cluster.call("POST", RULES, {"spec": {}})
    assert (refused.code, refused.body["message"]) == (400, "no namespace on request")


async def test_without_rules_one_may_do_everything(server: Client) -> None:
    answer = await server.call("POST", RULES, {"spec": {"namespace": "default"}})
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    assert answer.body["status"]["resourceRules"] == [everything]
    assert answer.body["status"]["nonResourceRules"] == [{"verbs": ["*"], "nonResourceURLs": ["*"]}]
