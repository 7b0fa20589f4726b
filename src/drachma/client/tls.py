"""TLS towards an API server: whom to trust, and which certificate to show."""

import os
import ssl
import tempfile

from drachma import errors
from drachma.client import access


def context(reached: access.Access, key_pair: access.KeyPair | None) -> ssl.SSLContext:
    """The settings for connections; an AccessError says which certificate cannot be used."""
    try:
        made = ssl.create_default_context(cadata=_authorities(reached))
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise errors.AccessError(f"{reached.source}: certificate authority: cannot be used: {error}") from None
    if reached.skips_verification:
        made.check_hostname = False
        made.verify_mode = ssl.CERT_NONE
    if key_pair is not None:
        _show(made, key_pair, source=reached.source)
    return made


def _authorities(reached: access.Access) -> str | None:
    return reached.certificate_authority.decode("ascii") if reached.certificate_authority else None


def _show(made: ssl.SSLContext, key_pair: access.KeyPair, *, source: str) -> None:
    """Loads a certificate and its key. OpenSSL reads them from a file only, which is nobody else's and is removed."""
    descriptor, path = tempfile.mkstemp(prefix="drachma-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(key_pair.certificate + b"\n" + key_pair.key)
        made.load_cert_chain(path, password=_no_password)
    except (ssl.SSLError, OSError) as error:
        raise errors.AccessError(f"{source}: client certificate: cannot be used: {error}") from None
    finally:
        os.unlink(path)  # noqa: PTH108


def _no_password() -> str:
    """OpenSSL would otherwise ask on the terminal for an encrypted key's password."""
    return ""
