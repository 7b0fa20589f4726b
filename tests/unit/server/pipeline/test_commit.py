"""The committer: an intent decides again if another write was faster, and only then."""

from collections.abc import Callable
from typing import Any

import pytest

from drachma.server import status
from drachma.server.access import authentication
from drachma.server.calls.call import Call, Target
from drachma.server.pipeline import commit, group, intent
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


class Scripted(intent.UniqueIntent):
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


OTHER = KEY._replace(name="q")


class Edit(intent.UniqueIntent):
    """An intent that sets a field of a pod that is there."""

    def __init__(self, key: record.Key, *, is_dry_run: bool = False, **fields: Any) -> None:
        self.write = write()
        self.is_dry_run = is_dry_run
        self.key = key
        self.fields = fields

    def decide(self, get: intent.Get) -> intent.Decision:

        stored = get(self.key)
        if stored is None:
            raise status.not_found(self.write.resource, self.key.name)
        return intent.Replace(stored, {**stored.value, **self.fields})


async def test_intents_on_several_objects_are_one_commit() -> None:
    world = await World.made()
    before = world.store.revision
    made, changed = await commit.Committer(world.store).commit_all(
        [Scripted(intent.Make(OTHER, pod(), "v")), Edit(KEY, status={})]
    )
    assert (made.stored, changed.stored) == (world.store.get(OTHER), world.store.get(KEY))
    assert [each.stored.revision for each in (made, changed) if each.stored] == [before + 1, before + 2]


async def test_intents_on_one_object_are_one_version() -> None:
    world = await World.made()
    before = world.store.revision
    outcomes = await commit.Committer(world.store).commit_all([Edit(KEY, spec={"a": 1}), Edit(KEY, status={"b": 2})])
    stored = world.store.get(KEY)
    assert stored is not None
    assert (stored.revision, stored.value["spec"], stored.value["status"]) == (before + 1, {"a": 1}, {"b": 2})
    assert {outcome.stored for outcome in outcomes} == {stored}


async def test_what_is_made_can_be_changed_in_the_same_commit() -> None:
    world = await World.made()
    before = world.store.revision
    made = Scripted(intent.Make(OTHER, pod(), "v"))
    outcomes = await commit.Committer(world.store).commit_all([made, Edit(OTHER, status={"b": 2})])
    stored = world.store.get(OTHER)
    assert stored is not None
    assert (stored.revision, stored.uid, stored.value["status"]) == (before + 1, "v", {"b": 2})
    assert [outcome.is_created for outcome in outcomes] == [True, False]


async def test_what_is_changed_can_be_removed_in_the_same_commit() -> None:
    world = await World.made()

    class Removal(Edit):
        def decide(self, get: intent.Get) -> intent.Decision:
            stored = get(self.key)
            assert stored is not None
            return intent.Remove(stored, stored.value)

    with world.store.watch("pods", after=world.store.revision) as watch:
        await commit.Committer(world.store).commit_all([Edit(KEY, status={"b": 2}), Removal(KEY)])
        (event,) = await watch.batch()
    assert (event.change, event.record.value["status"]) == (record.Change.DELETED, {"b": 2})
    assert world.store.get(KEY) is None


async def test_a_group_is_refused_as_a_whole_and_says_which() -> None:
    world = await World.made()
    before = world.store.revision
    with pytest.raises(group.RefusedIntentError, match='pods "q" not found') as caught:
        await commit.Committer(world.store).commit_all([Edit(KEY, status={}), Edit(OTHER, status={})])
    assert (caught.value.position, caught.value.code, world.store.revision) == (1, 404, before)


async def test_nothing_is_made_to_be_removed() -> None:
    world = await World.made()
    removal = Scripted(intent.Remove(world.new, pod()))
    with pytest.raises(group.RefusedIntentError, match="made and removed in the same commit"):
        await commit.Committer(world.store).commit_all([removal, Scripted(intent.Make(KEY, pod(), "v"))])
    assert world.store.get(KEY) is world.new


async def test_a_group_that_is_outrun_decides_anew_together() -> None:
    world = await World.made()
    late = Scripted(intent.Replace(world.old, pod()), intent.Replace(world.new, pod(status={})))

    beside = Scripted(intent.Make(OTHER, pod(), "v"), intent.Make(OTHER, pod(), "w"))
    await commit.Committer(world.store).commit_all([beside, late])
    stored = world.store.get(OTHER)
    assert stored is not None
    assert (stored.uid, late.left) == ("w", [])


async def test_a_group_that_is_outrun_for_ever_gives_up() -> None:
    world = await World.made()
    scripted = Scripted(*[intent.Replace(world.old, pod())] * commit.ATTEMPTS)
    with pytest.raises(status.StatusError, match="the object has been modified"):
        await commit.Committer(world.store).commit_all([scripted])


async def test_a_dry_run_of_a_group_writes_nothing() -> None:
    world = await World.made()
    before = world.store.revision
    committer = commit.Committer(world.store)
    outcomes = await committer.commit_all(
        [Edit(KEY, is_dry_run=True, spec={"a": 1}), Edit(KEY, is_dry_run=True, status={})]
    )
    assert [outcome.stored for outcome in outcomes] == [None, None]
    assert outcomes[1].document["spec"] == {"a": 1}
    assert world.store.revision == before


async def test_a_group_that_changes_nothing_leaves_all_as_it_is() -> None:
    world = await World.made()
    before = world.store.revision
    (outcome,) = await commit.Committer(world.store).commit_all([Scripted(intent.Leave(world.new))])
    assert (outcome.stored, world.store.revision) == (world.new, before)
