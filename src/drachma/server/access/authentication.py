"""Authentication by client certificate, by bearer token, or as the anonymous user.

Every HTTP request is authenticated, in upstream's order: a certificate counts before a token, and invalid credentials
are refused even if none are needed. TokenReviews use it, too.
"""

import datetime as dt
import hashlib
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from drachma.server import status
from drachma.server.access import accounts, accounttokens, bootstraptokens, certificates
from drachma.server.user import User

AUTHENTICATED: Final = accounts.AUTHENTICATED
UNAUTHENTICATED: Final = "system:unauthenticated"
ADMIN: Final = User(name="kubernetes-admin", groups=("system:masters", AUTHENTICATED))
NODES: Final = "system:nodes"
NODE_PREFIX: Final = "system:node:"
"""Prefix of the user names of nodes; without the colon, the group of nodes."""

ANONYMOUS: Final = User(name="system:anonymous", groups=(UNAUTHENTICATED,))

OPEN_PATHS: Final = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})
"""Paths that need no credentials when every authenticated user may do everything."""

EXTENSION: Final = "drachma.peercert"
CERTIFICATE: Final = "certificate"
"""Key of the ASGI scope under which the listener puts the client's certificate."""

INVALID_TOKEN: Final = "invalid bearer token"

_REMEMBERED: Final = 4096
"""Authorization headers that are cached with their user from the token file."""

_REMEMBERED_LENGTH: Final = 1024
"""Characters of a cached header. Spaces around a token can make a header much longer."""

_UID: Final = "1.3.6.1.4.1.57683.2"
"""Attribute of a certificate's subject with the uid of the user."""


class ClientCertificate(NamedTuple):
    """Certificate of a client: its user and its expiry, which can come while it is in use."""

    user: User
    expires: dt.datetime


UNVERIFIED: Final = ClientCertificate(User(name=""), dt.datetime.min.replace(tzinfo=dt.UTC))
"""Certificate that cannot be verified: it counts like one that has expired."""


class Credentials(NamedTuple):
    """Authorization header and certificate of a client."""

    authorization: bytes | None = None
    certificate: ClientCertificate | None = None


class Review(NamedTuple):
    """Result of a token review: identity and audiences, or the problem with the token."""

    identity: accounttokens.Identity | None
    problem: str = ""


class Authenticator:
    """Authenticates by the token file, by service account tokens, and by bootstrap tokens if enabled.

    Tokens of the file are kept as digests, so that a lookup reveals nothing about them by its time. ``anonymous_paths``
    need no credentials; None means all paths, for servers whose authorisers decide.
    """

    def __init__(
        self,
        tokens: Mapping[str, User],
        issuer: accounttokens.AccountTokens,
        *,
        clock: Callable[[], dt.datetime],
        anonymous_paths: frozenset[str] | None = OPEN_PATHS,
        bootstrap: bootstraptokens.BootstrapTokens | None = None,
    ) -> None:
        self._users = {_digest(token): add_authenticated_group(user) for token, user in tokens.items()}
        self._good: dict[bytes, User] = {}
        self._issuer = issuer
        self._clock = clock
        self._anonymous_paths = anonymous_paths
        self._bootstrap = bootstrap

    def authenticate(self, credentials: Credentials, path: str) -> User:
        """Return the user of a request.

        A connection outlives its handshake, so the end of a certificate is checked for every request. A token counts in
        place of a certificate that has expired.

        Raises:
            status.StatusError: the credentials are bad, or there are none where they are required (401).
        """
        certificate = credentials.certificate
        if certificate is not None:
            if certificate.user.name == certificates.KUBELET_CLIENT:
                # The server's own certificate for nodes: a node has directed the server back to itself.
                raise status.unauthorized()
            if self._clock() < certificate.expires:
                return certificate.user
        authorization = credentials.authorization
        if authorization is not None:
            if authorization in self._good:
                return self._good[authorization]
            token = bearer_token(authorization)
            if token:
                return self._look_up(authorization, token)
        if certificate is not None:
            raise status.unauthorized()
        if self._anonymous_paths is not None and path not in self._anonymous_paths:
            raise status.unauthorized()
        return ANONYMOUS

    def _look_up(self, authorization: bytes, token: str) -> User:
        user = self._users.get(_digest(token))
        if user is not None:
            # Tokens of the file do not expire. The lookup uses a keyed hash, which reveals nothing about the header.
            if len(self._good) < _REMEMBERED and len(authorization) <= _REMEMBERED_LENGTH:
                self._good[authorization] = user
            return user
        identity = self.review(token).identity
        if identity is None:
            raise status.unauthorized()
        return identity.user

    def review(self, token: str, audiences: Sequence[str] = ()) -> Review:
        """Return the review of a token for some audiences, or for this server."""
        requested = tuple(audiences) or self._issuer.audiences
        user = self._users.get(_digest(token)) or self._bootstrap_user(token)
        if user is not None:
            # Tokens without audiences are for this server.
            agreed = tuple(each for each in self._issuer.audiences if each in requested)
            return Review(accounttokens.Identity(user, agreed)) if agreed else Review(None, INVALID_TOKEN)
        try:
            identity = self._issuer.identify(token, requested)
        except accounts.RefusedTokenError as error:
            return Review(None, f"[{INVALID_TOKEN}, {error}]")
        if identity is None:
            return Review(None, INVALID_TOKEN)
        return Review(identity)

    def _bootstrap_user(self, token: str) -> User | None:
        user = self._bootstrap.identify(token) if self._bootstrap is not None else None
        return add_authenticated_group(user) if user is not None else None


def bearer_token(authorization: bytes) -> str:
    """Return the token of an Authorization header; empty without a header, or for another scheme."""
    scheme, _, value = authorization.decode("latin-1").strip().partition(" ")
    return value.split(" ", 1)[0] if scheme.lower() == "bearer" else ""


def read_certificate(certificate: Mapping[str, Any], encoded: bytes) -> ClientCertificate | None:
    """Return the user and expiry of a verified certificate in the form of Python's ssl; None without a common name."""
    user = certificate_user(certificate, encoded)
    if user is None:
        return None
    seconds = ssl.cert_time_to_seconds(certificate["notAfter"])
    return ClientCertificate(user, dt.datetime.fromtimestamp(seconds, dt.UTC))


def certificate_user(certificate: Mapping[str, Any], encoded: bytes) -> User | None:
    """Return the user of a certificate: its common name, with organizations as groups; None without a name."""
    subject: Sequence[Sequence[tuple[str, str]]] = certificate.get("subject", ())
    parts = [pair for group in subject for pair in group]
    names = [value for field, value in parts if field == "commonName"]
    if not names or not names[-1]:
        return None
    uids = [value for field, value in parts if field == _UID]
    digest = hashlib.sha256(encoded).hexdigest()
    return add_authenticated_group(
        User(
            # As in Go, the last of several common names counts.
            name=names[-1],
            groups=tuple(value for field, value in parts if field == "organizationName"),
            uid=uids[0] if len(uids) == 1 else "",
            extra={f"{accounts.EXTRA}credential-id": (f"X509SHA256={digest}",)},
        )
    )


def component(name: str) -> User:
    """Return the user of a component in the server's own process, which needs no credentials."""
    account = name.removeprefix(accounts.PREFIX)
    if name == ADMIN.name:
        return ADMIN
    if account == name:
        groups = (NODES,) if name.startswith(NODE_PREFIX) else ()
        return add_authenticated_group(User(name=name, groups=groups))
    namespace, _, name = account.partition(":")
    return add_authenticated_group(accounts.account_user(namespace, accounts.Reference(name), {}))


def add_authenticated_group(user: User) -> User:
    """Return a user as a member of the group of authenticated users."""
    if AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return msgspec.structs.replace(user, groups=(*user.groups, AUTHENTICATED))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
