"""Authentication by bootstrap tokens."""

import base64
from datetime import UTC, datetime
from typing import Any

import pytest

from drachma.server.access import bootstraptokens
from tests.unit.server import client

TOKEN = "abcdef.0123456789abcdef"
SECRETS = "/api/v1/namespaces/kube-system/secrets"
GOOD = {
    "token-id": "abcdef",
    "token-secret": "0123456789abcdef",
    "usage-bootstrap-authentication": "true",
    "expiration": "2030-01-01T00:00:00Z",
}


def secret(*, name: str = "bootstrap-token-abcdef", kind: str = "bootstrap.kubernetes.io/token", **values: str) -> Any:
    texts = {**GOOD, **{key.replace("_", "-"): value for key, value in values.items()}}
    data = {key: base64.b64encode(value.encode()).decode() for key, value in texts.items()}
    return {"metadata": {"name": name}, "type": kind, "data": data}


async def identified(server: client.Client, token: str = TOKEN) -> tuple[str, tuple[str, ...]] | None:
    tokens = bootstraptokens.BootstrapTokens(server.store, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    user = tokens.identify(token)
    return (user.name, user.groups) if user is not None else None


async def test_a_token_of_a_secret_is_somebody(server: client.Client) -> None:
    made = await server.call("POST", SECRETS, secret(auth_extra_groups="system:bootstrappers:mine"))
    assert made.code == 201
    want = ("system:bootstrap:abcdef", ("system:bootstrappers", "system:bootstrappers:mine"))
    assert await identified(server) == want


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(secret(token_secret="0123456789abcdee"), id="another-secret"),
        pytest.param(secret(token_id="abcdee"), id="another-id"),
        pytest.param(secret(expiration="2025-01-01T00:00:00Z"), id="over"),
        pytest.param(secret(usage_bootstrap_authentication="yes"), id="not-for-this"),
        pytest.param(secret(auth_extra_groups="system:masters"), id="a-group-that-it-cannot-give"),
        pytest.param(secret(kind="Opaque"), id="another-type"),
        pytest.param(secret(name="bootstrap-token-other0"), id="another-name"),
    ],
)
async def test_and_others_are_nobody(server: client.Client, made: Any) -> None:
    assert (await server.call("POST", SECRETS, made)).code == 201
    assert await identified(server) is None


async def test_another_form_is_nobody(server: client.Client) -> None:
    await server.call("POST", SECRETS, secret())
    assert await identified(server, "abcdef") is None


async def test_a_secret_that_goes_lets_nobody_in(server: client.Client) -> None:
    made = secret()
    made["metadata"]["finalizers"] = ["example.com/x"]
    await server.call("POST", SECRETS, made)
    await server.call("DELETE", f"{SECRETS}/bootstrap-token-abcdef")
    assert await identified(server) is None
