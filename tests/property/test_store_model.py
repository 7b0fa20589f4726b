"""Both stores against a dictionary: any sequence of writes, lists, watches, compactions and restarts."""

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

    def run(self, objects: store.Store) -> Coroutine[Any, Any, store.Record]:
        if self.verb == "create":
            return objects.create(self.key, store.fixed(self.data), uid=self.uid or "")
        if self.verb == "update":
            return objects.update(self.key, store.fixed(self.data), revision=self.revision or 0)
        return objects.delete(self.key, revision=self.revision, uid=self.uid)

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

    def take(self, write: Write) -> None:
        changed = dict(self.model)
        self.events.append(write.apply(changed, self.revision + 1))
        self.versions.append(changed)

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

    @stateful.rule(data=st.data())
    def write(self, data: st.DataObject) -> None:
        write = self.draw_write(data)
        want = write.refusal(self.model)
        for name, objects in self.stores.items():
            result = self.run(_outcome(write.run(objects)))
            if isinstance(result, store.Record):
                assert (want, result.revision) == (None, self.revision + 1), (name, write)
            else:
                assert type(result) is want, (name, write)
        if want is None:
            self.take(write)

    @stateful.rule(data=st.data(), count=st.integers(2, 8))
    def write_at_once(self, data: st.DataObject, count: int) -> None:
        """Concurrent writes come out as if done one after the other, and the same in both stores."""
        writes = [self.draw_write(data) for _ in range(count)]

        async def all_at_once(objects: store.Store) -> list[store.Record | BaseException]:
            return await asyncio.gather(*(write.run(objects) for write in writes), return_exceptions=True)

        outcomes = {name: self.run(all_at_once(objects)) for name, objects in self.stores.items()}
        assert len({tuple(map(_verdict, results)) for results in outcomes.values()}) == 1, outcomes
        results = outcomes["memory"]
        first = self.revision
        done = [
            (result.revision, write)
            for result, write in zip(results, writes, strict=True)
            if isinstance(result, store.Record)
        ]
        for revision, write in sorted(done):
            assert revision == self.revision + 1
            assert write.refusal(self.model) is None
            self.take(write)
        for result, write in zip(results, writes, strict=True):
            if not isinstance(result, store.Record):
                reasons = {write.refusal(version) for version in self.versions[first:]}
                assert type(result) in reasons, (write, result)

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


def _verdict(result: store.Record | BaseException) -> object:
    return seen(result) if isinstance(result, store.Record) else type(result)


async def _outcome(write: Coroutine[Any, Any, store.Record]) -> store.Record | errors.StoreError:
    try:
        return await write
    except errors.StoreError as error:
        return error


async def _is_gone(watch: store.Watch) -> bool:
    try:
        await watch.batch()
    except errors.GoneError:
        return True
    return False


async def _read(watch: store.Watch, count: int) -> Sequence[store.Event]:
    return [await anext(watch) for _ in range(count)]


TestStoreModel = StoreMachine.TestCase
TestStoreModel.settings = hypothesis.settings(max_examples=30, stateful_step_count=40, deadline=None)
