"""Who makes a call: by bearer token, by client certificate, or nobody.

The HTTP door asks it for every request. Everything that is not about health or the version must come from somebody.
What users may do is not decided here: there is one kind of user for now, who may do everything.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from drachma.server import status
from drachma.server.user import User

ADMIN: Final = User(name="kubernetes-admin", groups=("system:masters", "system:authenticated"))
ANONYMOUS: Final = User(name="system:anonymous", groups=("system:unauthenticated",))

OPEN_PATHS: Final = ("/healthz", "/livez", "/readyz", "/version")
"""What anybody may ask, as upstream's default rules allow."""

EXTENSION: Final = "drachma.peercert"
"""Where the listener puts the client's verified certificate in the ASGI scope."""


_SCHEME: Final = b"Bearer "
"""How all clients spell it, though its case and the space behind it are free."""


class Credentials(NamedTuple):
    """What a client shows: an Authorization header, or the subject of a certificate that the listener has verified."""

    authorization: bytes | None = None
    certificate: Mapping[str, Any] | None = None


class Authenticator:
    """Knows tokens by their digest only, so that looking one up takes no time that tells anything about it.

    A header that was good once is found by its hash from then on, which is keyed and tells as little.
    """

    def __init__(self, tokens: Mapping[str, User]) -> None:
        self._users = {_digest(token): user for token, user in tokens.items()}
        self._good: dict[bytes, User] = {}

    def authenticate(self, credentials: Credentials, path: str) -> User:
        """The user of a request; a 401 where there is none and there must be one."""
        if credentials.authorization is not None:
            return self._good.get(credentials.authorization) or self._look_up(credentials.authorization)
        if credentials.certificate:
            return user_of(credentials.certificate)
        if not path.startswith(OPEN_PATHS):
            raise status.unauthorized()
        return ANONYMOUS

    def _look_up(self, authorization: bytes) -> User:
        scheme, _, token = authorization.partition(b" ")
        user = self._users.get(_digest(token.strip().decode("latin-1"))) if scheme.lower() == b"bearer" else None
        if user is None:
            raise status.unauthorized()
        if authorization.removeprefix(_SCHEME) == token:
            self._good[authorization] = user
        return user


def user_of(certificate: Mapping[str, Any]) -> User:
    """The user that a certificate stands for: its common name, with its organizations as groups."""
    subject: Sequence[Sequence[tuple[str, str]]] = certificate.get("subject", ())
    parts = [pair for group in subject for pair in group]
    names = [value for field, value in parts if field == "commonName"]
    if not names:
        raise status.unauthorized()
    groups = tuple(value for field, value in parts if field == "organizationName")
    return User(name=names[0], groups=(*groups, "system:authenticated"))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
