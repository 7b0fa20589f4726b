"""The one place that writes: an intent is decided anew when another write came first, and only then."""

from collections.abc import Callable
from typing import Any

import pytest

from drachma.server import status
from drachma.server.access import authentication
from drachma.server.calls.call import Call, Target
from drachma.server.pipeline import commit, intent
from drachma.server.surface import verbs
from drachma.server.surface.strategy import Write
from drachma.store import memory, record
from tests.unit.server import served
from tests.unit.server.client import Clock

KEY = record.Key("pods", "default", "p")


def write() -> Write:
    target = Target(served.resource("pods"), "v1", "default", "p", None)
    call = Call(user=authentication.ADMIN, verb=verbs.UPDATE, surface=served.surface(), target=target)
    return call.write(now=Clock()())


class Scripted:
    """An intent that decides as it is told, one decision for each time that it is asked."""

    def __init__(self, *decisions: intent.Decision, is_dry_run: bool = False) -> None:
        self.write = write()
        self.is_dry_run = is_dry_run
        self.left = list(decisions)

    def decide(self, _get: intent.Get) -> intent.Decision:
        return self.left.pop(0)


def pod(**fields: Any) -> dict[str, Any]:
    return {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}, **fields}


class World:
    """A pod in two versions, of which only the second is there any more."""

    def __init__(self, store: memory.MemoryStore, old: record.Record, new: record.Record) -> None:
        self.store = store
        self.old = old
        self.new = new

    @classmethod
    async def made(cls) -> "World":
        store = memory.MemoryStore()
        committer = commit.Committer(store)
        old = await committer.commit(Scripted(intent.Make(KEY, pod(), "u")))
        assert old.stored is not None
        assert old.is_created
        new = await committer.commit(Scripted(intent.Replace(old.stored, pod(spec={}))))
        assert new.stored is not None
        assert not new.is_created
        return cls(store, old.stored, new.stored)


async def test_what_is_stored_has_its_revision() -> None:
    world = await World.made()
    assert world.new.value["metadata"]["resourceVersion"] == str(world.store.revision)
    assert world.store.get(KEY) is world.new


@pytest.mark.parametrize(
    "outrun",
    [
        pytest.param(lambda world: intent.Make(KEY, pod(), "v"), id="the-name-is-taken"),
        pytest.param(lambda world: intent.Replace(world.old, pod(status={})), id="changed"),
        pytest.param(lambda world: intent.Remove(world.old, pod()), id="changed-before-it-goes"),
    ],
)
async def test_who_is_outrun_decides_anew(outrun: Callable[[World], intent.Decision]) -> None:
    world = await World.made()
    scripted = Scripted(outrun(world), intent.Replace(world.new, pod(status={})))
    outcome = await commit.Committer(world.store).commit(scripted)
    assert not scripted.left
    assert outcome.stored is world.store.get(KEY)
    assert outcome.document["status"] == {}


@pytest.mark.parametrize(
    ("decide", "want_gone"),
    [
        pytest.param(lambda world: intent.Make(KEY._replace(name="q"), pod(), "v"), False, id="make"),
        pytest.param(lambda world: intent.Replace(world.new, pod(status={})), False, id="replace"),
        pytest.param(lambda world: intent.Remove(world.new, pod()), True, id="remove"),
    ],
)
async def test_a_dry_run_is_decided_and_not_done(decide: Callable[[World], intent.Decision], want_gone: bool) -> None:
    world = await World.made()
    before = world.store.revision
    outcome = await commit.Committer(world.store).commit(Scripted(decide(world), is_dry_run=True))
    assert (outcome.stored, outcome.is_gone) == (None, want_gone)
    assert world.store.revision == before


async def test_what_is_as_it_should_be_is_left() -> None:
    world = await World.made()
    outcome = await commit.Committer(world.store).commit(Scripted(intent.Leave(world.new)))
    assert (outcome.stored, world.store.revision) == (world.new, world.new.revision)


async def test_the_last_finalizer_may_be_taken_by_several_at_once() -> None:
    world = await World.made()
    await world.store.delete(KEY)
    outcome = await commit.Committer(world.store).commit(Scripted(intent.Remove(world.new, pod(), answer=pod(spec={}))))
    assert (outcome.document, outcome.stored, outcome.is_gone) == (pod(spec={}), None, True)


async def test_who_is_outrun_for_ever_gives_up() -> None:
    world = await World.made()
    scripted = Scripted(*[intent.Replace(world.old, pod())] * (commit.ATTEMPTS + 1))
    with pytest.raises(status.StatusError, match="the object has been modified"):
        await commit.Committer(world.store).commit(scripted)
    assert len(scripted.left) == 1
