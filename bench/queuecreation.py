"""Creation of queues: CPU time until all of 1,000 cluster queues and local queues, created one by one, have a status.

API server and queueing are one process. The first row has ten cohorts, the second one cohort for all queues.
"""

from __future__ import annotations

import functools
import time

from bench import queueload
from bench.timing import table
from drachma.client import local
from drachma.process import embedded, eventloop, queueing
from drachma.queueing.component import ActiveConfiguration, PendingView
from drachma.runtime import Surroundings
from drachma.server import inprocess
from drachma.store import memory

_QUEUES = 1000


async def run(*, cohorts: int, queues: int = _QUEUES) -> float:
    """Return the CPU seconds for all queues."""
    load = queueload.empty_queues(cohorts=cohorts, each=queues // cohorts)
    active = ActiveConfiguration()
    additions = queueing.additions(active, PendingView())
    async with embedded.server(memory.MemoryStore(), additions=additions) as server:
        client = local.LocalClient(inprocess.InProcess(server.application.dispatcher))
        async with embedded.running(Surroundings(client), functools.partial(queueing.component, configured=active)):
            began = time.process_time()
            await queueload.make_queues(client, load)
            return time.process_time() - began


def main() -> None:
    rows = []
    for cohorts in (10, 1):
        with eventloop.runner() as runner:
            rows.append((f"{_QUEUES:,}", str(cohorts), f"{runner.run(run(cohorts=cohorts)):.1f} s"))
    table("queues created one by one", ("queues", "cohorts", "CPU"), rows)
