"""A server with roles, and people who have some of them."""

from typing import Any

from drachma.api import gates as feature
from drachma.server import rolereconciliation
from drachma.server.authorisers import modes
from drachma.server.user import User
from drachma.store import memory
from tests.unit.server import client
from tests.unit.server.client import Client

RBAC = "/apis/rbac.authorization.k8s.io/v1"
MERGE = "application/merge-patch+json"
_ALL = "system:authenticated"

USERS = {
    "ann": User(name="ann", groups=("staff", _ALL)),
    "bob": User(name="bob", groups=(_ALL,)),
    "scheduler": User(name="system:kube-scheduler", groups=(_ALL,)),
    "n1": User(name="system:node:n1", groups=("system:nodes", _ALL)),
    "n2": User(name="system:node:n2", groups=("system:nodes", _ALL)),
    "driver": User(
        name="system:serviceaccount:default:driver",
        groups=("system:serviceaccounts", _ALL),
        extra={"authentication.kubernetes.io/node-name": ("n1",)},
    ),
}
"""Everybody's token is the key."""


async def start(*, gates: feature.Gates = feature.ALL) -> Client:
    """Start a server, and return a client of the admin; ``showing`` a token makes it a client of another user."""
    store = memory.MemoryStore()
    authoriser = modes.make(store, ["Node", "RBAC"])
    server = await client.start(store=store, authoriser=authoriser, users=USERS, gates=gates)
    await rolereconciliation.reconcile(server.app.dispatcher)
    return server


async def grant(server: Client, user: str, *rules: dict[str, Any], namespace: str = "", name: str = "r") -> None:
    """Gives a user a role with some rules, in a namespace or everywhere."""
    place = f"{RBAC}/namespaces/{namespace}/" if namespace else f"{RBAC}/cluster"
    role = {"metadata": {"name": name}, "rules": list(rules)}
    made = await server.call("POST", f"{place}roles", role)
    assert made.code == 201, made.body
    kind = "Role" if namespace else "ClusterRole"
    subjects = [{"kind": "User", "name": USERS[user].name}]
    binding = {"metadata": {"name": name}, "roleRef": {"kind": kind, "name": name}, "subjects": subjects}
    made = await server.call("POST", f"{place}rolebindings", binding)
    assert made.code == 201, made.body


def rule(verbs: str, resources: str, *, group: str = "", **more: Any) -> dict[str, Any]:
    """A rule from texts with spaces between."""
    return {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split(), **more}
