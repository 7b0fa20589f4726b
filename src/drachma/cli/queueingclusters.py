"""Where commands that explain queues have their cluster from."""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import Sequence

from drachma.api import meta
from drachma.cli import clusters
from drachma.client import http
from drachma.offline import queueingfiles
from drachma.runtime import clock
from drachma.simulate import livequeueing


def read(files: list[str] | None, kubeconfig: pathlib.Path | None, *, context: str = "") -> Sequence[meta.Object]:
    """What queueing depends on, of files, or of a server where there are none.

    Ends the command with exit code 2, and a line for every problem, where something cannot be read.
    """
    clusters.refuse_both(files, kubeconfig)
    if files:
        found = queueingfiles.read(files)
        clusters.tell(found.problems)
        return found.objects
    return asyncio.run(live(kubeconfig, context))


async def live(kubeconfig: pathlib.Path | None, context: str) -> list[meta.Object]:
    """What queueing depends on, of a server."""
    access = http.find_access(kubeconfig, context=context)
    async with http.HttpClient(access, time=clock.SystemClock(), manager="drachma") as client:
        return await livequeueing.read(client)
