"""All that says who clients are and what they may do, for one application."""

from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec

from drachma.server.access import accounts, accounttokens, authentication, authorization, signingkeys
from drachma.server.user import User


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Who is who, who may do what, and the tokens of service accounts."""

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
    """Access for whoever shows a token, to everything unless an authoriser is given, with a key that nobody keeps."""
    issuer = accounttokens.AccountTokens(store, signingkeys.of(signingkeys.generate()), clock=clock)
    return Access(
        authenticator=authentication.Authenticator(tokens or {}, issuer, clock=clock),
        authoriser=authoriser or authorization.AlwaysAllow(),
        issuer=issuer,
    )
