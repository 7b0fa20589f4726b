"""How to reach an API server and who to be there. Kubeconfig files and service accounts are read into it.

Everything is already read and checked but what changes while a process runs: token files and credential plugins.
"""

import pathlib
from collections.abc import Mapping

import msgspec


class Plugin(msgspec.Struct, frozen=True, kw_only=True):
    """A program that prints credentials (an ExecCredential of ``client.authentication.k8s.io``)."""

    command: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    api_version: str
    install_hint: str = ""
    wants_cluster: bool = False


class Impersonation(msgspec.Struct, frozen=True, kw_only=True):
    """Another user to act as, where the server allows it."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}


class KeyPair(msgspec.Struct, frozen=True):
    """A client certificate and its key, both PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        """Without the key, which has no place in logs and tracebacks."""
        return f"KeyPair({len(self.certificate)} bytes)"


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """One server and one user. ``source`` is how messages name where this comes from."""

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
        """Without credentials, which have no place in logs and tracebacks."""
        return f"Access({self.server!r}, {self.source!r})"
