"""Limits on open watches, per user and in all."""

from typing import Final

from drachma.server import status

_RETRY_SECONDS: Final = 5


class OpenWatches:
    """Counts watches over connections; watches of components in the server's process do not count."""

    def __init__(self, *, limit: int, user_limit: int) -> None:
        self._limit: Final = limit
        self._user_limit: Final = user_limit
        self._by_user: Final[dict[str, int]] = {}
        self.total = 0

    def open(self, user: str, *, is_exempt: bool) -> None:
        """Count a watch, which is closed later.

        Raises:
            status.StatusError: the user has too many watches, unless the user is exempt, or the server has.
        """
        count = self._by_user.get(user, 0)
        if count >= self._user_limit and not is_exempt:
            raise status.too_many_requests(
                f"user {user!r} has {count} watches open, the limit is {self._user_limit}", retry_after=_RETRY_SECONDS
            )
        if self.total >= self._limit:
            raise status.too_many_requests(
                f"the server has {self.total} watches open, the limit is {self._limit}", retry_after=_RETRY_SECONDS
            )
        self._by_user[user] = count + 1
        self.total += 1

    def close(self, user: str) -> None:
        """Stop counting a watch."""
        self.total -= 1
        count = self._by_user[user] - 1
        if count:
            self._by_user[user] = count
        else:
            del self._by_user[user]
