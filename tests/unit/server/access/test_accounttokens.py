"""Tokens of service accounts: who they stand for, and every way in which they are no good."""

import base64
import hmac
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from drachma.bounds import memory
from drachma.server.access import signingkeys
from drachma.server.access.accounts import Reference, RefusedTokenError
from drachma.server.access.accounttokens import ISSUER, AccountTokens, Binding
from drachma.server.user import User
from drachma.store import record

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SECONDS = int(NOW.timestamp())
KEY = rsa.generate_private_key(65537, 2048)
FOREIGN = rsa.generate_private_key(65537, 2048)
KEYS = signingkeys.make_keys(KEY)
ACCOUNT = Reference("app", "uid-app")
PLAIN = Binding(namespace="n", serviceaccount=ACCOUNT)
EXTRA = "authentication.kubernetes.io/"


class Objects:
    """A store of metadata."""

    def __init__(self) -> None:
        self.metadata: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.put("serviceaccounts", "n", "app")
        self.put("pods", "n", "p")
        self.put("secrets", "n", "s")
        self.put("nodes", "", "m")

    def put(self, resource: str, namespace: str, name: str, **more: Any) -> None:
        self.metadata[resource, namespace, name] = {"name": name, "uid": f"uid-{name}", **more}

    def get(self, key: record.Key) -> record.Record | None:
        metadata = self.metadata.get((key.resource, key.namespace, key.name))
        if metadata is None:
            return None
        content = {"metadata": metadata, **metadata.get("content", {})}
        return record.Record(key, metadata["uid"], 1, 1, json.dumps(content).encode())


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def objects() -> Objects:
    return Objects()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tokens(objects: Objects, clock: Clock) -> AccountTokens:
    return AccountTokens(objects, KEYS, clock=clock)


def issued(tokens: AccountTokens, binding: Binding = PLAIN, *, seconds: int = 600) -> str:
    return tokens.issue(binding, audiences=[ISSUER], seconds=seconds, token_id="id-1")


def claims(**changed: Any) -> dict[str, Any]:
    """What a good token claims, but for something."""
    account = {"namespace": "n", "serviceaccount": {"name": "app", "uid": "uid-app"}}
    good = {"aud": [ISSUER], "exp": SECONDS + 600, "iat": SECONDS, "nbf": SECONDS, "iss": ISSUER, "jti": "id-1"}
    return {**good, "sub": "system:serviceaccount:n:app", "kubernetes.io": account, **changed}


def signed(content: dict[str, Any], key: Any = KEY, algorithm: str = "RS256", **header: str) -> str:
    return jwt.PyJWS().encode(json.dumps(content).encode(), key, algorithm=algorithm, headers=header)


def test_a_token_stands_for_its_account(tokens: AccountTokens) -> None:
    found = tokens.identify(issued(tokens))
    assert found is not None
    assert found.audiences == (ISSUER,)
    assert found.user == User(
        name="system:serviceaccount:n:app",
        uid="uid-app",
        groups=("system:serviceaccounts", "system:serviceaccounts:n", "system:authenticated"),
        extra={f"{EXTRA}credential-id": ("JTI=id-1",)},
    )


@pytest.mark.parametrize(
    ("binding", "extra"),
    [
        pytest.param(
            Binding(pod=Reference("p", "uid-p"), node=Reference("m", "uid-m")),
            {"pod-name": "p", "pod-uid": "uid-p", "node-name": "m", "node-uid": "uid-m"},
            id="pod-on-a-node",
        ),
        pytest.param(
            Binding(pod=Reference("p", "uid-p"), node=Reference("gone")),
            {"pod-name": "p", "pod-uid": "uid-p", "node-name": "gone"},
            id="pod-on-a-node-that-is-not-there",
        ),
        pytest.param(Binding(secret=Reference("s", "uid-s")), {}, id="secret"),
        pytest.param(Binding(node=Reference("m", "uid-m")), {"node-name": "m", "node-uid": "uid-m"}, id="node"),
    ],
)
def test_a_bound_token_says_what_it_is_bound_to(tokens: AccountTokens, binding: Binding, extra: dict[str, str]) -> None:
    bound = Binding(namespace="n", serviceaccount=ACCOUNT, pod=binding.pod, secret=binding.secret, node=binding.node)
    found = tokens.identify(issued(tokens, bound))
    assert found is not None
    want = {"credential-id": "JTI=id-1", **extra}
    assert found.user.extra == {f"{EXTRA}{key}": (value,) for key, value in want.items()}


NOT_OURS = [
    pytest.param("nonsense", id="nonsense"),
    pytest.param("a.b.c", id="three-parts"),
    pytest.param("a.b", id="two-parts"),
    pytest.param(signed(claims(iss="https://elsewhere.example.com")), id="another-issuer"),
    pytest.param(signed(claims(iss=7)), id="no-issuer"),
    pytest.param(f"!.{signed(claims()).split('.', 1)[1]}", id="unreadable-header"),
]


@pytest.mark.parametrize("token", NOT_OURS)
def test_what_is_not_ours_is_left_to_others(tokens: AccountTokens, token: str) -> None:
    assert tokens.identify(token) is None


def encoded(part: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")


def unsigned(content: dict[str, Any]) -> str:
    return f"{encoded({'alg': 'none'})}.{encoded(content)}."


def by_public_key(content: dict[str, Any]) -> str:
    """Sign with the public key, as if it were a shared secret."""
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    secret = KEY.public_key().public_bytes(serialization.Encoding.PEM, form)
    text = f"{encoded({'alg': 'HS256'})}.{encoded(content)}"
    digest = hmac.digest(secret, text.encode(), "sha256")
    return f"{text}.{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"


def changed(token: str) -> str:
    head, _, signature = token.split(".")
    return f"{head}.{encoded(claims(sub='system:serviceaccount:kube-system:admin'))}.{signature}"


CRYPTO = "go-jose/go-jose: error in cryptographic primitive"
BAD = [
    pytest.param(signed(claims(), FOREIGN), CRYPTO, id="foreign-key"),
    pytest.param(unsigned(claims()), CRYPTO, id="unsigned"),
    pytest.param(by_public_key(claims()), CRYPTO, id="signed-with-the-public-key"),
    pytest.param(changed(signed(claims())), CRYPTO, id="changed-after-signing"),
    pytest.param(signed(claims(), kid="unknown"), "invalid signature, no keys found", id="unknown-key"),
    pytest.param(signed(claims(exp=SECONDS - 61)), "service account token has expired", id="expired"),
    pytest.param(signed(claims(nbf=SECONDS + 61)), "service account token is not valid yet", id="not-yet-valid"),
    pytest.param(
        signed(claims(iat=SECONDS + 61)), "service account token is issued in the future", id="from-the-future"
    ),
    pytest.param(
        signed(claims(aud=["vault"])),
        f'token audiences ["vault"] is invalid for the target audiences ["{ISSUER}"]',
        id="another-audience",
    ),
    pytest.param(
        signed(claims(**{"kubernetes.io": {"namespace": "n", "serviceaccount": {"name": "ghost", "uid": "u"}}})),
        'serviceaccounts "ghost" not found',
        id="no-such-account",
    ),
    pytest.param(
        signed(claims(**{"kubernetes.io": {"namespace": "n", "serviceaccount": {"name": "app", "uid": "old"}}})),
        "service account UID (uid-app) does not match claim (old)",
        id="account-made-anew",
    ),
    pytest.param(signed(claims(**{"kubernetes.io": {}})), 'serviceaccounts "" not found', id="no-account"),
]


@pytest.mark.parametrize(("token", "message"), BAD)
def test_what_is_no_good_is_refused(tokens: AccountTokens, token: str, message: str) -> None:
    with pytest.raises(RefusedTokenError) as refusal:
        tokens.identify(token)
    assert str(refusal.value) == message


def test_a_minute_is_forgiven(tokens: AccountTokens) -> None:
    for content in (claims(exp=SECONDS - 59), claims(nbf=SECONDS + 59), claims(iat=SECONDS + 59)):
        assert tokens.identify(signed(content)) is not None


def delete(objects: Objects) -> None:
    objects.metadata.clear()


def replace(kind: str, namespace: str, name: str) -> Callable[[Objects], None]:
    return lambda objects: objects.put(kind, namespace, name, uid="another")


def deleting(kind: str, namespace: str, name: str) -> Callable[[Objects], None]:
    moment = (NOW - timedelta(seconds=61)).isoformat().replace("+00:00", "Z")
    return lambda objects: objects.put(kind, namespace, name, deletionTimestamp=moment)


@pytest.mark.parametrize(
    ("happens", "message"),
    [
        pytest.param(delete, 'serviceaccounts "app" not found', id="all-gone"),
        pytest.param(deleting("serviceaccounts", "n", "app"), "service account n/app has been deleted", id="account"),
        pytest.param(
            replace("pods", "n", "p"),
            "pod UID (another) does not match service account pod ref claim (uid-p)",
            id="pod-anew",
        ),
        pytest.param(deleting("pods", "n", "p"), "service account token has been invalidated", id="pod-long-deleted"),
        pytest.param(
            lambda objects: objects.metadata.pop(("pods", "n", "p")),
            "service account token has been invalidated",
            id="pod-gone",
        ),
    ],
)
def test_a_token_ends_at_once_with_what_it_is_bound_to(
    tokens: AccountTokens, objects: Objects, happens: Callable[[Objects], None], message: str
) -> None:
    token = issued(tokens, Binding(namespace="n", serviceaccount=ACCOUNT, pod=Reference("p", "uid-p")))
    assert tokens.identify(token) is not None
    happens(objects)
    with pytest.raises(RefusedTokenError) as refusal:
        tokens.identify(token)
    assert str(refusal.value) == message


def test_a_token_that_was_good_expires(tokens: AccountTokens, clock: Clock) -> None:
    token = issued(tokens, seconds=600)
    assert tokens.identify(token) is not None
    clock.now += timedelta(seconds=661)
    with pytest.raises(RefusedTokenError, match="has expired"):
        tokens.identify(token)


def test_keys_are_exchanged_without_a_break(objects: Objects, clock: Clock) -> None:
    before = AccountTokens(objects, KEYS, clock=clock)
    after = AccountTokens(
        objects, signingkeys.make_keys(FOREIGN, [FOREIGN.public_key(), KEY.public_key()]), clock=clock
    )
    assert after.identify(issued(before)) is not None
    with pytest.raises(RefusedTokenError, match="no keys found"):
        before.identify(issued(after))


def test_audiences_are_those_that_both_sides_have(tokens: AccountTokens) -> None:
    token = tokens.issue(PLAIN, audiences=["a", "b"], seconds=600, token_id="i")
    found = tokens.identify(token, ["b", "c"])
    assert found is not None
    assert found.audiences == ("b",)


class TestOfSecrets:
    """Tokens that secrets hold."""

    def token(self, tokens: AccountTokens, objects: Objects) -> str:
        made = tokens.signer.issue_for_secret("n", ACCOUNT, secret="s")
        objects.put("secrets", "n", "s", content={"data": {"token": base64.b64encode(made.encode()).decode()}})
        return made

    def test_they_stand_for_the_account(self, tokens: AccountTokens, objects: Objects) -> None:
        found = tokens.identify(self.token(tokens, objects))
        assert found is not None
        assert (found.user.name, found.user.extra, found.audiences) == ("system:serviceaccount:n:app", {}, (ISSUER,))

    @pytest.mark.parametrize(
        ("happens", "message"),
        [
            pytest.param(
                lambda objects: objects.metadata.pop(("secrets", "n", "s")), "Token has been invalidated", id="gone"
            ),
            pytest.param(
                lambda objects: objects.put("secrets", "n", "s"),
                "Token does not match server's copy",
                id="other-content",
            ),
            pytest.param(
                replace("serviceaccounts", "n", "app"),
                "ServiceAccount UID (another) does not match claim (uid-app)",
                id="anew",
            ),
            pytest.param(
                lambda objects: objects.metadata["secrets", "n", "s"].update(
                    labels={"kubernetes.io/legacy-token-invalid-since": "2026-01-01"}
                ),
                "has been marked invalid",
                id="marked",
            ),
        ],
    )
    def test_they_end_with_the_secret(
        self, tokens: AccountTokens, objects: Objects, happens: Callable[[Objects], None], message: str
    ) -> None:
        token = self.token(tokens, objects)
        happens(objects)
        with pytest.raises(RefusedTokenError) as refusal:
            tokens.identify(token)
        assert message in str(refusal.value)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            pytest.param({"kubernetes.io/serviceaccount/namespace": ""}, "namespace claim is missing", id="namespace"),
            pytest.param({"sub": "system:serviceaccount:n:other"}, "sub claim is invalid", id="another-subject"),
        ],
    )
    def test_they_must_be_whole(self, tokens: AccountTokens, change: dict[str, str], message: str) -> None:
        whole = {
            "iss": "kubernetes/serviceaccount",
            "sub": "system:serviceaccount:n:app",
            **{
                f"kubernetes.io/serviceaccount/{key}": value
                for key, value in (
                    ("namespace", "n"),
                    ("secret.name", "s"),
                    ("service-account.name", "app"),
                    ("service-account.uid", "uid-app"),
                )
            },
        }
        with pytest.raises(RefusedTokenError, match=message):
            tokens.identify(signed({**whole, **change}))


def test_what_is_remembered_is_bounded(tokens: AccountTokens, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory.PROCESS, "_limit", 0)
    for number in range(5):
        assert tokens.identify(tokens.issue(PLAIN, audiences=[ISSUER], seconds=600, token_id=str(number))) is not None
    assert len(tokens._signed) == 0
