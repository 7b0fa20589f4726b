"""Who asks an extension of the API server, and may they: as upstream's extensions find out.

The ConfigMap ``kube-system/extension-apiserver-authentication`` says whose certificates count. One of the API server
itself, which passes requests on, comes with headers that name the user; one of anybody else names its user by itself.
Tokens are reviewed by the API server, and so is what users may do. Who shows nothing is anonymous.
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
"""How often to look whose certificates count."""
_KEPT_SECONDS: Final = 10.0
"""How long answers of the API server count."""

_ANONYMOUS: Final = User("system:anonymous", ("system:unauthenticated",))
_MASTERS: Final = "system:masters"
_OPEN_PATHS: Final = frozenset({"/healthz", "/livez", "/readyz"})


class Shown(NamedTuple):
    """A certificate that the listener has verified: as Python's ssl describes it, and as it came."""

    described: Mapping[str, Any]
    encoded: bytes

    @classmethod
    def of(cls, request: web.Request) -> Shown | None:
        """That of a request's connection."""
        connection = request.transport.get_extra_info("ssl_object") if request.transport is not None else None
        described = connection.getpeercert() if connection is not None else None
        if connection is None or not described:
            return None
        return cls(described, connection.getpeercert(binary_form=True))


class Trust(msgspec.Struct, frozen=True, kw_only=True):
    """What the ConfigMap says; without one, no certificate counts."""

    clients: tuple[x509.Certificate, ...] = ()
    """Authorities of users."""
    proxies: tuple[x509.Certificate, ...] = ()
    """Authorities of API servers that pass requests on."""
    proxy_names: tuple[str, ...] = ()
    """The names that their certificates may have; any, if there are none."""
    user_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ()
    uid_headers: tuple[str, ...] = ()
    extra_prefixes: tuple[str, ...] = ()

    @classmethod
    def of(cls, data: Mapping[str, str]) -> Trust:
        """InvalidValueError for lists that are none, and for certificates that cannot be read."""

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
    """Knows whose certificates count, and has the API server asked about everything else."""

    def __init__(self, surroundings: Surroundings, listener: ssl.SSLContext) -> None:
        """``listener`` is told which certificates to verify; clients need not show one."""
        self._client: Final[Client] = surroundings.client
        self._clock: Final = surroundings.clock
        self._reviews: Final = accessreviews.AccessReviews(
            surroundings.clock, seconds=_KEPT_SECONDS, refusal_seconds=_KEPT_SECONDS
        )
        self._listener: Final = listener
        self._trust = Trust()
        self._has_looked: Final = asyncio.Event()

    async def follow(self) -> None:
        """Looks now and then whose certificates count, until cancelled."""
        await controller.every(_SECONDS, self._look, time=self._clock, name="certificates of clients")

    async def wait_ready(self) -> None:
        """Returns once it has looked, whatever came of it."""
        await self._has_looked.wait()

    async def _look(self) -> None:
        try:
            await self._read()
        finally:
            self._has_looked.set()

    async def _read(self) -> None:
        """Whose certificates count; without a ConfigMap or leave to read it, none do any more."""
        namespace, name = _PLACE
        try:
            found = await self._client.get(configmap.ConfigMap, name, namespace=namespace)
            trust = Trust.of(found.data)
        except (errors.ObjectNotFoundError, errors.ForbiddenError) as error:
            trust = Trust()
            _log.warning("only tokens say who asks: %s", error)
        authorities = {*trust.clients, *trust.proxies}
        if authorities.difference(self._trust.clients, self._trust.proxies):
            encoded = b"".join(each.public_bytes(serialization.Encoding.DER) for each in authorities)
            self._listener.load_verify_locations(cadata=encoded)
            self._listener.verify_mode = ssl.CERT_OPTIONAL
        self._trust = trust

    async def user_of(self, request: web.Request) -> User | None:
        """Return the user of a request; None for bad credentials, such as a certificate that has expired by now."""
        shown = Shown.of(request)
        if shown is not None:
            certificate = x509.load_der_x509_certificate(shown.encoded)
            if certificate.not_valid_after_utc <= self._clock.utc():
                return None
            user = accessreviews.of_certificate(shown.described)
            if user is not None and _is_of(certificate, self._trust.proxies) and self._is_proxy(user):
                return self._passed_on(request)
            if user is not None and _is_of(certificate, self._trust.clients):
                return user
            return None
        tokens = request.headers.getall("Authorization", [])
        if len(tokens) > 1:
            return None
        return await self._reviews.user_of(self._client, tokens[0]) if tokens and tokens[0] else _ANONYMOUS

    async def may(self, user: User, action: Action) -> bool:
        """Whether a user may do something; who may do everything need not be asked about."""
        if action.path in _OPEN_PATHS or _MASTERS in user.groups:
            return True
        return await self._reviews.may(self._client, user, action)

    def _is_proxy(self, user: User) -> bool:
        return not self._trust.proxy_names or user.name in self._trust.proxy_names

    def _passed_on(self, request: web.Request) -> User | None:
        """The user whom the headers of a request name; nobody is named anonymous."""
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


def _is_of(certificate: x509.Certificate, authorities: Iterable[x509.Certificate]) -> bool:
    """Whether one of these authorities has signed a certificate, by itself.

    The listener has verified it by one of all authorities, but does not tell which.
    """
    for authority in authorities:
        try:
            certificate.verify_directly_issued_by(authority)
        except (ValueError, TypeError, exceptions.InvalidSignature):
            continue
        return True
    return False
