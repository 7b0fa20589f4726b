"""The machine's clock, for clients and for everything above them; tests use ``drachma.testing.manualclock``."""

import asyncio
import datetime as dt
import time


class SystemClock:
    """The machine's clock."""

    monotonic = staticmethod(time.monotonic)

    def utc(self) -> dt.datetime:
        return dt.datetime.now(dt.UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
