"""A store whose process is killed under load, again and again; and one whose disk is full.

``python -m tests.scenarios.test_store_crash 100`` kills a hundred times; the test kills a few times. The parent
starts a child that commits with many tasks and reports each acknowledgement and each event a watcher sees, kills
it at a random moment, opens the data directory itself, and compares. Every version of an object says which commit it
is of and how many writes that has: all of them are there, one after the other, or none.
"""

import asyncio
import collections
import hashlib
import itertools
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import pytest

from drachma import errors, store

CLAIMS = "resource.k8s.io/resourceclaims"
WRITERS = 32
NAMES = 200
BIG = 100
"""Writes of the biggest commits: more rows than the journal writes by one statement."""
HISTORY = store.Limits(history_events=100_000)
"""More than one life of a child can write, so that the parent sees every event of it."""


def body(rng: random.Random, mark: "Mark") -> dict[str, Any]:
    text = rng.randbytes(rng.choice((10, 1000, 4000))).hex()
    return {"text": text, "digest": hashlib.sha256(text.encode()).hexdigest(), "mark": mark}


class Mark(NamedTuple):
    """The commit that a version of an object is of: its name, and how many writes it has."""

    commit: str
    size: int


class Report(NamedTuple):
    """One line from the child: an acknowledged write, or an event its watcher saw."""

    kind: str
    change: str = ""
    name: str = ""
    revision: int = 0
    digest: str = ""
    mark: Mark = Mark("", 0)

    @classmethod
    def of(cls, kind: str, change: str, item: store.Record) -> "Report":
        return cls(kind, change, item.key.name, item.revision, item.value["digest"], Mark(*item.value["mark"]))


# The child.


def say(report: Report) -> None:
    # One write of less than a pipe's page is never torn, even when the next instruction is the last.
    os.write(sys.stdout.fileno(), msgspec.json.encode(report) + b"\n")


def write_of(objects: store.Store, name: str, *, rng: random.Random, mark: Mark) -> tuple[str, store.Write]:
    """A write that holds against the committed object: to create, to replace or to delete it."""
    key = store.Key(CLAIMS, "default", name)
    stored = objects.get(key)
    if stored is None:
        return "ADDED", store.Create(key, store.stamped(body(rng, mark)))
    if rng.random() < 0.3:

        def last(item: store.Record, revision: int) -> store.Body:
            return store.stamped({**item.value, "mark": mark})(revision)

        return "DELETED", store.Delete(key, revision=stored.revision, draft=last)
    return "MODIFIED", store.Update(key, store.stamped(body(rng, mark)), revision=stored.revision)


async def commit(objects: store.Store, names: Sequence[str], rng: random.Random) -> None:
    mark = Mark(rng.randbytes(8).hex(), len(names))
    changes = [write_of(objects, name, rng=rng, mark=mark) for name in names]
    try:
        records = await objects.commit([write for _, write in changes])
    except errors.PreconditionError:
        return
    for (change, _), item in zip(changes, records, strict=True):
        say(Report.of("ack", change, item))


async def child(path: pathlib.Path, seed: int) -> None:
    say(Report("start"))
    objects = await store.SqliteStore.open(path, limits=HISTORY)
    say(Report("open", revision=objects.revision))

    async def work(number: int) -> None:
        rng = random.Random(seed * WRITERS + number)
        while True:
            await commit(objects, [f"c{n}" for n in rng.sample(range(NAMES), rng.choice((1, 1, 2, 3, 8)))], rng)

    async def work_much() -> None:
        """Nobody else has these names, so that none of these commits is refused."""
        rng = random.Random(seed)
        while True:
            await commit(objects, [f"big{n}" for n in range(BIG)], rng)

    async def look(after: int) -> None:
        async for event in objects.watch(CLAIMS, after=after):
            say(Report.of("saw", event.change, event.record))

    await asyncio.gather(look(objects.revision), work_much(), *(work(number) for number in range(WRITERS)))


# The parent.


def live_and_die(path: pathlib.Path, rng: random.Random) -> list[Report]:
    """Runs a child up to a random number of reports and a moment longer, kills it, and returns all it said."""
    command = [sys.executable, "-m", __spec__.name, "child", str(path), str(rng.randrange(2**30))]
    last = rng.choice((1, 2, rng.randrange(3, 200), rng.randrange(200, 4000)))
    # While a child reports what is written it writes nothing; a moment later it is in the middle of that again.
    moment = rng.uniform(0, 0.03)
    reports = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        for line in process.stdout:
            reports.append(msgspec.json.decode(line, type=Report))
            if len(reports) == last:
                threading.Timer(moment, process.kill).start()
    assert process.returncode == -signal.SIGKILL, f"the child ended by itself: {process.returncode}"
    return reports


class Parent:
    """What the parent knows to be in the store, from one life of the child to the next."""

    def __init__(self) -> None:
        self.revision = 1
        self.objects: dict[str, Report] = {}
        self.acknowledged = 0
        self.unreported = 0
        self.commits: collections.Counter[int] = collections.Counter()
        """How many there were, by the number of their writes."""

    async def check(self, path: pathlib.Path, reports: list[Report]) -> None:
        async with await store.SqliteStore.open(path, limits=HISTORY) as objects:
            assert objects.revision >= self.revision, "revisions went back"
            events = await self.resume(objects, self.revision)
            # What was reported is in the log: same revision, same change, same content.
            acks = [report for report in reports if report.kind == "ack"]
            for ack in acks:
                assert events.get(ack.revision) == ack._replace(kind="saw"), f"lost or changed: {ack}"
            seen = [report for report in reports if report.kind == "saw"]
            assert [report.revision for report in seen] == list(
                range(self.revision + 1, self.revision + 1 + len(seen))
            ), "the watcher missed or repeated an event"
            for report in seen:
                assert events[report.revision] == report
            # A watcher that resumes where it was cut off gets exactly the rest.
            resumed = await self.resume(objects, self.revision + len(seen))
            assert list(resumed) == list(range(self.revision + 1 + len(seen), objects.revision + 1))
            # Of every commit all writes are there, one after the other.
            for mark, group in itertools.groupby(events.values(), key=lambda report: report.mark):
                assert len(list(group)) == mark.size, f"a part of a commit: {mark}"
                self.commits[mark.size] += 1
            # The objects are what the log adds up to.
            for report in events.values():
                self.objects[report.name] = report
                if report.change == "DELETED":
                    del self.objects[report.name]
            found = {item.key.name: item for item in objects.list(CLAIMS).records}
            assert found.keys() == self.objects.keys()
            for name, item in found.items():
                want = self.objects[name]
                assert (item.revision, item.value["digest"]) == (want.revision, want.digest)
                assert item.value["metadata"]["resourceVersion"] == str(item.revision)
                assert hashlib.sha256(item.value["text"].encode()).hexdigest() == want.digest
            self.acknowledged += len(acks)
            self.unreported += len(events) - len(acks)
            self.revision = objects.revision

    async def resume(self, objects: store.Store, after: int) -> dict[int, Report]:
        """All events after a revision, by revision; fails if one is missing."""
        events: dict[int, Report] = {}
        with objects.watch(CLAIMS, after=after) as watch:
            while watch.revision < objects.revision:
                for event in await watch.batch():
                    events[event.revision] = Report.of("saw", event.change, event.record)
        assert list(events) == list(range(after + 1, objects.revision + 1))
        return events


ROOT = pathlib.Path(__file__).parents[2]


def kill(path: pathlib.Path, *, times: int, seed: int) -> Parent:
    rng = random.Random(seed)
    parent = Parent()
    for _ in range(times):
        reports = live_and_die(path, rng)
        asyncio.run(parent.check(path, reports))
    return parent


@pytest.mark.parametrize("seed", [1, 2])
def test_kill_loses_nothing_that_was_acknowledged(tmp_path: pathlib.Path, seed: int) -> None:
    parent = kill(tmp_path, times=4, seed=seed)
    assert parent.acknowledged > 100
    assert parent.commits.keys() >= {1, 2, 3, 8, BIG}


FULL = """
import asyncio, pathlib, sys
from drachma import errors, store

def key(number):
    return store.Key("pods", "default", f"p{number:04}")

async def main():
    path = pathlib.Path(sys.argv[1])
    room = path / "room"
    room.write_bytes(bytes(40_000_000))
    async with await store.SqliteStore.open(path / "data") as objects:
        written = 0
        while True:
            results = await asyncio.gather(
                *(objects.create(key(written + n), store.fixed(bytes(100_000))) for n in range(10)),
                return_exceptions=True,
            )
            if isinstance(results[0], Exception):
                break
            written += 10
        assert all(type(result) is errors.DiskFullError for result in results), results
        assert "no room is left on the disk; make room and try again" in str(results[0]), results[0]
        assert len(objects.list("pods").records) == written > 100
        assert objects.fault == "disk full", objects.fault
        # Deletes go through, one by one, though each of them writes a row first.
        for number in range(20):
            await objects.delete(key(number))
        held = objects.get(key(30))
        await objects.update(key(30), store.fixed(b"smaller"), revision=held.revision)
        try:
            await objects.create(key(0), store.fixed(bytes(5000)))
        except errors.DiskFullError as error:
            assert "p0000: not written: no room is left on the disk; delete objects" in str(error), error
        else:
            raise AssertionError("created on a full disk")
        room.unlink()
        await asyncio.gather(*(objects.create(key(written + n), store.fixed(bytes(100_000))) for n in range(10)))
        assert objects.fault == "", objects.fault
        written += 10
        revision = objects.revision
    async with await store.SqliteStore.open(path / "data") as objects:
        assert len(objects.list("pods").records) == written - 20
        assert objects.revision == revision
    print("recovered with", written)

asyncio.run(main())
"""


def test_a_full_disk_allows_deletes_and_fails_other_writes_until_there_is_room(tmp_path: pathlib.Path) -> None:
    inside = f"mount -t tmpfs -o size=100m tmpfs '{tmp_path}' && exec '{sys.executable}' -c \"$0\" '{tmp_path}'"
    command = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*command, f"mount -t tmpfs tmpfs '{tmp_path}'"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no permission to mount a small disk here")
    result = subprocess.run([*command, inside, FULL], capture_output=True, text=True, check=False)
    assert result.stdout.startswith("recovered with"), result.stderr


def main() -> None:
    if sys.argv[1] == "child":
        asyncio.run(child(pathlib.Path(sys.argv[2]), int(sys.argv[3])))
        return
    times = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().randrange(2**30)
    with tempfile.TemporaryDirectory(prefix="drachma-crash-") as path:
        parent = kill(pathlib.Path(path), times=times, seed=seed)
    sys.stdout.write(
        f"killed {times} times (seed {seed}): {parent.acknowledged} acknowledged writes are all there, "
        f"{parent.unreported} more were committed before they could be reported, "
        f"{parent.commits.total()} commits of 1 to {max(parent.commits)} writes are whole, "
        f"revision {parent.revision}\n"
    )


if __name__ == "__main__":
    main()
