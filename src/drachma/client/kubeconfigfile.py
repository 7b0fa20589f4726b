"""Structure of a kubeconfig file, read by :mod:`drachma.client.kubeconfig` only. Unknown fields are ignored."""

from collections.abc import Mapping
from typing import Any

import msgspec


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    pass


class Cluster(_Part, frozen=True, kw_only=True):
    """A server and its trust settings."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class ExecVariable(_Part, frozen=True, kw_only=True):
    """A variable for the environment of a plugin."""

    name: str = ""
    value: str = ""


class Exec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A credential plugin."""

    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[ExecVariable, ...] = ()
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class User(_Part, frozen=True, kw_only=True):
    """Credentials, and the user to act as."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    exec: Exec | None = None
    auth_provider: Any = None
    impersonate: str = msgspec.field(default="", name="as")
    impersonate_uid: str = msgspec.field(default="", name="as-uid")
    impersonate_groups: tuple[str, ...] = msgspec.field(default=(), name="as-groups")
    impersonate_extra: Mapping[str, tuple[str, ...]] = msgspec.field(default={}, name="as-user-extra")


class Context(_Part, frozen=True, kw_only=True):
    """A cluster, a user and a default namespace."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""


class NamedCluster(_Part, frozen=True, kw_only=True):
    name: str = ""
    cluster: Cluster = Cluster()


class NamedUser(_Part, frozen=True, kw_only=True):
    name: str = ""
    user: User = User()


class NamedContext(_Part, frozen=True, kw_only=True):
    name: str = ""
    context: Context = Context()


class Config(_Part, frozen=True, kw_only=True):
    """A whole file."""

    current_context: str = ""
    clusters: tuple[NamedCluster, ...] = ()
    users: tuple[NamedUser, ...] = ()
    contexts: tuple[NamedContext, ...] = ()
