"""The long runs that the tests only do in small: crashes under load, and random requests over the wire.

``python -m bench soak`` runs 100 crashes and 100,000 requests; it is not part of ``python -m bench``.
"""

import asyncio
import itertools
import os
import pathlib
import tempfile
import time
from collections import Counter

import uvloop
from tests.scenarios import durability, fuzzing, processes

from bench import server as load
from bench import timing

CRASHES = int(os.environ.get("DRACHMA_SOAK_CRASHES", "100"))
REQUESTS = int(os.environ.get("DRACHMA_SOAK_REQUESTS", "100000"))
CONNECTIONS = 8
HANG_SECONDS = 60.0


def crash() -> None:
    """Kills the server again and again while it is written to."""
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        acknowledged = durability.rounds(pathlib.Path(folder) / "data", CRASHES, seed=int(time.time()))
    timing.table(
        "kill -9 under concurrent writes",
        ("crashes", "objects written", "lost", "minutes"),
        [(str(CRASHES), f"{acknowledged:,}", "0", f"{(time.perf_counter() - started) / 60:.1f}")],
    )


async def fuzz(server: processes.Process, *, seed: int) -> Counter[int]:
    """Random requests over several connections; how often each code was answered."""
    codes: Counter[int] = Counter()
    requests = itertools.islice(fuzzing.requests(seed), REQUESTS)

    async def work() -> None:
        connection = await load.Connection(server).open()
        for request in requests:
            if "watch" in request.path:
                continue
            async with asyncio.timeout(HANG_SECONDS):
                code, body = await connection.call(
                    request.method,
                    request.path,
                    request.body,
                    content_type=request.content_type,
                    accept=request.accept,
                )
            codes[code] += 1
            fuzzing.check(request, code, body)
        connection.close()

    await asyncio.gather(*(work() for _ in range(CONNECTIONS)))
    return codes


def main() -> None:
    crash()
    started = time.perf_counter()
    seed = int(time.time())
    with tempfile.TemporaryDirectory() as folder, processes.running(pathlib.Path(folder) / "data") as server:
        codes = uvloop.run(fuzz(server, seed=seed))
        assert server.process.poll() is None, "the server has ended"
    timing.table(
        f"random requests, seed {seed}, {(time.perf_counter() - started) / 60:.1f} minutes",
        ("code", "answers"),
        [(str(code), f"{count:,}") for code, count in sorted(codes.items())],
    )


if __name__ == "__main__":
    main()
