"""HTTP requests: parsed once from the ASGI scope, with limited bodies and negotiated answers."""

import functools
import urllib.parse
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final, Protocol, TypeAlias

from drachma.listening.exchange import EXCHANGE, Exchange
from drachma.server import mediatypes, status
from drachma.server.access import authentication, impersonation
from drachma.server.calls import options
from drachma.server.calls.call import BODY_LIMIT, Origin
from drachma.server.flowcontrol import control
from drachma.server.presentation import negotiation
from drachma.server.user import User
from drachma.store import record
from drachma.values import weborigin

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Meter: TypeAlias = Callable[[int], None]
"""Receives the number of bytes that arrived; raises a Status for too many or too few."""

QUERY_LIMIT: Final = 1000
"""Parameters of a query; upstream has no limit."""

_FOR_PEOPLE: Final = (b"curl", b"Wget", b"Mozilla")
"""Prefixes of user agents that show answers to people."""

_UNAUTHENTICATED: Final = User(name="")
"""User of a request before it is authenticated."""

_FORWARDS: Final = 16
"""Forwarding addresses of a request that are read."""

_IDENTIFIER: Final = 64
"""Characters of the audit id that a client may set."""

_AGENT_START: Final = 16
_LONGEST_ACCEPT: Final = 4096
"""Bytes of an Accept header; upstream has no limit."""

_NO_QUERY: Final[options.Query] = {}
_COMMON_QUERY: Final = 256
"""Bytes of a query that is cached; longer ones contain tokens and selectors."""


def _count_nothing(_size: int) -> None:
    """Accept any number of bytes, because another limit applies."""


class Connection(Protocol):
    """The connection of a request, as far as an application may control it."""

    def give_up(self) -> None:
        """Close the connection at once."""

    def allow_pauses(self) -> None:
        """Let the client leave a stream unread for longer than an answer."""


class _NoConnection:
    """Connection of a request that did not come over one."""

    def give_up(self) -> None:
        """Do nothing."""

    def allow_pauses(self) -> None:
        """Do nothing."""


CONNECTION: Final = "connection"
"""Key under which the listener puts the connection, in the state of the ASGI scope."""
_NO_CONNECTION: Final = _NoConnection()


class Request:
    """One request. ``warnings`` become Warning headers of the answer.

    ``asker`` is the authenticated user, and ``acts_as`` the impersonated one. ``flow`` is the flow control class.
    ``extension`` is the APIService of a request that an extension API server answers.
    ``held_bytes`` are those of its body that count against limits.
    ``is_audited`` says that the audit log has the request, or that the dispatcher writes it there.
    """

    __slots__ = (
        "_accept",
        "_exchange",
        "_query",
        "_receive",
        "acts_as",
        "asker",
        "extension",
        "flow",
        "headers",
        "held_bytes",
        "is_audited",
        "method",
        "path",
        "scope",
        "warnings",
    )

    def __init__(self, scope: Mapping[str, Any], receive: Receive) -> None:
        self.scope: Final = scope
        self.method: Final[str] = scope["method"]
        self.path: Final[str] = scope["path"]
        self.headers: Final[dict[bytes, bytes]] = dict(scope["headers"])
        self.warnings: Final[list[str]] = []
        self.asker = _UNAUTHENTICATED
        self.acts_as: impersonation.Impersonated | None = None
        self.flow: control.Flow | None = None
        self.extension: record.Record | None = None
        self.is_audited = False
        self.held_bytes = 0
        self._receive = receive
        self._exchange: Final[Exchange | None] = scope.get(EXCHANGE)
        self._query: options.Query | None = None
        self._accept: str | None = None

    @property
    def query(self) -> options.Query:
        """Query parameters."""
        if self._query is None:
            raw = self.scope["query_string"]
            if not raw:
                self._query = _NO_QUERY
            else:
                self._query = _remembered(raw) if len(raw) <= _COMMON_QUERY else _parse(raw)
        return self._query

    @property
    def credentials(self) -> authentication.Credentials:
        """Credentials of the client.

        Raises:
            status.StatusError: there are several Authorization headers, which proxies and servers may read differently
                (400).
        """
        if len(self.headers) < len(self.scope["headers"]):
            names = [name for name, _ in self.scope["headers"]]
            if names.count(b"authorization") > 1:
                raise status.bad_request("a request must not have more than one Authorization header")
        extension = (self.scope.get("extensions") or {}).get(authentication.EXTENSION)
        certificate = extension[authentication.CERTIFICATE] if extension else None
        return authentication.Credentials(self.headers.get(b"authorization"), certificate)

    @property
    def user(self) -> User:
        """Effective user of the request."""
        return self.asker if self.acts_as is None else self.acts_as.user

    @property
    def origin(self) -> Origin:
        """Details of the request for audit logs."""
        passed_on = [part.strip() for part in self.header(b"x-forwarded-for").split(",")[:_FORWARDS]]
        client = self.scope.get("client")
        query = self.scope["query_string"].decode("latin-1")
        raw = self.scope.get("raw_path")
        path = raw.decode("latin-1") if raw else urllib.parse.quote(self.path)
        return Origin(
            uri=f"{path}?{query}" if query else path,
            sources=tuple(filter(None, (*passed_on, str(client[0]) if client else ""))),
            asker=self.asker if self.acts_as is not None else None,
            constraint=self.acts_as.constraint if self.acts_as is not None else "",
            identifier=self.header(b"audit-id")[:_IDENTIFIER],
        )

    @property
    def connection(self) -> Connection:
        """Connection of the request."""
        connection: Connection = (self.scope.get("state") or {}).get(CONNECTION, _NO_CONNECTION)
        return connection

    @property
    def has_impersonation(self) -> bool:
        """True if the request may have impersonation headers."""
        # Join the names, because hardly any request has such a header, and every request is checked.
        return impersonation.PREFIX in b"\n".join(self.headers)

    @property
    def output(self) -> negotiation.Output:
        """Negotiated form of the answer; a 406 for a form that is not served."""
        accept, agent, pretty = self._preferences()
        if not accept and not agent and not pretty:
            return negotiation.PLAIN
        return negotiation.output(accept, agent, pretty=pretty)

    @property
    def refusal_output(self) -> negotiation.Output:
        """Form of a Status that refuses the request."""
        try:
            accept, agent, pretty = self._preferences()
        except status.StatusError:
            # The query or the Accept header itself is refused.
            return negotiation.PLAIN
        return negotiation.refusal_output(accept, agent, pretty=pretty)

    def _preferences(self) -> tuple[str, str, str]:
        query = self.query
        agent = self.headers.get(b"user-agent", b"")
        pretty = query["pretty"][0][:_LONGEST_ACCEPT] if "pretty" in query else ""
        # The cache of negotiated forms must not grow with every client's version string.
        agent_name = agent[:_AGENT_START].decode("latin-1") if agent.startswith(_FOR_PEOPLE) else ""
        return self.accept, agent_name, pretty

    @property
    def accept(self) -> str:
        """The Accept header; a 406 for one that is far longer than any client's, because forms are cached by it."""
        if self._accept is None:
            value: bytes = self.headers.get(b"accept", b"")
            if len(value) > _LONGEST_ACCEPT:
                raise status.not_acceptable(mediatypes.BODY_TYPES)
            self._accept = value.decode("latin-1")
        return self._accept

    def header(self, name: bytes) -> str:
        """Return the value of a header, or an empty string."""
        value = self.headers.get(name)
        return value.decode("latin-1") if value else ""

    def take_body(self) -> bytes | None:
        """Return the whole body if it has arrived already, else None; a 413 if it is too large."""
        body = self._exchange.take_body() if self._exchange is not None else None
        if body is not None and len(body) > BODY_LIMIT:
            raise status.too_large(f"limit is {BODY_LIMIT}")
        return body

    def respond(self, code: int, headers: tuple[tuple[bytes, bytes], ...], body: bytes) -> bool:
        """Send a whole response at once; return False if that is not possible now, and nothing is sent."""
        return self._exchange is not None and self._exchange.respond(code, headers, body)

    async def body(self, meter: Meter = _count_nothing) -> bytes:
        """Return the whole body; a 413 if it is too large. ``meter`` sees every part, and may refuse it."""
        declared = self.headers.get(b"content-length")
        if declared is not None and declared.isdigit() and int(declared[:20]) > BODY_LIMIT:
            raise status.too_large(f"limit is {BODY_LIMIT}")
        parts: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise DisconnectedError
            part: bytes = message.get("body", b"")
            size += len(part)
            if size > BODY_LIMIT:
                raise status.too_large(f"limit is {BODY_LIMIT}")
            meter(len(part))
            parts.append(part)
            if not message.get("more_body"):
                return parts[0] if len(parts) == 1 else b"".join(parts)

    def require_same_origin(self) -> None:
        """Refuse a stream that a browser opens for a page of another server (403)."""
        origin = self.header(b"origin")
        if origin and not weborigin.is_same(origin, self.header(b"host")):
            raise status.failure(403, "Forbidden", f"origin {origin!r} may not open streams of this server")

    async def disconnected(self) -> None:
        """Return once the client has disconnected."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


def _parse(query: bytes) -> options.Query:
    try:
        return urllib.parse.parse_qs(query.decode("latin-1"), keep_blank_values=True, max_num_fields=QUERY_LIMIT)
    except ValueError:
        raise status.bad_request(f"the query has more than {QUERY_LIMIT} parameters") from None


_remembered = functools.lru_cache(maxsize=1024)(_parse)


class DisconnectedError(Exception):
    """The client disconnected before its request was complete."""
