"""What a validating webhook costs a write, with a connection that is kept and with one that is made for each call.

``python -m bench webhooks`` runs it alone. Server and webhook are in this process and speak TLS on loopback; both rows
take turns, so that they see the same machine. The times are of the whole create, one after the other.
"""

import asyncio
import pathlib
import statistics
import tempfile
import time

import msgspec
from tests.unit.server import client
from tests.unit.server.admission import policies, webhookserver

from bench import timing

ROUNDS = 20
BATCH = 10


async def _batch(server: client.Client, first: int, *, keeps: bool) -> list[float]:
    """Milliseconds of each create."""
    taken = []
    for number in range(first, first + BATCH):
        if not keeps:
            await server.app.close()
        body = msgspec.json.encode(client.claim(f"c{number}"))
        begin = time.perf_counter()
        answer = await server.send("POST", client.CLAIMS, body)
        taken.append((time.perf_counter() - begin) * 1e3)
        assert answer.code == 201
    return taken


async def _measure(folder: pathlib.Path) -> None:
    samples: dict[str, list[float]] = {
        "no webhook": [],
        "a connection for each call": [],
        "a connection that is kept": [],
    }
    async with webhookserver.running(folder) as webhook:
        webhook.responses["/hook"] = {}
        plain, server = await client.start(), await client.start()
        hook = {
            "name": "hook.example.com",
            "clientConfig": webhook.client("/hook"),
            "rules": [policies.rule("resourceclaims", groups=("resource.k8s.io",))],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        await policies.register(
            server, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", "w", webhooks=[hook]
        )
        for turn in range(ROUNDS):
            first = turn * 2 * BATCH
            samples["no webhook"] += await _batch(plain, first, keeps=True)
            samples["a connection for each call"] += await _batch(server, first, keeps=False)
            samples["a connection that is kept"] += await _batch(server, first + BATCH, keeps=True)
        await server.app.close()
    rows = [(title, f"{statistics.median(each):.2f}", f"{min(each):.2f}") for title, each in samples.items()]
    timing.table("Validating webhooks", ("webhook", "ms a create, p50", "least"), rows)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_measure(pathlib.Path(folder)))
