"""Authentication: certificates before tokens, invalid credentials refused everywhere, and anonymous requests."""

from datetime import UTC, datetime, timedelta

import pytest

from drachma.server import status
from drachma.server.access import accounttokens, authentication, certificates, signingkeys
from drachma.server.access.authentication import ANONYMOUS, Authenticator, ClientCertificate, Credentials
from drachma.server.user import User
from drachma.store import memory

ANN = User(name="ann", groups=("dev", "system:authenticated"))
NOW = datetime(2026, 1, 1, tzinfo=UTC)
BOB = User(name="cert", groups=("system:authenticated",))
CERT = ClientCertificate(BOB, NOW + timedelta(seconds=1))
EXPIRED = ClientCertificate(BOB, NOW)
KUBELET_CLIENT = ClientCertificate(User(name=certificates.KUBELET_CLIENT), NOW + timedelta(days=1))


def authenticator(*, anonymous_paths: frozenset[str] | None = authentication.OPEN_PATHS) -> Authenticator:
    keys = signingkeys.make_keys(signingkeys.generate())
    issuer = accounttokens.AccountTokens(memory.MemoryStore(), keys, clock=lambda: NOW)
    users = {"good": User(name="ann", groups=("dev",))}
    return Authenticator(users, issuer, clock=lambda: NOW, anonymous_paths=anonymous_paths)


@pytest.mark.parametrize(
    ("credentials", "want"),
    [
        pytest.param(Credentials(b"Bearer good"), ANN, id="token"),
        pytest.param(Credentials(b"  bearer good more words"), ANN, id="scheme-in-any-case"),
        pytest.param(Credentials(None, CERT), BOB, id="certificate"),
        pytest.param(Credentials(b"Bearer bad", CERT), BOB, id="certificate-before-token"),
        pytest.param(Credentials(None, EXPIRED), None, id="certificate-that-has-expired"),
        pytest.param(Credentials(None, authentication.UNVERIFIED), None, id="certificate-that-is-not-verified"),
        pytest.param(Credentials(b"Bearer good", authentication.UNVERIFIED), ANN, id="token-after-a-bad-certificate"),
        pytest.param(Credentials(b"Bearer good", EXPIRED), ANN, id="token-after-a-certificate-has-expired"),
        pytest.param(Credentials(b"Basic good", EXPIRED), None, id="no-token-after-a-certificate-has-expired"),
        pytest.param(Credentials(None, KUBELET_CLIENT), None, id="the-servers-own-certificate-for-nodes"),
        pytest.param(Credentials(b"Bearer good", KUBELET_CLIENT), None, id="and-with-a-token"),
        pytest.param(Credentials(), ANONYMOUS, id="nobody"),
        pytest.param(Credentials(b"Bearer  good"), ANONYMOUS, id="two-spaces"),
        pytest.param(Credentials(b"Bearer"), ANONYMOUS, id="no-token"),
        pytest.param(Credentials(b"Basic good"), ANONYMOUS, id="another-scheme"),
        pytest.param(Credentials(b"Bearer bad"), None, id="bad-token"),
        pytest.param(Credentials(b"Bearer \xff\x00"), None, id="bad-bytes"),
        pytest.param(Credentials(b"Bearer good,bad"), None, id="not-quite"),
    ],
)
def test_who_shows_what_is_who(credentials: Credentials, want: User | None) -> None:
    anywhere = authenticator(anonymous_paths=None)
    for path in ("/healthz", "/api/v1/pods"):
        if want is None:
            with pytest.raises(status.StatusError) as refusal:
                anywhere.authenticate(credentials, path)
            assert refusal.value.code == 401
        else:
            assert anywhere.authenticate(credentials, path) == want


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version", "/version/"])
def test_anybody_may_ask_for_health_and_version(path: str) -> None:
    assert authenticator().authenticate(Credentials(), path) == ANONYMOUS


@pytest.mark.parametrize("path", ["/livez/ping", "/api", "/apis", "/metrics", "/openapi/v2", "/", "/healthzz"])
def test_and_for_nothing_else(path: str) -> None:
    with pytest.raises(status.StatusError) as refusal:
        authenticator().authenticate(Credentials(), path)
    assert refusal.value.code == 401


@pytest.mark.parametrize(
    ("subject", "want"),
    [
        pytest.param(
            [("organizationName", "dev"), ("organizationName", "qa"), ("commonName", "ann")],
            ("ann", ("dev", "qa", "system:authenticated"), ""),
            id="name-and-groups",
        ),
        pytest.param(
            [("commonName", "ann"), ("1.3.6.1.4.1.57683.2", "u-1")], ("ann", ("system:authenticated",), "u-1"), id="uid"
        ),
        pytest.param([("commonName", "a"), ("commonName", "b")], ("b", ("system:authenticated",), ""), id="two-names"),
        pytest.param([("organizationName", "system:masters")], None, id="no-name"),
    ],
)
def test_a_certificate_is_a_user(subject: list[tuple[str, str]], want: tuple[str, tuple[str, ...], str] | None) -> None:
    user = authentication.certificate_user({"subject": tuple((pair,) for pair in subject)}, b"encoded")
    assert (user and (user.name, user.groups, user.uid)) == want
    if user is not None:
        (credential,) = user.extra["authentication.kubernetes.io/credential-id"]
        assert credential.startswith("X509SHA256=")


def test_tokens_of_the_file_are_for_this_server_only() -> None:
    known = authenticator()
    assert known.review("good", [accounttokens.ISSUER, "vault"]).identity == (ANN, (accounttokens.ISSUER,))
    assert known.review("good", ["vault"]) == (None, "invalid bearer token")
