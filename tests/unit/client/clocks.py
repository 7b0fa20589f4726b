"""A clock that tests move by hand: sleeping moves it on at once and is written down."""

import asyncio
import datetime as dt


class FakeClock:
    """Time passes only by sleeping and by ``advance``. ``pauses`` has every sleep in order."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self._now = 1000.0
        self._epoch = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)

    def monotonic(self) -> float:
        return self._now

    def utc(self) -> dt.datetime:
        return self._epoch + dt.timedelta(seconds=self._now - 1000.0)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.advance(seconds)
        await asyncio.sleep(0)

    def advance(self, seconds: float) -> None:
        self._now += seconds
