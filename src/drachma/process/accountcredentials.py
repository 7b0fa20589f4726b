"""Credentials that controllers hand out: the API server's authority, tokens of service accounts, certificates."""

import pathlib

from drachma import errors
from drachma.client import access
from drachma.runtime import Credentials, KeyPair
from drachma.runtime.surroundings import Mint
from drachma.server.access import accounttokens, signingkeys
from drachma.server.access.accounts import Reference


def load(
    apiserver: access.Access,
    *,
    authority_file: pathlib.Path | None = None,
    key_file: pathlib.Path | None = None,
    signing: tuple[pathlib.Path, pathlib.Path] | None = None,
) -> Credentials:
    """Return the credentials of standalone controllers. The default authority is the one of the kubeconfig.

    ``signing`` are the files of the authority that signs certificates, and of its key.

    Raises:
        errors.RefusedFileError: a file cannot be read.
    """
    try:
        authority = (
            authority_file.read_bytes() if authority_file is not None else apiserver.certificate_authority or b""
        )
        text = authority.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise errors.RefusedFileError(f"authority {authority_file}: cannot be read: {error}") from error
    pair = _read_pair(*signing) if signing is not None else None
    if key_file is None:
        return Credentials(text, signing=pair)
    return Credentials(text, mint(make_signer(signingkeys.load_private(key_file))), pair)


def make_signer(key: signingkeys.PrivateKey) -> accounttokens.Signer:
    """Return the signer of tokens with a key."""
    return accounttokens.Signer(signingkeys.make_keys(key))


def _read_pair(certificate: pathlib.Path, key: pathlib.Path) -> KeyPair:
    try:
        return KeyPair(certificate.read_bytes(), key.read_bytes())
    except OSError as error:
        raise errors.RefusedFileError(
            f"signing authority {error.filename}: cannot be read: {error.strerror}"
        ) from error


def mint(signer: accounttokens.Signer) -> Mint:
    """Return a function that issues tokens for secrets."""

    def make(namespace: str, name: str, *, uid: str, secret: str) -> str:
        return signer.issue_for_secret(namespace, Reference(name, uid), secret=secret)

    return make
