"""The API server over HTTPS: durable creates, reads, and watchers that all see everything.

``python -m bench server`` runs it alone. The server is a process of its own with SQLite in the directory for temporary
files; the load comes from this process, so two cores are needed for true numbers.
"""

import pathlib
import statistics
import tempfile
from collections.abc import Iterable

import msgspec
from tests.scenarios import processes
from tests.unit.server import client

from bench import load, timing

CONNECTIONS = 16
CREATES = 10_000
READS = 10_000
WATCHERS = 100
WRITERS = 48
"""More than connections elsewhere: this is about the rate, and not about how quickly one writer gets on."""

EVENTS = 5_000
EVENTS_PER_SECOND = 1_000
CLAIMS = client.CLAIMS


def creates(server: processes.Process, numbers: Iterable[int]) -> list[bytes]:
    return [
        load.request(server, "POST", CLAIMS, msgspec.json.encode(client.claim(f"bench-{number}"))) for number in numbers
    ]


def reads(server: processes.Process, numbers: Iterable[int]) -> list[bytes]:
    return [load.request(server, "GET", f"{CLAIMS}/bench-{number % CREATES}") for number in numbers]


def fan_out(server: processes.Process) -> load.Outcome:
    """Watchers while claims are created at a steady rate."""
    listed = load.Connection(server).call(load.request(server, "GET", f"{CLAIMS}?limit=1"))
    version = msgspec.json.decode(listed)["metadata"]["resourceVersion"]
    watches = [load.Watch(server, f"{CLAIMS}?watch=1&resourceVersion={version}") for _ in range(WATCHERS)]
    requests = creates(server, range(CREATES, CREATES + EVENTS))
    return load.put(server, requests, connections=WRITERS, per_second=EVENTS_PER_SECOND, watches=watches)


def cpu_seconds(server: processes.Process) -> float:
    """What the server's process has used so far."""
    tasks = pathlib.Path(f"/proc/{server.process.pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def measure(server: processes.Process) -> None:
    rows: list[tuple[str, ...]] = []
    for title, count, make in (("durable create", CREATES, creates), ("get", READS, reads)):
        requests = make(server, range(count))
        before = cpu_seconds(server)
        outcome = load.put(server, requests, connections=CONNECTIONS)
        used = cpu_seconds(server) - before
        cuts = statistics.quantiles(outcome.taken, n=100)
        rows.append(
            (
                title,
                f"{count / outcome.seconds:,.0f}",
                f"{cuts[49] * 1000:.1f}",
                f"{cuts[98] * 1000:.1f}",
                f"{used / count * 1e6:.0f}",
            )
        )
    timing.table(
        f"API server over HTTPS, {CONNECTIONS} connections",
        ("request", "per second", "p50 ms", "p99 ms", "server CPU us"),
        rows,
    )
    before = cpu_seconds(server)
    outcome = fan_out(server)
    used = cpu_seconds(server) - before
    delivered = EVENTS * WATCHERS
    timing.table(
        f"watch fan-out over HTTPS, {WATCHERS} watchers, {EVENTS_PER_SECOND}/s wanted",
        ("creates per second", "last event after last create s", "events delivered", "server CPU us per event"),
        [
            (
                f"{EVENTS / outcome.seconds:,.0f}",
                f"{outcome.lag:.2f}",
                f"{delivered:,}",
                f"{used / delivered * 1e6:.1f}",
            )
        ],
    )


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, processes.running(pathlib.Path(folder) / "data") as server:
        measure(server)


if __name__ == "__main__":
    main()
