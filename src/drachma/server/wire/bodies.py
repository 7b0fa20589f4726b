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

    async def read(self, request: Request) -> bytes:
        """Return the body of a request, which counts as held until it is released; ``request.held_bytes`` has its size.

        Raises:
            status.StatusError: it is too large, comes too slowly, or there are too many.
        """
        body = request.take_body()
        if body is None:
            return await self._receive(request)
        if body:
            self._hold(request, len(body))
        return body

    async def _receive(self, request: Request) -> bytes:
        """Return a body that has not arrived yet."""
        began, limits = self._clock(), self._limits

        def take(size: int) -> None:
            self._hold(request, size)
            seconds = self._clock() - began
            if seconds > limits.grace_seconds and request.held_bytes < seconds * limits.bytes_per_second:
                raise status.timeout(
                    f"the body of the request came at less than {limits.bytes_per_second} bytes per second"
                )

        try:
            with self._deadlines.start():
                return await request.body(take)
        except TimeoutError:
            raise status.timeout(f"the body of the request was not complete after {limits.seconds:g} s") from None

    def _hold(self, request: Request, size: int) -> None:
        user, limits = request.user.name, self._limits
        request.held_bytes += size
        self.total += size
        used = self._by_user[user] = self._by_user.get(user, 0) + size
        if used > limits.user_bytes or self.total > limits.total_bytes:
            if request.flow is not None and request.flow.is_exempt:
                return
            raise status.too_many_requests(
                "the bodies of requests under way take too much memory, please try again later",
                retry_after=_RETRY_SECONDS,
            )

    def release(self, request: Request) -> None:
        """Forget the body of a request."""
        size, request.held_bytes = request.held_bytes, 0
        self.total -= size
        user = request.user.name
        remaining_bytes = self._by_user[user] - size
        if remaining_bytes:
            self._by_user[user] = remaining_bytes
        else:
            del self._by_user[user]
