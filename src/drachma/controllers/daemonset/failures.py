"""Pods of daemon sets that failed: how long one stays before it is deleted and made anew, longer after each failure."""

from __future__ import annotations

import datetime as dt
from typing import Final, NamedTuple

_INITIAL: Final = dt.timedelta(seconds=1)
_LONGEST: Final = dt.timedelta(minutes=15)


class _Failure(NamedTuple):
    last: dt.datetime
    pause: dt.timedelta


class Failures:
    """The failures on each node of each version of a daemon set."""

    def __init__(self) -> None:
        self._failures: Final[dict[tuple[str, int, str], _Failure]] = {}

    def seconds_left(self, key: tuple[str, int, str], *, now: dt.datetime) -> float:
        """How long a pod that failed has to stay."""
        known = self._known(key, now)
        return 0.0 if known is None else max((known.last + known.pause - now).total_seconds(), 0.0)

    def note(self, key: tuple[str, int, str], *, now: dt.datetime) -> None:
        """A pod that failed is deleted now."""
        known = self._known(key, now)
        pause = _INITIAL if known is None else min(known.pause * 2, _LONGEST)
        self._failures[key] = _Failure(now, pause)

    def forget(self, uid: str) -> None:
        """A daemon set is gone."""
        for key in [key for key in self._failures if key[0] == uid]:
            del self._failures[key]

    def _known(self, key: tuple[str, int, str], now: dt.datetime) -> _Failure | None:
        known = self._failures.get(key)
        return None if known is None or now - known.last > 2 * _LONGEST else known
