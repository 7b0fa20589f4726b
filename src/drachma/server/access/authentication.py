"""Who makes a call: by client certificate, by bearer token, or nobody in particular.

The HTTP door asks it for every request, in upstream's order: a certificate counts before a token, and bad credentials
are refused even where none are needed. TokenReviews ask it about tokens of others.
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
"""The group of nodes, and how their names as users begin."""

ANONYMOUS: Final = User(name="system:anonymous", groups=(UNAUTHENTICATED,))

OPEN_PATHS: Final = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})
"""What anybody may ask where everybody else may do everything."""

EXTENSION: Final = "drachma.peercert"
CERTIFICATE: Final = "certificate"
"""Keys of the ASGI scope under which the listener puts the client's verified certificate."""

INVALID_TOKEN: Final = "invalid bearer token"

_REMEMBERED: Final = 4096
"""Headers that are remembered with the user of the file that they stand for."""

_REMEMBERED_LENGTH: Final = 1024
"""Characters of such a header; spaces around a token can make one as long as the head of a request."""

_UID: Final = "1.3.6.1.4.1.57683.2"
"""The attribute of a certificate's subject that has the uid of its user."""


class ClientCertificate(NamedTuple):
    """Certificate that the listener has verified: its user, and when it ends, which may be while it is in use."""

    user: User
    expires: dt.datetime


class Credentials(NamedTuple):
    """What a client shows: an Authorization header, or a certificate."""

    authorization: bytes | None = None
    certificate: ClientCertificate | None = None


class Review(NamedTuple):
    """What becomes of a token: who it stands for and for which audiences, or what is wrong with it."""

    identity: accounttokens.Identity | None
    problem: str = ""


class Authenticator:
    """Knows users by tokens of a file, service accounts by theirs, and newcomers by bootstrap tokens, where they count.

    Tokens of the file are kept by their digest only, so that looking one up takes no time that tells anything about it.
    ``anonymous_paths`` are those where nobody needs to be anybody; None is all of them, for where authorisers decide.
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
        self._users = {_digest(token): with_group(user) for token, user in tokens.items()}
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
                # The server's own certificate for nodes: a node has led the server to itself.
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
            # Tokens of the file stay good. A header is found by its hash, which is keyed and tells as little.
            if len(self._good) < _REMEMBERED and len(authorization) <= _REMEMBERED_LENGTH:
                self._good[authorization] = user
            return user
        identity = self.review(token).identity
        if identity is None:
            raise status.unauthorized()
        return identity.user

    def review(self, token: str, audiences: Sequence[str] = ()) -> Review:
        """What becomes of a token that is meant for some audiences, or for this server."""
        requested = tuple(audiences) or self._issuer.audiences
        user = self._users.get(_digest(token)) or self._newcomer(token)
        if user is not None:
            # These tokens say nothing of audiences: they are for this server.
            agreed = tuple(each for each in self._issuer.audiences if each in requested)
            return Review(accounttokens.Identity(user, agreed)) if agreed else Review(None, INVALID_TOKEN)
        try:
            identity = self._issuer.identify(token, requested)
        except accounts.RefusedTokenError as error:
            return Review(None, f"[{INVALID_TOKEN}, {error}]")
        if identity is None:
            return Review(None, INVALID_TOKEN)
        return Review(identity)

    def _newcomer(self, token: str) -> User | None:
        user = self._bootstrap.identify(token) if self._bootstrap is not None else None
        return with_group(user) if user is not None else None


def bearer_token(authorization: bytes) -> str:
    """The token in an Authorization header; empty where there is none, as in one of another scheme."""
    scheme, _, rest = authorization.decode("latin-1").strip().partition(" ")
    return rest.split(" ", 1)[0] if scheme.lower() == "bearer" else ""


def read_certificate(certificate: Mapping[str, Any], encoded: bytes) -> ClientCertificate | None:
    """Return what a verified certificate, as Python's ssl describes it, stands for; None without a common name."""
    user = certificate_user(certificate, encoded)
    if user is None:
        return None
    seconds = ssl.cert_time_to_seconds(certificate["notAfter"])
    return ClientCertificate(user, dt.datetime.fromtimestamp(seconds, dt.UTC))


def certificate_user(certificate: Mapping[str, Any], encoded: bytes) -> User | None:
    """The user that a certificate stands for: its common name, its organizations as groups; None without a name."""
    subject: Sequence[Sequence[tuple[str, str]]] = certificate.get("subject", ())
    parts = [pair for group in subject for pair in group]
    names = [value for field, value in parts if field == "commonName"]
    if not names or not names[-1]:
        return None
    uids = [value for field, value in parts if field == _UID]
    digest = hashlib.sha256(encoded).hexdigest()
    return with_group(
        User(
            # As Go: of several common names the last counts.
            name=names[-1],
            groups=tuple(value for field, value in parts if field == "organizationName"),
            uid=uids[0] if len(uids) == 1 else "",
            extra={f"{accounts.EXTRA}credential-id": (f"X509SHA256={digest}",)},
        )
    )


def component(name: str) -> User:
    """A component in the server's own process, which need not show anything."""
    account = name.removeprefix(accounts.PREFIX)
    if name == ADMIN.name:
        return ADMIN
    if account == name:
        groups = (NODES,) if name.startswith(NODE_PREFIX) else ()
        return with_group(User(name=name, groups=groups))
    namespace, _, name = account.partition(":")
    return with_group(accounts.account_user(namespace, accounts.Reference(name), {}))


def with_group(user: User) -> User:
    """A user who has shown who that is; all of them are in one group."""
    if AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return msgspec.structs.replace(user, groups=(*user.groups, AUTHENTICATED))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
