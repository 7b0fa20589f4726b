"""Service accounts: of their secrets only names are kept, and a deprecated annotation is warned of once."""

from tests.unit.server.client import Client

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
ANNOTATION = {"kubernetes.io/enforce-mountable-secrets": "true"}


async def test_of_secrets_only_names_are_kept(server: Client) -> None:
    given = {"metadata": {"name": "a"}, "secrets": [{"name": "s", "namespace": "other", "kind": "Secret"}]}
    assert (await server.call("POST", ACCOUNTS, given)).body["secrets"] == [{"name": "s"}]


async def test_a_deprecated_annotation_is_warned_of_where_it_is_new(server: Client) -> None:
    given = {"metadata": {"name": "a", "annotations": ANNOTATION}}
    created = await server.call("POST", ACCOUNTS, given)
    assert "deprecated in v1.32+" in (created.header("warning") or "")
    changed = await server.call("PUT", f"{ACCOUNTS}/a", {**created.body, "automountServiceAccountToken": False})
    assert (changed.code, changed.header("warning")) == (200, None)
