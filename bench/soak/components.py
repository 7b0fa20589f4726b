"""Components as processes that a supervisor keeps running."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from bench.soak import faults

DRACHMA: Final = (sys.executable, "-c", "from drachma import cli; cli.main()")
"""The command line of drachma, with this interpreter."""

_CHECK_SECONDS: Final = 0.2
_RESTART_SECONDS: Final = 0.5


class Component:
    """One process, started again whenever it ends by itself."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        logs: pathlib.Path,
        partition: faults.Partition | None = None,
        disk: faults.Disk | None = None,
        clock: faults.Clock | None = None,
    ) -> None:
        self.name = name
        self.partition = partition
        self.disk = disk
        self.clock = clock
        self.exits = 0
        """How often it ended without being killed."""
        self._command = list(command)
        self._log = logs / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._is_wanted = False

    @property
    def kind(self) -> str:
        """Name without the number of its node."""
        return self.name.partition("-")[0]

    def start(self, *, has_movable_clock: bool = False) -> None:
        """Start the process; what it writes goes to its log.

        A movable clock costs a server most of its speed, so that only the process under a clock fault has one.
        """
        self._is_wanted = True
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        if has_movable_clock and self.clock is not None:
            environment |= self.clock.environment()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=subprocess.STDOUT, env=environment, start_new_session=True
            )

    def kill(self) -> None:
        """End it as kill -9 does; it stays away until it is started."""
        self._is_wanted = False
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def suspend(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def revive(self) -> None:
        """Start it again if it ended by itself."""
        if self._is_wanted and self._process is not None and self._process.poll() is not None:
            self.exits += 1
            self.start()

    def tail(self, characters: int = 2000) -> str:
        """Return the end of its log."""
        return self._log.read_text(errors="replace")[-characters:] if self._log.exists() else ""

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None, f"{self.name} was never started"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


async def supervise(components: Sequence[Component]) -> None:
    """Keep components running for ever, with a pause before each restart, as a service manager does."""
    while True:
        await asyncio.sleep(_CHECK_SECONDS)
        for component in components:
            component.revive()
        await asyncio.sleep(_RESTART_SECONDS - _CHECK_SECONDS)
