"""Users of the fuzz run, and what each of them shows."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Final

from bench.soak.wire import Wire

VIEWER: Final = "viewer"
_NODE: Final = "node"
_NOBODY: Final = "nobody"
_FORGED: Final = (
    "eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2t1YmVybmV0ZXMuZGVmYXVsdC5zdmMiLCJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6"
    "ZGVmYXVsdDpkZWZhdWx0In0."
)
"""Token of an account without a signature."""

KEPT: Final = "fuzz-users"
"""Namespace that no request of the run touches."""
_ROLES: Final = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
_BINDINGS: Final = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


def make_tokens() -> dict[str, str]:
    """Return tokens for the users of a token file."""
    return {name: secrets.token_hex(16) for name in (VIEWER, _NODE, _NOBODY)}


def token_file(tokens: Mapping[str, str]) -> str:
    """Return the content of the server's token file."""
    users = {
        VIEWER: ("viewer", "people"),
        _NODE: ("system:node:node-0", "system:nodes"),
        _NOBODY: ("nobody", "people"),
    }
    return "".join(f'{tokens[name]},{user},{name},"{group}"\n' for name, (user, group) in users.items())


WEIGHTS: Final = {"admin": 45, "account": 20, VIEWER: 8, _NODE: 8, _NOBODY: 7}
"""How often identities are chosen; the others once each. Most requests of weak identities end at authorization."""


async def restore_roles(wire: Wire) -> None:
    """Create the roles and bindings of the users where they are absent: requests of the run delete them, too."""
    for user, role in (("viewer", "view"), (f"system:serviceaccount:{KEPT}:editor", "edit")):
        verbs = ["get", "list", "watch"] if role == "view" else ["*"]
        rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": verbs}]
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
        binding = {
            "metadata": {"name": f"fuzz-{role}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [subject],
        }
        for path, document in ((_ROLES, {"metadata": {"name": role}, "rules": rules}), (_BINDINGS, binding)):
            await wire.call("POST", path, document)


async def make_authorizations(wire: Wire, admin: str, tokens: Mapping[str, str]) -> dict[str, str]:
    """Give the users their roles; return the Authorization header of each identity, empty for none."""
    # The account lives in a namespace of its own, where no request of the run deletes it.
    for name in ("fuzz", KEPT):
        await wire.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    await restore_roles(wire)
    await wire.call("POST", f"/api/v1/namespaces/{KEPT}/serviceaccounts", {"metadata": {"name": "editor"}})
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 86400}}
    answer = await wire.call("POST", f"/api/v1/namespaces/{KEPT}/serviceaccounts/editor/token", request)
    assert answer.code == 201, answer
    account = f"Bearer {answer.document['status']['token']}"
    return {
        "admin": f"Bearer {admin}",
        "account": account,
        VIEWER: f"Bearer {tokens[VIEWER]}",
        _NODE: f"Bearer {tokens[_NODE]}",
        _NOBODY: f"Bearer {tokens[_NOBODY]}",
        "anonymous": "",
        "unknown-token": "Bearer 0123456789abcdef",
        "forged-token": f"Bearer {_FORGED}",
        "changed-token": account[:-6] + "AAAAAA",
        "basic": "Basic YWRtaW46YWRtaW4=",
        "no-text": "Bearer \xff\xfe\x80",
    }
