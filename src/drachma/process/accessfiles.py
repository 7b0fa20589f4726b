"""Who gets access to a server: its options, and what they name of files, made into one value.

Keys and the admin's token are made in the data directory where nothing else is named, and kept.
"""

import datetime as dt
import pathlib
import ssl
from collections.abc import Callable
from typing import Final

import msgspec

from drachma import errors
from drachma.server.access import accounttokens, authentication, bootstraptokens, signingkeys, tokenfile
from drachma.server.access.access import Access
from drachma.server.authorisers import modes
from drachma.server.reads.reader import Reader
from drachma.server.user import User


class AccessOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What can be chosen, under upstream's names; what is empty is made or left out."""

    token_auth_file: pathlib.Path | None = None
    client_ca_file: pathlib.Path | None = None
    service_account_key_files: tuple[pathlib.Path, ...] = ()
    service_account_signing_key_file: pathlib.Path | None = None
    service_account_issuers: tuple[str, ...] = ()
    api_audiences: tuple[str, ...] = ()
    is_open_to_bootstrap_tokens: bool = False
    authorization_modes: tuple[str, ...] = (modes.NODE, modes.ROLE_BASED)


DEFAULTS: Final = AccessOptions()


def authorization_modes(text: str) -> tuple[str, ...]:
    """``--authorization-mode``: names with commas between them; InvalidValueError for what is none."""
    chosen = tuple(name.strip() for name in text.split(","))
    modes.check(chosen)
    return chosen


def load(
    options: AccessOptions,
    folder: pathlib.Path,
    *,
    store: Reader,
    utc: Callable[[], dt.datetime],
    admin_token: str,
) -> Access:
    """Access as the options say, with a token for the admin.

    Raises:
        errors.RefusedFileError: a file cannot be read, or is not what it should be.
    """
    if options.client_ca_file is not None:
        _check_authorities(options.client_ca_file)
    issuer = accounttokens.AccountTokens(
        store,
        _keys(options, folder),
        clock=utc,
        issuers=options.service_account_issuers or (accounttokens.ISSUER,),
        audiences=options.api_audiences,
    )
    users: dict[str, User] = {}
    if options.token_auth_file is not None:
        users |= tokenfile.read(options.token_auth_file)
    users[admin_token] = authentication.ADMIN
    # Where everybody may do everything, nobody is let in without credentials but for health and the version.
    is_open = modes.ALWAYS_ALLOW in options.authorization_modes
    anonymous_paths = authentication.OPEN_PATHS if is_open else None
    bootstrap = bootstraptokens.BootstrapTokens(store, clock=utc) if options.is_open_to_bootstrap_tokens else None
    return Access(
        authenticator=authentication.Authenticator(
            users, issuer, clock=utc, anonymous_paths=anonymous_paths, bootstrap=bootstrap
        ),
        authoriser=modes.make(store, options.authorization_modes),
        issuer=issuer,
    )


def _keys(options: AccessOptions, folder: pathlib.Path) -> signingkeys.Keys:
    trusted = [key for path in options.service_account_key_files for key in signingkeys.load_public(path)]
    if options.service_account_signing_key_file is not None:
        private = signingkeys.load_private(options.service_account_signing_key_file)
    else:
        private = signingkeys.ensure(folder / "pki" / "sa.key")
        if trusted:
            # Nobody chose the key that signs, so its tokens are trusted whichever others are.
            trusted.append(private.public_key())
    try:
        return signingkeys.of(private, trusted)
    except ValueError as error:
        raise errors.RefusedFileError(f"keys of service accounts: {error}") from error


def _check_authorities(path: pathlib.Path) -> None:
    """Refuses a file without certificates before anything is served."""
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_verify_locations(path)
    except OSError as error:
        raise errors.RefusedFileError(f"client authority {path}: cannot be read: {error.strerror or error}") from error
