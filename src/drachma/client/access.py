"""Access to an API server: its address, and the credentials of the user. Kubeconfig files and service accounts are read
into it.

Everything is read and checked already, except for values that change while a process runs: token files and credential
plugins.
"""

import os
import pathlib
import ssl
import tempfile
from collections.abc import Mapping
from typing import Final

import msgspec

from drachma import errors


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """A program that prints credentials (an ExecCredential of ``client.authentication.k8s.io``)."""

    command: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    api_version: str
    install_hint: str = ""
    wants_cluster: bool = False


class Impersonation(msgspec.Struct, frozen=True, kw_only=True):
    """Another user to act as, if the server allows it."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}


class KeyPair(msgspec.Struct, frozen=True):
    """A client certificate and its key, both PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        """Omit the key, which must not appear in logs and tracebacks."""
        return f"KeyPair({len(self.certificate)} bytes)"


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """One server and one user. ``source`` names the origin of the access in messages."""

    server: str
    source: str
    namespace: str = "default"
    certificate_authority: bytes | None = None
    skips_verification: bool = False
    tls_server_name: str = ""
    proxy: str = ""
    key_pair: KeyPair | None = None
    token: str = ""
    token_file: pathlib.Path | None = None
    username: str = ""
    password: str = ""
    plugin: Plugin | None = None
    impersonation: Impersonation | None = None

    def __repr__(self) -> str:
        """Omit credentials, which must not appear in logs and tracebacks."""
        return f"Access({self.server!r}, {self.source!r})"


# Service accounts


MOUNT: Final = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")


def is_in_cluster(environment: Mapping[str, str]) -> bool:
    """Return True if the process runs in a pod that knows its API server."""
    return bool(environment.get("KUBERNETES_SERVICE_HOST") and environment.get("KUBERNETES_SERVICE_PORT"))


def load_service_account(*, environment: Mapping[str, str], mount: pathlib.Path = MOUNT) -> Access:
    """Return the access of the service account that Kubernetes mounts into the pod.

    The token is named as a file, because it is renewed while the process runs. Raises AccessError if the process is not
    in a pod.
    """
    if not is_in_cluster(environment):
        raise errors.AccessError(
            "not inside a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set"
        )
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment["KUBERNETES_SERVICE_PORT"]
    address = f"[{host}]" if ":" in host else host
    token = mount / "token"
    _read(token)
    namespace = mount / "namespace"
    return Access(
        server=f"https://{address}:{port}",
        source=f"service account {mount}",
        namespace=_read(namespace).decode().strip() if namespace.exists() else "default",
        certificate_authority=_read(mount / "ca.crt"),
        token_file=token,
    )


def _read(path: pathlib.Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise errors.AccessError(f"service account {path}: cannot be read: {error.strerror}") from None


# TLS


def tls_context(access: Access, key_pair: KeyPair | None) -> ssl.SSLContext:
    """Return the TLS settings for connections. Raises AccessError that names the certificate that cannot be used."""
    try:
        context = ssl.create_default_context(cadata=_authorities(access))
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise errors.AccessError(f"{access.source}: certificate authority: cannot be used: {error}") from None
    if access.skips_verification:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if key_pair is not None:
        _show(context, key_pair, source=access.source)
    return context


def _authorities(access: Access) -> str | None:
    return access.certificate_authority.decode("ascii") if access.certificate_authority else None


def _show(context: ssl.SSLContext, key_pair: KeyPair, *, source: str) -> None:
    """Load a client certificate and its key. OpenSSL reads them from a file only, which is private to this user and
    removed.
    """
    descriptor, path = tempfile.mkstemp(prefix="drachma-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(key_pair.certificate + b"\n" + key_pair.key)
        context.load_cert_chain(path, password=_no_password)
    except (ssl.SSLError, OSError) as error:
        raise errors.AccessError(f"{source}: client certificate: cannot be used: {error}") from None
    finally:
        os.unlink(path)  # noqa: PTH108


def _no_password() -> str:
    """Refuse to decrypt a key: OpenSSL would otherwise ask for the password on the terminal."""
    return ""
