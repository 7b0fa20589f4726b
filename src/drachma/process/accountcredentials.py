"""What a process has to give to pods: the API server's authority, and tokens of service accounts for secrets."""

import pathlib

from drachma import errors
from drachma.client import access
from drachma.runtime import Credentials
from drachma.runtime.surroundings import Mint
from drachma.server.access import accounttokens, signingkeys
from drachma.server.access.accounts import Reference


def load(
    reached: access.Access, *, authority_file: pathlib.Path | None = None, key_file: pathlib.Path | None = None
) -> Credentials:
    """Those of controllers on their own: an authority as given, or the one by which they know the API server.

    Raises:
        errors.RefusedFileError: a file cannot be read.
    """
    try:
        authority = authority_file.read_bytes() if authority_file is not None else reached.certificate_authority or b""
        text = authority.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise errors.RefusedFileError(f"authority {authority_file}: cannot be read: {error}") from error
    if key_file is None:
        return Credentials(text)
    return Credentials(text, mint(accounttokens.Signer(signingkeys.of(signingkeys.load_private(key_file)))))


def mint(signer: accounttokens.Signer) -> Mint:
    """Makes tokens that are signed by one who is trusted."""

    def make(namespace: str, name: str, *, uid: str, secret: str) -> str:
        return signer.issue_for_secret(namespace, Reference(name, uid), secret=secret)

    return make
