"""What a call and a watch event cost a component: in process, and over HTTP to a server in another process."""

import asyncio
import contextlib
import multiprocessing
import random
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from multiprocessing import connection
from typing import NamedTuple

import uvicorn
import uvloop
from msgspec import structs

from bench import timing
from drachma import store
from drachma.api import meta, resourceclaim
from drachma.client import Client, access, http, local, patches
from drachma.process import apiserver
from drachma.runtime import Informers, clock
from drachma.server import inprocess
from drachma.server.wire import app
from drachma.testing import claim

OBJECTS = 20_000
CALLS = 1_000
WRITERS = 16
TOKEN = "benchmark"

Claim = resourceclaim.ResourceClaim


def a_claim(name: str) -> Claim:
    made = claim(name).request("gpu", device_class="gpu.example.com", count=2).build()
    return structs.replace(made, metadata=meta.ObjectMeta(name=name, namespace="default"))


async def application() -> tuple[app.Application, str]:
    """A server with many claims, and the resource version before the first of them."""
    objects = store.MemoryStore(limits=store.Limits(history_events=2 * OBJECTS, history_bytes=2**30))
    made = await apiserver.build(objects, utc=clock.SystemClock().utc, chance=random.Random(1), admin_tokens=(TOKEN,))
    start = str(objects.revision)
    client = local.LocalClient(inprocess.InProcess(made.dispatcher))
    for number in range(OBJECTS):
        await client.create(a_claim(f"claim-{number:05}"))
    return made, start


def serve(pipe: connection.Connection) -> None:
    """The other process: serves until it is ended."""

    async def run() -> None:
        made, start = await application()
        # Named as TCP, because asyncio switches off Nagle's algorithm only where it is: without, answers take 40 ms.
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            server = uvicorn.Server(uvicorn.Config(made, log_level="error", lifespan="off", loop="none"))
            pipe.send((listener.getsockname()[1], start))
            await server.serve(sockets=[listener])

    with contextlib.suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


@contextlib.asynccontextmanager
async def over_http() -> AsyncIterator[tuple[Client, str]]:
    spawning = multiprocessing.get_context("spawn")
    here, there = spawning.Pipe()
    process = spawning.Process(target=serve, args=(there,), daemon=True)
    process.start()
    try:
        port, start = await asyncio.to_thread(here.recv)
        reached = access.Access(server=f"http://127.0.0.1:{port}", source="benchmark", token=TOKEN)
        async with http.HttpClient(reached, clock=clock.SystemClock()) as client:
            yield client, start
    finally:
        process.terminate()
        process.join()


@contextlib.asynccontextmanager
async def in_process() -> AsyncIterator[tuple[Client, str]]:
    made, start = await application()
    yield local.LocalClient(inprocess.InProcess(made.dispatcher)), start


class Cost(NamedTuple):
    """What an act takes, and how much of that this process computes."""

    seconds: float
    processor: float


async def cost(act: Callable[[], Awaitable[object]], *, repeat: int = 3) -> Cost:
    """The cheapest of a few runs."""
    costs = []
    for _ in range(repeat):
        begin, computed = time.perf_counter(), time.process_time()
        await act()
        costs.append(Cost(time.perf_counter() - begin, time.process_time() - computed))
    return Cost(min(each.seconds for each in costs), min(each.processor for each in costs))


async def measure(client: Client, start: str) -> dict[str, tuple[Cost, int]]:
    async def follow() -> None:
        count = 0
        async with client.watch(Claim, resource_version=start) as watch:
            while count < OBJECTS:
                count += len(await watch.batch())

    async def gather() -> None:
        async with Informers(client) as informers:
            informers.of(Claim)
            await informers.wait_synced()

    async def get() -> None:
        for number in range(CALLS):
            await client.get(Claim, f"claim-{number:05}", namespace="default")

    async def get_at_once() -> None:
        await asyncio.gather(*(get() for _ in range(WRITERS)))

    async def patch() -> None:
        for number in range(CALLS):
            content = {"metadata": {"labels": {"run": str(time.perf_counter_ns())}}}
            await client.patch(Claim, f"claim-{number:05}", patch=patches.merge(content), namespace="default")

    created = iter(range(10**9))

    async def create() -> None:
        for _ in range(CALLS):
            await client.create(a_claim(f"new-{next(created)}"))

    return {
        "watch event": (await cost(follow), OBJECTS),
        "informer's first list, per object": (await cost(gather), OBJECTS),
        "get": (await cost(get), CALLS),
        f"get, {WRITERS} at once": (await cost(get_at_once, repeat=1), CALLS * WRITERS),
        "merge patch": (await cost(patch), CALLS),
        "create": (await cost(create), CALLS),
    }


def shown(seconds: float, count: int) -> str:
    micro = seconds / count * 1e6
    return f"{micro:.1f} us" if micro < 100 else f"{micro / 1000:.3f} ms"


async def run() -> None:
    async with in_process() as (client, start):
        inside = await measure(client, start)
    async with over_http() as (client, start):
        outside = await measure(client, start)
    aims = {"watch event": "13 us", "get": "0.4 ms"}
    rows = [
        (
            what,
            shown(inside[what][0].seconds, count),
            shown(spent.seconds, count),
            shown(spent.processor, count),
            aims.get(what, ""),
        )
        for what, (spent, count) in outside.items()
    ]
    header = ("what", "in process", "over HTTP", "of that, the client computes", "aim over HTTP")
    timing.table(f"ResourceClaims, {OBJECTS:,} of them, memory store", header, rows)


def main() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())
