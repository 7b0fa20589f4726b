"""Kills a server under concurrent writes, again and again, and checks what is left.

What must hold: every acknowledged write is there, nothing is there half, revisions never go back, and a watcher that
resumes where it was sees every later write once and in order. ``bench.soak`` does the same to whole clusters.
"""

import json
import pathlib
import random
import threading
import time
from typing import Any

from tests import patience
from tests.scenarios import processes, wire
from tests.unit.server import client

WRITERS = 4
CLAIMS = client.CLAIMS
MERGE = "application/merge-patch+json"


class Ledger:
    """What writers were told: the newest acknowledged state of every object, and of what they do not know the end."""

    def __init__(self) -> None:
        self.acknowledged: dict[str, int | None] = {}
        self.uncertain: dict[str, set[int | None]] = {}
        self.newest = 0
        self.lock = threading.Lock()

    def begin(self, name: str, step: int | None) -> None:
        with self.lock:
            self.uncertain.setdefault(name, set()).add(step)

    def finish(self, name: str, step: int | None, *, revision: int) -> None:
        with self.lock:
            self.acknowledged[name] = step
            self.uncertain.pop(name, None)
            self.newest = max(self.newest, revision)


class Writer(threading.Thread):
    """Creates, changes and deletes its own objects until the connection breaks."""

    def __init__(self, server: processes.Process, ledger: Ledger, *, number: int, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self._server = server
        self._ledger = ledger
        self._prefix = f"w{number}-{chance.randrange(10**9)}"
        self._chance = chance
        self.problem: str | None = None

    def run(self) -> None:
        count = 0
        try:
            with wire.Wire(self._server) as admin:
                while True:
                    name = f"{self._prefix}-{count}"
                    count += 1
                    self._write(admin, "POST", name, 0)
                    for step in range(1, self._chance.randrange(1, 4)):
                        self._write(admin, "PATCH", name, step)
                    if self._chance.random() < 0.3:
                        self._write(admin, "DELETE", name, None)
        except OSError:
            return
        except Exception as error:
            # A cut connection shows as half an answer too.
            if type(error).__module__ != "http.client":
                self.problem = f"{type(error).__name__}: {error}"

    def _write(self, admin: wire.Wire, method: str, name: str, step: int | None) -> None:
        self._ledger.begin(name, step)
        path = CLAIMS if method == "POST" else f"{CLAIMS}/{name}"
        body: Any = None
        content_type = "application/json"
        if method == "POST":
            body = client.claim(name, labels={"step": "0"})
        elif method == "PATCH":
            body, content_type = {"metadata": {"labels": {"step": str(step)}}}, MERGE
        answer = admin.call(method, path, body, content_type=content_type)
        if answer.code not in (200, 201):
            self.problem = f"{method} {name}: {answer.code} {answer.body}"
            raise OSError(self.problem)
        self._ledger.finish(name, step, revision=int(answer.body["metadata"]["resourceVersion"]))


class Watcher:
    """Follows all claims over every crash, resuming where it was."""

    def __init__(self) -> None:
        self.state: dict[str, int] = {}
        self.revision = 0

    def catch_up(self, server: processes.Process, ledger: Ledger) -> None:
        """Reads up to an object that it writes itself: then it has seen everything before."""
        with wire.Wire(server) as admin:
            if not self.revision:
                listed = admin.call("GET", CLAIMS).body
                self.revision = int(listed["metadata"]["resourceVersion"])
                self.state = {item["metadata"]["name"]: _step(item) for item in listed["items"]}
            mark = f"mark-{self.revision}"
            ledger.begin(mark, 0)
            made = admin.call("POST", CLAIMS, client.claim(mark, labels={"step": "0"}))
            assert made.code == 201, made.body
            newest = int(made.body["metadata"]["resourceVersion"])
            ledger.finish(mark, 0, revision=newest)
            for line in admin.open("GET", f"{CLAIMS}?watch=1&resourceVersion={self.revision}"):
                self._see(json.loads(line))
                if self.revision >= newest:
                    return
            raise AssertionError(f"the watch ended at {self.revision}, before {newest}")

    def _see(self, event: Any) -> None:
        found = event["object"]
        revision = int(found["metadata"]["resourceVersion"])
        assert event["type"] != "ERROR", event
        assert revision > self.revision, event
        self.revision = revision
        name = found["metadata"].get("name", "")
        if event["type"] == "DELETED":
            assert name in self.state, event
            del self.state[name]
        else:
            assert (event["type"] == "ADDED") is (name not in self.state), event
            self.state[name] = _step(found)


def rounds(folder: pathlib.Path, count: int, *, seed: int, longest: float = 0.5) -> int:
    """Runs so many rounds of writing and killing; how many writes were acknowledged. AssertionError if one is lost."""
    chance = random.Random(seed)
    ledger, watcher = Ledger(), Watcher()
    revision = 0
    for _ in range(count):
        server = processes.start(folder)
        try:
            revision = _check(server, ledger, at_least=revision)
            watcher.catch_up(server, ledger)
            assert watcher.state == _steps(server), "the watcher's view is not what is there"
            writers = [
                Writer(server, ledger, number=number, chance=random.Random(chance.random()))
                for number in range(WRITERS)
            ]
            for writer in writers:
                writer.start()
            time.sleep(chance.uniform(0.02, longest))
        finally:
            server.kill()
        for writer in writers:
            writer.join(patience.SECONDS)
            assert writer.problem is None, writer.problem
    with processes.running(folder) as server:
        _check(server, ledger, at_least=revision)
    return len(ledger.acknowledged)


def _check(server: processes.Process, ledger: Ledger, *, at_least: int) -> int:
    """Compares what is stored with what was acknowledged; the revision of the store."""
    with wire.Wire(server) as admin:
        listed = admin.call("GET", CLAIMS).body
    revision = int(listed["metadata"]["resourceVersion"])
    assert revision >= max(at_least, ledger.newest), "the revision went back"
    stored = {item["metadata"]["name"]: _step(item) for item in listed["items"]}
    for item in listed["items"]:
        assert item["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1, "half an object"
        assert int(item["metadata"]["resourceVersion"]) <= revision
    for name, step in ledger.acknowledged.items():
        allowed = {step, *ledger.uncertain.get(name, ())}
        assert stored.get(name) in allowed, f"{name}: acknowledged {step}, found {stored.get(name)}"
    for name, found in stored.items():
        known = {ledger.acknowledged.get(name), *ledger.uncertain.get(name, ())}
        assert found in known, f"{name}: {found} was never written"
    # What was uncertain is certain now.
    for name in list(ledger.uncertain):
        ledger.acknowledged[name] = stored.get(name)
        del ledger.uncertain[name]
    return revision


def _steps(server: processes.Process) -> dict[str, int]:
    with wire.Wire(server) as admin:
        return {item["metadata"]["name"]: _step(item) for item in admin.call("GET", CLAIMS).body["items"]}


def _step(item: Any) -> int:
    return int(item["metadata"]["labels"]["step"])
