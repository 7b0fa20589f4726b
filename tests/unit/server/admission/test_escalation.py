"""Roles that would give more than their author has."""

from typing import Any

import pytest

from tests.unit.server import people
from tests.unit.server.client import Client
from tests.unit.server.people import MERGE, RBAC, rule

ROLES = f"{RBAC}/namespaces/default/roles"
BINDINGS = f"{RBAC}/namespaces/default/rolebindings"
CLUSTER_ROLES = f"{RBAC}/clusterroles"
GROUP = "rbac.authorization.k8s.io"
WRITES = rule("create update patch", "roles rolebindings", group=GROUP)
CLUSTER_WRITES = rule("create update patch", "clusterroles", group=GROUP)
GET_SECRETS = rule("get", "secrets")
SECRETS = '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
GRANTS = (
    'user "ann" (groups=["staff" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'
)


@pytest.fixture
async def admin() -> Client:
    return await people.start()


def _role(name: str, *rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "rules": list(rules), **more}


def _binding(name: str, *, kind: str = "Role") -> dict[str, Any]:
    subjects = [{"kind": "User", "name": "bob"}]
    return {"metadata": {"name": f"to-{name}"}, "roleRef": {"kind": kind, "name": name}, "subjects": subjects}


async def test_nobody_writes_a_role_with_more_than_they_have(admin: Client) -> None:
    await people.grant(admin, "ann", WRITES, rule("get", "pods"), namespace="default")
    ann = admin.showing("ann")
    assert (await ann.call("POST", ROLES, _role("same", rule("get", "pods")))).code == 201
    refused = await ann.call("POST", ROLES, _role("more", GET_SECRETS, rule("get", "pods")))
    message = f'roles.{GROUP} "more" is forbidden: {GRANTS}{SECRETS}'
    assert (refused.code, refused.body["message"]) == (403, message)
    patch = {"rules": [GET_SECRETS]}
    refused = await ann.call("PATCH", f"{ROLES}/same", patch, content_type=MERGE)
    assert (refused.code, refused.body["message"]) == (403, message.replace('"more"', '"same"'))
    document = {"apiVersion": f"{GROUP}/v1", "kind": "Role", **_role("put", GET_SECRETS)}
    assert (await ann.call("PUT", f"{ROLES}/put", document)).code == 403


async def test_who_may_escalate_may_write_any_role(admin: Client) -> None:
    await people.grant(admin, "ann", WRITES, rule("escalate", "roles", group=GROUP), namespace="default")
    assert (await admin.showing("ann").call("POST", ROLES, _role("more", GET_SECRETS))).code == 201


async def test_finalizers_and_owners_give_nothing(admin: Client) -> None:
    await people.grant(admin, "ann", WRITES, namespace="default")
    await admin.call("POST", ROLES, _role("secrets", GET_SECRETS))
    ann = admin.showing("ann")
    finalizers = {"metadata": {"finalizers": ["example.com/x"]}}
    assert (await ann.call("PATCH", f"{ROLES}/secrets", finalizers, content_type=MERGE)).code == 200
    labels = {"metadata": {"labels": {"a": "b"}}}
    assert (await ann.call("PATCH", f"{ROLES}/secrets", labels, content_type=MERGE)).code == 403


async def test_aggregation_takes_everything(admin: Client) -> None:
    await people.grant(admin, "ann", CLUSTER_WRITES)
    selectors = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    refused = await admin.showing("ann").call("POST", CLUSTER_ROLES, _role("sum", aggregationRule=selectors))
    detail = "must have cluster-admin privileges to use the aggregationRule"
    assert refused.body["message"] == f'clusterroles.{GROUP} "sum" is forbidden: {detail}'


async def test_nobody_binds_a_role_with_more_than_they_have(admin: Client) -> None:
    await people.grant(admin, "ann", WRITES, namespace="default")
    await admin.call("POST", ROLES, _role("secrets", GET_SECRETS))
    ann = admin.showing("ann")
    refused = await ann.call("POST", BINDINGS, _binding("secrets"))
    assert refused.body["message"] == f'rolebindings.{GROUP} "to-secrets" is forbidden: {GRANTS}{SECRETS}'
    refused = await ann.call("POST", BINDINGS, _binding("cluster-admin", kind="ClusterRole"))
    everything = '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}\n{NonResourceURLs:["*"], Verbs:["*"]}'
    assert refused.body["message"].endswith(everything)


async def test_who_may_bind_a_role_may_bind_that_one(admin: Client) -> None:
    bind = rule("bind", "roles", group=GROUP, resourceNames=["secrets"])
    await people.grant(admin, "ann", WRITES, bind, namespace="default")
    await admin.call("POST", ROLES, _role("secrets", GET_SECRETS))
    await admin.call("POST", ROLES, _role("others", GET_SECRETS))
    ann = admin.showing("ann")
    assert (await ann.call("POST", BINDINGS, _binding("secrets"))).code == 201
    assert (await ann.call("POST", BINDINGS, _binding("others"))).code == 403


async def test_a_role_that_is_not_there(admin: Client) -> None:
    await people.grant(admin, "ann", WRITES, namespace="default")
    refused = await admin.showing("ann").call("POST", BINDINGS, _binding("ghost"))
    assert (refused.code, refused.body["message"]) == (404, f'rolebindings.{GROUP} "ghost" not found')
    assert (await admin.call("POST", BINDINGS, _binding("ghost"))).code == 201


async def test_missing_roles_of_the_author_are_named(admin: Client) -> None:
    await people.grant(admin, "ann", WRITES, namespace="default")
    ghost = {"metadata": {"name": "g"}, "roleRef": {"kind": "Role", "name": "ghost"}}
    await admin.call("POST", BINDINGS, {**ghost, "subjects": [{"kind": "User", "name": "ann"}]})
    refused = await admin.showing("ann").call("POST", ROLES, _role("more", GET_SECRETS))
    absence = f'role.{GROUP} "ghost" not found'
    assert refused.body["message"].endswith(f"{SECRETS}; resolution errors: [{absence}]")
