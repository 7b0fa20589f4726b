"""Another user's view during the fuzz run: latency of small reads, and the memory of the server.

On a busy machine a server waits for a processor. The kernel tells how long it did (``schedstat``), and that time is
subtracted: the rest is what the server itself made the user wait.
"""

from __future__ import annotations

import asyncio
import pathlib
import time
from typing import Final

from bench.soak.wire import Wire

SLOW_SECONDS: Final = 1.0
_PAUSE_SECONDS: Final = 0.02
_PATH: Final = "/api/v1/namespaces/kube-public"


class Canary:
    """Latencies in seconds, and resident memory in MiB with the time of each sample."""

    def __init__(self, wire: Wire, process: int) -> None:
        self.latencies: list[float] = []
        """Time that the server took for each read, without the time that it waited for a processor."""
        self.longest_seen = 0.0
        """Longest time that a read took on this machine, all waiting included."""
        self.slow: list[tuple[float, float]] = []
        self.failures: list[str] = []
        self.memory: list[tuple[float, float]] = []
        self._wire = wire
        self._status = pathlib.Path(f"/proc/{process}/status")
        self._schedule = pathlib.Path(f"/proc/{process}/schedstat")
        self._began = time.monotonic()

    async def read(self) -> None:
        """Read a small object for ever."""
        while True:
            waited_before, began = self._waited(), time.perf_counter()
            answer = await self._wire.call("GET", _PATH)
            seconds = time.perf_counter() - began
            self.longest_seen = max(self.longest_seen, seconds)
            seconds = max(0.0, seconds - (self._waited() - waited_before))
            self.latencies.append(seconds)
            # A request of the run may have deleted the reader's role a moment ago.
            if answer.code not in (200, 403):
                self.failures.append(f"{time.monotonic() - self._began:.1f} s: code {answer.code}")
            if seconds > SLOW_SECONDS:
                self.slow.append((time.monotonic() - self._began, seconds))
            await asyncio.sleep(_PAUSE_SECONDS)

    async def sample_memory(self) -> None:
        """Sample the memory of the server for ever."""
        while True:
            for line in self._status.read_text().splitlines():
                if line.startswith("VmRSS:"):
                    self.memory.append((time.monotonic() - self._began, int(line.split()[1]) / 1024))
            await asyncio.sleep(1.0)

    def _waited(self) -> float:
        """Return the seconds that the main thread of the server has waited for a processor so far."""
        return int(self._schedule.read_text().split()[1]) / 1e9

    def quantile(self, share: float) -> float:
        ordered = sorted(self.latencies) or [0.0]
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]

    def memory_at(self, share: float) -> float:
        """Return the median memory around a share of the run, in MiB."""
        if not self.memory:
            return 0.0
        at = int((len(self.memory) - 1) * share)
        width = max(1, len(self.memory) // 40)
        around = sorted(size for _, size in self.memory[max(0, at - width) : at + width + 1])
        return around[len(around) // 2]
