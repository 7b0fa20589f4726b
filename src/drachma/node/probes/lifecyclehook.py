"""What a container wants done once it has begun, or before it is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from drachma.api.pod import ContainerPort
from drachma.node.probes import asking
from drachma.node.runningpod import LifecycleHandler, Probe
from drachma.node.runtimes import protocol
from drachma.runtime import clock


async def run(
    hook: LifecycleHandler,
    container: protocol.Container,
    *,
    ports: Sequence[ContainerPort],
    seconds: float,
    time: clock.Clock,
) -> str | None:
    """Does it, for no longer than so many seconds: None where that went well, or what is wrong, for people."""
    if hook.sleep is not None:
        ended = asyncio.create_task(container.wait())
        pause = asyncio.create_task(time.sleep(min(hook.sleep.seconds, seconds)))
        await asyncio.wait((ended, pause), return_when=asyncio.FIRST_COMPLETED)
        for task in (ended, pause):
            task.cancel()
        await asyncio.gather(ended, pause, return_exceptions=True)
        return None
    question = Probe(exec=hook.exec, http_get=hook.http_get, timeout_seconds=max(1, round(seconds)))
    return await asking.ask(question, container, ports)
