"""What admission policies cost a write: none, one that is about something else, and one that is about it.

``python -m bench policies`` runs it alone. Claims are created in process, on a store in memory, by the pipeline that
serves clients; servers with and without a policy take turns, so that all see the same machine. Times are the process's
own.
"""

import asyncio
import time
from typing import Any

import msgspec
from tests.unit.server import client
from tests.unit.server.admission import policies

from bench import timing

BATCH = 50
ROUNDS = 60

CLAIMS = policies.rule("resourceclaims", groups=("resource.k8s.io",), operations=["CREATE", "UPDATE"])
VALIDATIONS = [
    {
        "expression": "object.spec.devices.requests.all(r, !has(r.exactly) || r.exactly.?count.orValue(1) <= 2)",
        "message": "at most two devices a request",
    },
    {"expression": "request.userInfo.username != 'nobody' || !('gold' in object.metadata.?labels.orValue({}))"},
]


async def _start(rules: list[Any] | None) -> client.Client:
    server = await client.start()
    if rules is not None:
        await policies.validating(server, rules=rules, validations=VALIDATIONS)
        await policies.bind(server)
    return server


async def _batch(server: client.Client, first: int) -> float:
    """Microseconds of one create."""
    bodies = [msgspec.json.encode(client.claim(f"c{first + number}")) for number in range(BATCH)]
    begin = time.process_time()
    for body in bodies:
        answer = await server.send("POST", client.CLAIMS, body)
        assert answer.code == 201
    return (time.process_time() - begin) / BATCH * 1e6


async def _measure() -> None:
    servers = {
        "no policy": await _start(None),
        "one about pods": await _start([policies.rule("pods")]),
        "one about claims, two validations": await _start([CLAIMS]),
    }
    samples: dict[str, list[float]] = {title: [] for title in servers}
    for turn in range(ROUNDS):
        for title, server in servers.items():
            samples[title].append(await _batch(server, turn * BATCH))
    # The least disturbed of them: whatever else the machine does only adds to it.
    best = {title: min(each) for title, each in samples.items()}
    rows = [(title, f"{each:.0f}", f"{each - best['no policy']:+.1f}") for title, each in best.items()]
    timing.table("Validating admission policies", ("policies", "us a create", "more"), rows)


def main() -> None:
    asyncio.run(_measure())
