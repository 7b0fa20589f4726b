"""Identities: from a token, a kubeconfig or the header of a proxy to an access as that user.

A kubeconfig that a browser sends must carry its credentials itself. Credential plugins would run programs of the
dashboard's machine, and file names would read its files, so both are refused.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from starlette.datastructures import Headers

from drachma import errors
from drachma.api import manifest
from drachma.client import Client, access, target
from drachma.web.settings import ProxyTrust, Settings

MOST_BYTES: Final = 256 * 1024
"""Limit for the size of a token or kubeconfig."""

_REVIEWS: Final = target.metadata_of(
    "authentication.k8s.io", "v1", plural="selfsubjectreviews", kind="SelfSubjectReview", namespaced=False
)


class User(msgspec.Struct, frozen=True):
    """The user as the API server names it."""

    name: str
    groups: tuple[str, ...] = ()


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """Credentials of a user, and a digest that is equal for equal credentials."""

    access: access.Access
    digest: str
    namespace: str = ""
    """Namespace of the kubeconfig's context, for users who may not list namespaces."""


def own(settings: Settings) -> Identity:
    """Return the identity of the dashboard's own account, for browsers that have the start key."""
    return Identity(access=settings.access, digest="own", namespace=settings.access.namespace)


def token_identity(settings: Settings, token: str) -> Identity:
    """Return the identity of a bearer token. Raises errors.AccessError for a text that cannot be a token."""
    token = token.strip()
    if not token or len(token) > MOST_BYTES or not token.isascii() or any(char.isspace() for char in token):
        raise errors.AccessError("token: expected one line of ASCII characters without spaces")
    return Identity(access=_anonymous(settings, token=token), digest=_digest("token", token))


def kubeconfig_identity(settings: Settings, text: str) -> Identity:
    """Return the identity of the current user in a kubeconfig, on the dashboard's own API server.

    Raises:
        errors.AccessError: the text is no kubeconfig, or its credentials are outside of it.
    """
    if len(text) > MOST_BYTES:
        raise errors.AccessError(f"kubeconfig: is larger than {MOST_BYTES} bytes")
    try:
        documents = manifest.read(text.encode())
    except errors.DecodeError as error:
        raise errors.AccessError(f"kubeconfig: {error}") from None
    content = documents[0].content if len(documents) == 1 else None
    if not isinstance(content, dict):
        raise errors.AccessError("kubeconfig: expected one object with clusters, users and contexts")
    context = _entry(content, "contexts", content.get("current-context"), field="context")
    user = _entry(content, "users", context.get("user"), field="user")
    for outside in ("exec", "auth-provider", "tokenFile", "client-certificate", "client-key"):
        if user.get(outside):
            raise errors.AccessError(
                f"kubeconfig: user {context.get('user')!r}: {outside}: is outside of the file; "
                "use a token, or a kubeconfig with token or client-certificate-data"
            )
    namespace = context.get("namespace")
    token, certificate, key = (user.get(name) for name in ("token", "client-certificate-data", "client-key-data"))
    if isinstance(token, str) and token:
        identity = token_identity(settings, token)
    elif isinstance(certificate, str) and isinstance(key, str):
        pair = access.KeyPair(_decode("client-certificate-data", certificate), _decode("client-key-data", key))
        identity = Identity(
            access=_anonymous(settings, key_pair=pair), digest=_digest("certificate", f"{certificate}\0{key}")
        )
    else:
        raise errors.AccessError(f"kubeconfig: user {context.get('user')!r}: has neither a token nor a certificate")
    return msgspec.structs.replace(identity, namespace=namespace if isinstance(namespace, str) else "")


def proxy_identity(settings: Settings, trust: ProxyTrust, headers: Headers) -> Identity | None:
    """Return the identity that a trusted proxy names in its headers, or None if it names none.

    Raises:
        errors.AccessError: a header is there twice, as when a proxy adds its own to that of the client.
    """
    name = _single(headers, trust.user_header)
    if not name:
        return None
    groups = _single(headers, trust.groups_header) if trust.groups_header else ""
    names = tuple(filter(None, (each.strip() for each in groups.split(","))))
    impersonation = access.Impersonation(user=name, groups=names)
    return Identity(
        access=msgspec.structs.replace(settings.access, impersonation=impersonation),
        digest=_digest("proxy", "\0".join((name, *names))),
    )


def _single(headers: Headers, name: str) -> str:
    values = headers.getlist(name)
    if len(values) > 1:
        raise errors.AccessError(f"header {name}: is there {len(values)} times; the proxy must replace it")
    return values[0].strip() if values else ""


async def user_of(client: Client) -> User:
    """Return the user that the API server takes a client for.

    Raises:
        errors.UnauthorizedError: the server does not know the credentials.
    """
    answer = await client.create_document(
        _REVIEWS, {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    )
    info: Mapping[str, Any] = (answer.get("status") or {}).get("userInfo") or {}
    return User(str(info.get("username", "")), tuple(map(str, info.get("groups") or ())))


def _anonymous(settings: Settings, *, token: str = "", key_pair: access.KeyPair | None = None) -> access.Access:
    """Return the access to the API server without the dashboard's own credentials, and with those of a user."""
    return access.Access(
        server=settings.access.server,
        source="sign-in",
        certificate_authority=settings.access.certificate_authority,
        skips_verification=settings.access.skips_verification,
        tls_server_name=settings.access.tls_server_name,
        proxy=settings.access.proxy,
        token=token,
        key_pair=key_pair,
    )


def _entry(content: Mapping[str, Any], section: str, name: Any, *, field: str) -> Mapping[str, Any]:
    entries = content.get(section)
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get(field), dict):
            content_of_entry: Mapping[str, Any] = entry[field]
            return content_of_entry
    raise errors.AccessError(f"kubeconfig: {section}: there is no {field} {str(name)[:100]!r}")


def _decode(field: str, text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except binascii.Error as error:
        raise errors.AccessError(f"kubeconfig: {field}: is not base64: {error}") from None


def _digest(kind: str, secret: str) -> str:
    return hashlib.sha256(f"{kind}\0{secret}".encode()).hexdigest()
