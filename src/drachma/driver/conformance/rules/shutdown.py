"""Rules about shutdown."""

from __future__ import annotations

import pathlib
from typing import Final

from drachma.driver.conformance import acts
from drachma.driver.conformance.check import Check, FailureError
from drachma.driver.conformance.stage import Stage


async def _stops(stage: Stage) -> None:
    acts.need_restart(stage)
    sockets = [pathlib.Path(stage.info.endpoint)]
    if not await stage.subject.stop():
        raise FailureError("it does not end within a minute of SIGTERM")
    remaining_sockets = [str(path) for path in sockets if path.exists()]
    await stage.start()
    if remaining_sockets:
        raise FailureError(f"it leaves {', '.join(remaining_sockets)}")


CHECKS: Final = (
    Check(
        "stop",
        "SIGTERM ends it, and its socket is removed",
        "kubeletplugin helper",
        _stops,
        is_must=False,
    ),
)
