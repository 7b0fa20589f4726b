"""Limits that commands which serve the API have as options; docs/security.md lists all of them."""

from typing import Annotated, Final, TypeAlias

import msgspec
import typer

from drachma.cli import options
from drachma.listening import limits as ports
from drachma.process import hosting
from drachma.server.wire import app, bodies

_PORTS: Final = ports.Limits()
_REQUESTS: Final = app.Limits()

RequestTimeout: TypeAlias = Annotated[str, typer.Option(help="Time for a request, other than a watch or a stream.")]
MaxRequestsInflight: TypeAlias = Annotated[
    int, typer.Option(min=0, help="Requests served at once; priority levels share the sum of this and the next option.")
]
MaxMutatingRequestsInflight: TypeAlias = Annotated[
    int, typer.Option(min=0, help="Added to --max-requests-inflight; the sum is shared by reads and writes.")
]
MaxWatches: TypeAlias = Annotated[int, typer.Option(min=0, help="Watches open at once.")]
MaxWatchesPerUser: TypeAlias = Annotated[int, typer.Option(min=0, help="Watches of one user; not for system:masters.")]
MaxConnections: TypeAlias = Annotated[int, typer.Option(min=8, help="Connections to all ports of the process.")]
PeerConnectionsPercent: TypeAlias = Annotated[
    int, typer.Option(min=1, max=100, help="Share of the connections that one address may hold.")
]
LoopbackConnectionsPercent: TypeAlias = Annotated[
    int, typer.Option(min=1, max=100, help="Share of the connections that clients on this machine may hold together.")
]
BodyTimeout: TypeAlias = Annotated[str, typer.Option(help="Time for the whole body of a request.")]
UnreadTimeout: TypeAlias = Annotated[
    str, typer.Option(help="Time that a client may leave an answer or a watch unread before its connection ends.")
]

DEFAULT_REQUEST_TIMEOUT: Final = f"{_REQUESTS.request_seconds:g}s"
DEFAULT_REQUESTS: Final = 400
DEFAULT_MUTATING_REQUESTS: Final = 200
DEFAULT_WATCHES: Final = _REQUESTS.watches
DEFAULT_USER_WATCHES: Final = _REQUESTS.user_watches
DEFAULT_CONNECTIONS: Final = _PORTS.connections
DEFAULT_PEER_PERCENT: Final = _PORTS.peer_percent
DEFAULT_LOOPBACK_PERCENT: Final = _PORTS.loopback_percent
DEFAULT_BODY_TIMEOUT: Final = f"{_PORTS.body_seconds:g}s"
DEFAULT_UNREAD_TIMEOUT: Final = f"{_PORTS.unread_seconds:g}s"


class LimitOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on requests and connections, as options."""

    request_timeout: RequestTimeout = DEFAULT_REQUEST_TIMEOUT
    max_requests_inflight: MaxRequestsInflight = DEFAULT_REQUESTS
    max_mutating_requests_inflight: MaxMutatingRequestsInflight = DEFAULT_MUTATING_REQUESTS
    max_watches: MaxWatches = DEFAULT_WATCHES
    max_watches_per_user: MaxWatchesPerUser = DEFAULT_USER_WATCHES
    max_connections: MaxConnections = DEFAULT_CONNECTIONS
    peer_connections_percent: PeerConnectionsPercent = DEFAULT_PEER_PERCENT
    loopback_connections_percent: LoopbackConnectionsPercent = DEFAULT_LOOPBACK_PERCENT
    body_timeout: BodyTimeout = DEFAULT_BODY_TIMEOUT
    unread_timeout: UnreadTimeout = DEFAULT_UNREAD_TIMEOUT

    def build(self) -> hosting.Limits:
        """Return the limits. Raises errors.InvalidValueError for an option that makes no sense."""
        body_seconds = options.seconds(self.body_timeout, name="--body-timeout")
        unread_seconds = options.seconds(self.unread_timeout, name="--unread-timeout")
        return hosting.Limits(
            requests=app.Limits(
                request_seconds=options.seconds(self.request_timeout, name="--request-timeout"),
                seats=self.max_requests_inflight + self.max_mutating_requests_inflight,
                bodies=bodies.BodyLimits(seconds=body_seconds),
                watches=self.max_watches,
                user_watches=self.max_watches_per_user,
                unread_seconds=unread_seconds,
            ),
            ports=ports.Limits(
                connections=self.max_connections,
                peer_percent=self.peer_connections_percent,
                loopback_percent=self.loopback_connections_percent,
                body_seconds=body_seconds,
                unread_seconds=unread_seconds,
            ),
        )
