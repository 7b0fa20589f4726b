"""Authentication and authorization of an extension API server, as upstream's extensions do it.

The ConfigMap ``kube-system/extension-apiserver-authentication`` names the trusted authorities. A certificate of the API
server, which proxies requests, comes with headers that name the user; any other certificate names its own user. The API
server reviews tokens and permissions. A request without credentials is anonymous.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import ssl
import urllib.parse
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from aiohttp import web
from cryptography import exceptions, x509
from cryptography.hazmat.primitives import serialization

from drachma import errors
from drachma.api import configmap
from drachma.client import Client
from drachma.runtime import Surroundings, accessreviews, controller
from drachma.runtime.accessreviews import Action, User

_T = TypeVar("_T")

_log = logging.getLogger(__name__)

_PLACE: Final = ("kube-system", "extension-apiserver-authentication")
_SECONDS: Final = 60.0
"""Time between two reads of the trusted authorities."""
_KEPT_SECONDS: Final = 10.0
"""Time for which answers of the API server are cached."""

_ANONYMOUS: Final = User("system:anonymous", ("system:unauthenticated",))
_MASTERS: Final = "system:masters"
_OPEN_PATHS: Final = frozenset({"/healthz", "/livez", "/readyz"})


class ClientCertificate(NamedTuple):
    """A certificate that the listener has verified: as Python's ssl describes it, and in DER."""

    described: Mapping[str, Any]
    encoded: bytes

    @classmethod
    def of(cls, request: web.Request) -> ClientCertificate | None:
        """Return the certificate of a request's connection."""
        connection = request.transport.get_extra_info("ssl_object") if request.transport is not None else None
        described = connection.getpeercert() if connection is not None else None
        if connection is None or not described:
            return None
        return cls(described, connection.getpeercert(binary_form=True))


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """Trusted authorities in the ConfigMap; without one, no certificate is trusted."""

    clients: tuple[x509.Certificate, ...] = ()
    """Authorities of users."""
    proxies: tuple[x509.Certificate, ...] = ()
    """Authorities of API servers that proxy requests."""
    proxy_names: tuple[str, ...] = ()
    """Names that their certificates may have; any name if empty."""
    user_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ()
    uid_headers: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: Mapping[str, str]) -> Trust:
        """Return the trust that a ConfigMap configures. Raises errors.InvalidValueError."""

        def read(key: str, parse: Callable[[bytes], Iterable[_T]]) -> tuple[_T, ...]:
            text = data.get(key, "").strip()
            try:
                return tuple(parse(text.encode())) if text else ()
            except ValueError as error:
                raise errors.InvalidValueError(f"ConfigMap {'/'.join(_PLACE)}: {key}: {error}") from None

        names = functools.partial(read, parse=msgspec.json.Decoder(list[str]).decode)
        return cls(
            clients=read("client-ca-file", x509.load_pem_x509_certificates),
            proxies=read("requestheader-client-ca-file", x509.load_pem_x509_certificates),
            proxy_names=names("requestheader-allowed-names"),
            user_headers=names("requestheader-username-headers"),
            group_headers=names("requestheader-group-headers"),
            uid_headers=names("requestheader-uid-headers"),
            extra_prefixes=names("requestheader-extra-headers-prefix"),
        )


class ExtensionAccess:
    """Access of an extension: trusted certificates, and reviews by the API server for everything else."""

    def __init__(self, surroundings: Surroundings, listener: ssl.SSLContext) -> None:
        """``listener`` gets the authorities to verify; clients need no certificate."""
        self._client: Final[Client] = surroundings.client
        self._clock: Final = surroundings.clock
        self._reviews: Final = accessreviews.AccessReviews(
            surroundings.clock, seconds=_KEPT_SECONDS, refusal_seconds=_KEPT_SECONDS
        )
        self._listener: Final = listener
        self._trust = Trust()
        self._has_read: Final = asyncio.Event()

    async def follow(self) -> None:
        """Read the trusted authorities again and again, until cancelled."""
        await controller.every(_SECONDS, self._refresh, clock=self._clock, name="certificates of clients")

    async def wait_ready(self) -> None:
        """Wait until the first read has ended, successfully or not."""
        await self._has_read.wait()

    async def _refresh(self) -> None:
        try:
            await self._read()
        finally:
            self._has_read.set()

    async def _read(self) -> None:
        """Read the trusted authorities; without the ConfigMap, or permission to read it, there are none."""
        namespace, name = _PLACE
        try:
            stored_map = await self._client.get(configmap.ConfigMap, name, namespace=namespace)
            trust = Trust.of(stored_map.data)
        except (errors.ObjectNotFoundError, errors.ForbiddenError) as error:
            trust = Trust()
            _log.warning("clients are authenticated by tokens only: %s", error)
        authorities = {*trust.clients, *trust.proxies}
        if authorities.difference(self._trust.clients, self._trust.proxies):
            encoded = b"".join(each.public_bytes(serialization.Encoding.DER) for each in authorities)
            self._listener.load_verify_locations(cadata=encoded)
            self._listener.verify_mode = ssl.CERT_OPTIONAL
        self._trust = trust

    async def user_of(self, request: web.Request) -> User | None:
        """Return the user of a request; None for bad credentials, such as a certificate that has expired by now."""
        presented = ClientCertificate.of(request)
        if presented is not None:
            certificate = x509.load_der_x509_certificate(presented.encoded)
            if certificate.not_valid_after_utc <= self._clock.utc():
                return None
            user = accessreviews.user_of_certificate(presented.described)
            if user is not None and _is_signed_by(certificate, self._trust.proxies) and self._is_proxy(user):
                return self._proxied_user(request)
            if user is not None and _is_signed_by(certificate, self._trust.clients):
                return user
            return None
        tokens = request.headers.getall("Authorization", [])
        if len(tokens) > 1:
            return None
        return await self._reviews.user_of(self._client, tokens[0]) if tokens and tokens[0] else _ANONYMOUS

    async def may(self, user: User, action: Action) -> bool:
        """Return True if a user may do something. The API server is not asked about cluster admins."""
        if action.path in _OPEN_PATHS or _MASTERS in user.groups:
            return True
        return await self._reviews.may(self._client, user, action)

    def _is_proxy(self, user: User) -> bool:
        return not self._trust.proxy_names or user.name in self._trust.proxy_names

    def _proxied_user(self, request: web.Request) -> User | None:
        """Return the user that the headers of a request name; None if they name no user."""
        trust = self._trust
        name = next(iter(_values(request, trust.user_headers)), "")
        if not name:
            return None
        extra: dict[str, list[str]] = {}
        for key, value in request.headers.items():
            prefix = next((each for each in trust.extra_prefixes if key.lower().startswith(each.lower())), "")
            if prefix:
                extra.setdefault(urllib.parse.unquote(key[len(prefix) :].lower()), []).append(value)
        groups = tuple(_values(request, trust.group_headers))
        if not {accessreviews.AUTHENTICATED, *_ANONYMOUS.groups}.intersection(groups):
            groups = (*groups, accessreviews.AUTHENTICATED)
        uid = next(iter(_values(request, trust.uid_headers)), "")
        return User(name, groups, uid, tuple((key, tuple(values)) for key, values in sorted(extra.items())))


def _values(request: web.Request, headers: Sequence[str]) -> list[str]:
    return [value for each in headers for value in request.headers.getall(each, ())]


def _is_signed_by(certificate: x509.Certificate, authorities: Iterable[x509.Certificate]) -> bool:
    """Return True if one of these authorities has signed a certificate directly.

    The listener has verified the certificate, but does not tell by which authority.
    """
    for authority in authorities:
        try:
            certificate.verify_directly_issued_by(authority)
        except (ValueError, TypeError, exceptions.InvalidSignature):
            continue
        return True
    return False
