"""Bodies of requests, read within limits of time, rate, and bytes per user and in all.

A request takes a seat only after its body has arrived, so a client that sends slowly delays no others. It can hold only
a connection and the bytes sent so far; both are limited. Exempt requests have no limit in bytes.
"""

from collections.abc import Callable
from typing import Final

from drachma.server import deadlines, status
from drachma.server.wire.limits import BodyLimits
from drachma.server.wire.requests import Request

_RETRY_SECONDS: Final = 1


class Bodies:
    """Bodies that are being read, or belong to requests under way."""

    def __init__(self, limits: BodyLimits, *, clock: Callable[[], float]) -> None:
        self._limits: Final = limits
        self._clock: Final = clock
        self._deadlines: Final = deadlines.Deadlines(limits.seconds)
        self._by_user: Final[dict[str, int]] = {}
        self.total = 0
        """Bytes held now."""

    def open(self, request: Request) -> "RequestBody":
        """Return the body of a request, which the caller releases."""
        return RequestBody(self, request)

    async def _read(self, request: Request, body: "RequestBody") -> bytes:
        began, limits = self._clock(), self._limits
        user = request.user.name
        is_exempt = request.flow is not None and request.flow.is_exempt

        def take(size: int) -> None:
            body.size += size
            self.total += size
            used = self._by_user[user] = self._by_user.get(user, 0) + size
            if not is_exempt and (used > limits.user_bytes or self.total > limits.total_bytes):
                raise status.too_many_requests(
                    "the bodies of requests under way take too much memory, please try again later",
                    retry_after=_RETRY_SECONDS,
                )
            seconds = self._clock() - began
            if seconds > limits.grace_seconds and body.size < seconds * limits.bytes_per_second:
                raise status.timeout(
                    f"the body of the request came at less than {limits.bytes_per_second} bytes per second"
                )

        try:
            with self._deadlines.start():
                return await request.body(take)
        except TimeoutError:
            raise status.timeout(f"the body of the request was not complete after {limits.seconds:g} s") from None

    def _release(self, user: str, size: int) -> None:
        self.total -= size
        remaining_bytes = self._by_user[user] - size
        if remaining_bytes:
            self._by_user[user] = remaining_bytes
        else:
            del self._by_user[user]


class RequestBody:
    """The body of one request."""

    __slots__ = ("_bodies", "_request", "size")

    def __init__(self, bodies: Bodies, request: Request) -> None:
        self._bodies: Final = bodies
        self._request: Final = request
        self.size = 0

    async def read(self) -> bytes:
        """Return the body.

        Raises:
            status.StatusError: it is too large, comes too slowly, or there are too many.
        """
        return await self._bodies._read(self._request, self)

    def release(self) -> None:
        """Forget the body."""
        if self.size:
            self._bodies._release(self._request.user.name, self.size)
            self.size = 0
