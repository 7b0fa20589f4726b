"""Bootstrap tokens, whose secrets in ``kube-system`` name their groups.

The tokens are upstream's: ``id.secret``. A client learns only that a token is not valid, and not why.
"""

import hmac
from collections.abc import Callable
from datetime import datetime
from typing import Final

from drachma.api import bootstraptoken
from drachma.server.access import accounts
from drachma.server.user import User
from drachma.store import record

_AUTHENTICATES: Final = "usage-bootstrap-authentication"


class BootstrapTokens:
    """Verifies tokens against the secrets of a store."""

    def __init__(self, store: accounts.Store, *, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._clock = clock

    def identify(self, token: str) -> User | None:
        """Return the user of a token; None if it is not valid."""
        parts = bootstraptoken.parse(token)
        if parts is None:
            return None
        name, secret = parts
        existing = self._store.get(
            record.Key("secrets", bootstraptoken.NAMESPACE, f"{bootstraptoken.NAME_PREFIX}{name}")
        )
        if existing is None or "deletionTimestamp" in existing.value["metadata"]:
            return None
        data = existing.value.get("data") or {}
        expected_secret = bootstraptoken.value(data, "token-secret")
        # Compare first and in constant time, whatever else is wrong.
        is_same = hmac.compare_digest(expected_secret.encode(), secret.encode())
        seconds_left = bootstraptoken.seconds_left(data, self._clock())
        groups = bootstraptoken.groups(data)
        if (
            not is_same
            or existing.value.get("type") != bootstraptoken.TYPE
            or bootstraptoken.value(data, "token-id") != name
            or (seconds_left is not None and seconds_left <= 0)
            or bootstraptoken.value(data, _AUTHENTICATES) != "true"
            or groups is None
        ):
            return None
        return User(name=f"{bootstraptoken.USER_PREFIX}{name}", groups=groups)
