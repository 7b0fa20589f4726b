"""Access control of one application."""

from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec

from drachma.server.access import accounts, accounttokens, authentication, authorization, signingkeys
from drachma.server.user import User


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Authenticator, authoriser and issuer of service account tokens."""

    authenticator: authentication.Authenticator
    authoriser: authorization.Authoriser
    issuer: accounttokens.AccountTokens


def plain(
    store: accounts.Store,
    *,
    clock: Callable[[], datetime],
    tokens: Mapping[str, User] | None = None,
    authoriser: authorization.Authoriser | None = None,
) -> Access:
    """Return access by token. It allows everything without an authoriser, and signs with a key that is not kept."""
    issuer = accounttokens.AccountTokens(store, signingkeys.make_keys(signingkeys.generate()), clock=clock)
    return Access(
        authenticator=authentication.Authenticator(tokens or {}, issuer, clock=clock),
        authoriser=authoriser or authorization.AlwaysAllow(),
        issuer=issuer,
    )
