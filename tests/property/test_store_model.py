"""Both stores against a dictionary: any sequence of commits, lists, watches, compactions and restarts."""

import asyncio
import pathlib
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, TypeAlias

import hypothesis
import pytest
from hypothesis import stateful
from hypothesis import strategies as st

from drachma import errors, store

RESOURCES = ("resource.k8s.io/resourceclaims", "pods")
NAMESPACES = ("", "a", "a-b")
NAMES = ("x", "y", "z")

# Few keys and most of them in one place, so that writes meet and pages have something to split.
keys = st.builds(
    store.Key,
    st.sampled_from((RESOURCES[0], *RESOURCES)),
    st.sampled_from(("a", "a", *NAMESPACES)),
    st.sampled_from(NAMES),
)
resources = st.sampled_from(RESOURCES)
scopes = st.none() | st.sampled_from(NAMESPACES)
bodies = st.integers(0, 999).map(lambda number: b"%d" % number)
# Mostly the newest revisions, where writes meet; seldom the far past.
backs = st.integers(0, 3) | st.integers(0, 30)


class Seen(NamedTuple):
    """A version of an object, as the model knows it and as stores are asked for it."""

    key: store.Key
    uid: str
    create_revision: int
    revision: int
    data: bytes


Model: TypeAlias = dict[store.Key, Seen]


class Write(NamedTuple):
    """A write to try: to create, update or delete, under preconditions that may or may not hold."""

    verb: str
    key: store.Key
    data: bytes
    revision: int | None
    uid: str | None

    def value(self) -> store.Write:
        if self.verb == "create":
            return store.Create(self.key, store.fixed(self.data), uid=self.uid or "")
        if self.verb == "update":
            return store.Update(self.key, store.fixed(self.data), revision=self.revision or 0)
        return store.Delete(self.key, revision=self.revision, uid=self.uid)

    async def run(self, objects: store.Store) -> store.Record:
        """Does the write alone, by the verb that stores have for it."""
        if self.verb == "create":
            return await objects.create(self.key, store.fixed(self.data), uid=self.uid or "")
        if self.verb == "update":
            return await objects.update(self.key, store.fixed(self.data), revision=self.revision or 0)
        return await objects.delete(self.key, revision=self.revision, uid=self.uid)

    def refusal(self, model: Model) -> type[errors.StoreError] | None:
        """What a store must say to this write if these are the objects."""
        found = model.get(self.key)
        if self.verb == "create":
            return errors.AlreadyExistsError if found is not None else None
        if found is None:
            return errors.NotFoundError
        if self.verb == "update":
            return errors.ConflictError if self.revision != found.revision else None
        agree = self.revision in (None, found.revision) and self.uid in (None, found.uid)
        return None if agree else errors.ConflictError

    def apply(self, model: Model, revision: int) -> tuple[str, Seen]:
        """Does the write to the model; says what a watcher sees of it."""
        found = model.get(self.key)
        if self.verb == "create":
            model[self.key] = Seen(self.key, self.uid or "", revision, revision, self.data)
            return ("ADDED", model[self.key])
        assert found is not None
        if self.verb == "update":
            model[self.key] = found._replace(revision=revision, data=self.data)
            return ("MODIFIED", model[self.key])
        del model[self.key]
        return ("DELETED", found._replace(revision=revision))


Refusal: TypeAlias = tuple[store.Key, type[errors.StoreError]]
Outcome: TypeAlias = Sequence[store.Record] | errors.PreconditionError


class Commit(NamedTuple):
    """Writes to try together; a single one by its verb, so that both ways to do it are held against the model."""

    writes: Sequence[Write]

    async def run(self, objects: store.Store) -> Outcome:
        try:
            if len(self.writes) == 1:
                return [await self.writes[0].run(objects)]
            return await objects.commit([write.value() for write in self.writes])
        except errors.PreconditionError as error:
            return error

    def refusal(self, model: Model) -> Refusal | None:
        """Which write a store must refuse if these are the objects, and how: the first that does not hold."""
        for write in self.writes:
            error = write.refusal(model)
            if error is not None:
                return write.key, error
        return None


def verdict(outcome: Outcome) -> Sequence[Seen] | Refusal:
    if isinstance(outcome, errors.PreconditionError):
        return store.Key(*outcome.key), type(outcome)
    return tuple(seen(item) for item in outcome)


def seen(item: store.Record) -> Seen:
    return Seen(item.key, item.uid, item.create_revision, item.revision, item.data)


def in_order(item: Seen) -> str:
    return f"{item.key.namespace}/{item.key.name}"


class Follower(NamedTuple):
    """A watch of each store with the same scope, and how far both were read."""

    resource: str
    namespace: str | None
    watches: dict[str, store.Watch]
    after: int


class Query(NamedTuple):
    """What a list is asked for."""

    resource: str
    namespace: str | None
    revision: int
    limit: int | None
    where: "Callable[[store.Record | Seen], bool] | None"


def _is_odd(item: store.Record | Seen) -> bool:
    return item.data[-1] % 2 == 1


class StoreMachine(stateful.RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="drachma-model-"))
        self.stores: dict[str, store.MemoryStore | store.SqliteStore] = {
            "memory": store.MemoryStore(),
            "sqlite": self.run(store.SqliteStore.open(self.path)),
        }
        self.versions: list[Model] = [{}, {}]
        self.events: list[tuple[str, Seen]] = []
        self.compacted = 1
        self.followers: list[Follower] = []

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        # Only a lost wake-up comes near the limit; without it that fault would hang the run.
        async def limited() -> Any:
            async with asyncio.timeout(60):
                return await work

        return self.runner.run(limited())

    def teardown(self) -> None:
        for objects in self.stores.values():
            self.run(objects.close())
        self.runner.close()
        shutil.rmtree(self.path)

    @property
    def model(self) -> Model:
        return self.versions[-1]

    @property
    def revision(self) -> int:
        return len(self.versions) - 1

    def take(self, commit: Commit, outcome: Sequence[store.Record]) -> None:
        """Does a commit to the model, which must come to the same records at the next revisions."""
        assert commit.refusal(self.model) is None
        assert len(outcome) == len(commit.writes)
        for write, item in zip(commit.writes, outcome, strict=True):
            changed = dict(self.model)
            self.events.append(write.apply(changed, self.revision + 1))
            self.versions.append(changed)
            assert seen(item) == self.events[-1][1]

    def draw_write(self, data: st.DataObject) -> Write:
        verb, key, body = data.draw(st.tuples(st.sampled_from(["create", "update", "delete"]), keys, bodies))
        found = self.model.get(key)
        newest = None if found is None else found.revision
        if verb == "create":
            return Write(verb, key, body, None, data.draw(st.sampled_from(["u1", "u2"])))
        revision = data.draw(st.sampled_from([newest, self.revision]))
        if verb == "delete":
            return Write(
                verb,
                key,
                body,
                data.draw(st.none() | st.just(revision)),
                data.draw(st.none() | st.sampled_from(["u1", "u2"])),
            )
        return Write(verb, key, body, revision, None)

    def draw_commit(self, data: st.DataObject) -> Commit:
        """One write or several of different objects."""
        count = data.draw(st.sampled_from([1, 1, 2, 3, 5]))
        writes = [self.draw_write(data) for _ in range(count)]
        return Commit(list({write.key: write for write in writes}.values()))

    @stateful.rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        commit = self.draw_commit(data)
        want = commit.refusal(self.model)
        outcomes = {name: self.run(commit.run(objects)) for name, objects in self.stores.items()}
        if want is None:
            self.take(commit, outcomes["memory"])
        for name, outcome in outcomes.items():
            assert verdict(outcome) == (want or verdict(outcomes["memory"])), (name, commit)

    @stateful.rule(data=st.data(), count=st.integers(2, 8))
    def commit_at_once(self, data: st.DataObject, count: int) -> None:
        """Concurrent commits come out as if done one after the other, and the same in both stores."""
        commits = [self.draw_commit(data) for _ in range(count)]

        async def all_at_once(objects: store.Store) -> Sequence[Outcome]:
            return await asyncio.gather(*(commit.run(objects) for commit in commits))

        results = {name: self.run(all_at_once(objects)) for name, objects in self.stores.items()}
        assert len({tuple(map(verdict, outcomes)) for outcomes in results.values()}) == 1, results
        outcomes: Sequence[Outcome] = results["memory"]
        done = [
            (outcome[0].revision, commit, outcome)
            for commit, outcome in zip(commits, outcomes, strict=True)
            if not isinstance(outcome, errors.PreconditionError)
        ]
        # What was there between the commits; a refusal must be about one of these, and never about a part of a commit.
        between = [self.model]
        for _, commit, records in sorted(done, key=lambda entry: entry[0]):
            self.take(commit, records)
            between.append(self.model)
        for commit, outcome in zip(commits, outcomes, strict=True):
            if isinstance(outcome, errors.PreconditionError):
                assert verdict(outcome) in [commit.refusal(version) for version in between], (commit, outcome)

    @stateful.rule(namespace=scopes, back=st.integers(0, 6), limit=st.none() | st.integers(1, 3))
    def list(self, namespace: str | None, back: int, limit: int | None) -> None:
        """Pages of every recent revision, whole and filtered, add up to what was there then."""
        for revision in range(max(self.revision - back, 1), self.revision + 1):
            for resource in RESOURCES:
                for where in (None, _is_odd):
                    self.list_one(Query(resource, namespace, revision, limit, where))

    def list_one(self, query: "Query") -> None:
        resource, namespace, revision, limit, where = query
        want = sorted(
            (
                item
                for item in self.versions[revision].values()
                if item.key.resource == resource
                and namespace in (None, item.key.namespace)
                and (where is None or where(item))
            ),
            key=in_order,
        )
        for objects in self.stores.values():
            if revision < self.compacted:
                with pytest.raises(errors.GoneError):
                    objects.list(resource, namespace, revision=revision)
                continue
            found: list[store.Record] = []
            after: store.Key | None = None
            while True:
                page = objects.list(resource, namespace, revision=revision, limit=limit, after=after, where=where)
                found += page.records
                after = page.after
                assert page.revision == revision
                if where is None:
                    assert page.remaining == len(want) - len(found)
                if after is None:
                    break
            assert [seen(item) for item in found] == want

    @stateful.rule(resource=resources, namespace=scopes, back=backs)
    def follow(self, resource: str, namespace: str | None, back: int) -> None:
        after = max(self.revision - back, 1)
        watches: dict[str, store.Watch] = {}
        for name, objects in self.stores.items():
            try:
                watches[name] = objects.watch(resource, namespace, after=after)
            except errors.GoneError:
                assert after < self.compacted
            else:
                assert after >= self.compacted
        if watches:
            self.followers.append(Follower(resource, namespace, watches, after))

    @stateful.precondition(lambda self: self.followers)
    @stateful.rule(data=st.data())
    def read_on(self, data: st.DataObject) -> None:
        follower = self.followers.pop(data.draw(st.integers(0, len(self.followers) - 1)))
        # The event of revision r is the one at r - 2, because the first write gets revision 2.
        want = [
            (change, item)
            for change, item in self.events[follower.after - 1 :]
            if item.key.resource == follower.resource and follower.namespace in (None, item.key.namespace)
        ]
        gone = False
        for watch in follower.watches.values():
            if follower.after < self.compacted:
                gone = self.run(_is_gone(watch))
                assert gone
                continue
            got: Sequence[store.Event] = self.run(_read(watch, len(want)))
            assert [(event.change, seen(event.record)) for event in got] == want
            assert watch.revision == self.revision
        if not gone:
            self.followers.append(follower._replace(after=self.revision))

    @stateful.rule(back=st.integers(0, 12))
    def compact(self, back: int) -> None:
        revision = max(self.revision - back, 1)
        for objects in self.stores.values():
            self.run(objects.compact(revision))
        self.compacted = max(self.compacted, revision)

    @stateful.rule()
    def restart(self) -> None:
        self.run(self.stores["sqlite"].close())
        self.stores["sqlite"] = self.run(store.SqliteStore.open(self.path))
        kept = []
        for follower in self.followers:
            if follower.after >= self.compacted:
                resumed = self.stores["sqlite"].watch(follower.resource, follower.namespace, after=follower.after)
                kept.append(follower._replace(watches={**follower.watches, "sqlite": resumed}))
        self.followers = kept

    @stateful.invariant()
    def objects_are_those_of_the_model(self) -> None:
        for objects in self.stores.values():
            assert (objects.revision, objects.compacted) == (self.revision, self.compacted)
            for resource in RESOURCES:
                for namespace in NAMESPACES:
                    for name in NAMES:
                        key = store.Key(resource, namespace, name)
                        found = objects.get(key)
                        assert (None if found is None else seen(found)) == self.model.get(key)


async def _is_gone(watch: store.Watch) -> bool:
    try:
        await watch.batch()
    except errors.GoneError:
        return True
    return False


async def _read(watch: store.Watch, count: int) -> Sequence[store.Event]:
    return [await anext(watch) for _ in range(count)]


TestStoreModel = StoreMachine.TestCase
TestStoreModel.settings = hypothesis.settings(max_examples=30, stateful_step_count=40)
