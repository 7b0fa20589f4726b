"""A full disk as clients see it: deletes go through, other writes get upstream's status, and readiness tells."""

import asyncio

from drachma import errors
from drachma.store import engine, journal, protocol, state
from tests.unit.server import client

FULL = "data file drachma.db: no room is left on the disk; make room and try again"


class FillableJournal(journal.MemoryJournal):
    """A journal whose disk can be full: it takes only batches without new objects then."""

    def __init__(self) -> None:
        self.is_full = False

    def commit(self, batch: journal.Batch, done: journal.Done) -> None:
        is_refused = self.is_full and any(event.previous is None for event in batch.events)
        asyncio.get_running_loop().call_soon(done, errors.DiskFullError(FULL) if is_refused else None)

    def regain_room(self, done: journal.TellRoom) -> None:
        asyncio.get_running_loop().call_soon(lambda: done(has_room=not self.is_full))


async def test_a_full_disk() -> None:
    log = FillableJournal()
    server = await client.start(store=engine.Engine(state.State(), log, limits=protocol.Limits()))
    for name in ("a", "b"):
        assert (await server.call("POST", client.CLAIMS, client.claim(name))).code == 201
    log.is_full = True
    for _ in range(2):
        answer = await server.call("POST", client.CLAIMS, client.claim("c"))
        assert (answer.code, answer.body.get("reason")) == (500, None)
        assert answer.body["message"].startswith("mvcc: database space exceeded: ")
        assert "no room is left on the disk" in answer.body["message"]
    ready = await server.call("GET", "/readyz?verbose")
    assert ready.code == 500
    assert "[-]store failed: disk full\n" in ready.body
    assert (await server.call("GET", "/readyz")).code == 500
    assert (await server.call("GET", "/readyz/store")).body == "internal server error: disk full\n"
    assert (await server.call("GET", "/livez")).code == 200
    assert (await server.call("DELETE", f"{client.CLAIMS}/a")).code == 200
    assert (await server.call("GET", client.CLAIMS)).code == 200
    log.is_full = False
    assert (await server.call("POST", client.CLAIMS, client.claim("c"))).code == 201
    assert (await server.call("GET", "/readyz?verbose")).code == 200
