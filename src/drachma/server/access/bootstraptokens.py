"""Who comes in by a bootstrap token: a secret of ``kube-system`` says that it is good, and for which groups.

The tokens are upstream's: ``id.secret``. Whatever is wrong with one, nobody is told more than that it is not good.
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
    """Looks tokens up among the secrets of a store."""

    def __init__(self, store: accounts.Store, *, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._clock = clock

    def identify(self, token: str) -> User | None:
        """The user that a token stands for; None where it stands for nobody."""
        parts = bootstraptoken.parse(token)
        if parts is None:
            return None
        name, secret = parts
        stored = self._store.get(record.Key("secrets", bootstraptoken.NAMESPACE, f"{bootstraptoken.NAME_PREFIX}{name}"))
        if stored is None or "deletionTimestamp" in stored.value["metadata"]:
            return None
        data = stored.value.get("data") or {}
        held = bootstraptoken.value(data, "token-secret")
        # Compared whatever else is wrong, in the same time for every token.
        is_same = hmac.compare_digest(held.encode(), secret.encode())
        left = bootstraptoken.seconds_left(data, self._clock())
        groups = bootstraptoken.groups(data)
        if (
            not is_same
            or stored.value.get("type") != bootstraptoken.TYPE
            or bootstraptoken.value(data, "token-id") != name
            or (left is not None and left <= 0)
            or bootstraptoken.value(data, _AUTHENTICATES) != "true"
            or groups is None
        ):
            return None
        return User(name=f"{bootstraptoken.USER_PREFIX}{name}", groups=groups)
