"""A user's view: informers that read with the user's credentials, and the model that they feed.

The view reads each kind in the whole cluster if the user may, else in the namespaces that the user may read. Every few
seconds it checks again what the user may read. When that changes, everything is forgotten and read again, so that no
page shows an object that its user may no longer read. All browsers of a user share one view.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from drachma import errors
from drachma.api import (
    deviceclass,
    devicetaintrule,
    meta,
    namespace,
    node,
    pod,
    resourceclaim,
    resourceslice,
)
from drachma.client import Selection, http, target
from drachma.queueing.component import resources
from drachma.runtime import Informers, clock, informer
from drachma.runtime.cache import Key
from drachma.values import names
from drachma.web import identities, models, permissions
from drachma.web.devicemap import DeviceMap
from drachma.web.identities import Identity, User
from drachma.web.models import Model
from drachma.web.workshop import Workshop

ObjectT = TypeVar("ObjectT", bound=meta.Object)

KINDS: Final[tuple[target.Of[Any], ...]] = (
    node.Node,
    resourceslice.ResourceSlice,
    resourceclaim.ResourceClaim,
    pod.Pod,
    deviceclass.DeviceClass,
    devicetaintrule.DeviceTaintRule,
    resources.CLUSTER_QUEUES,
    resources.COHORTS,
    resources.LOCAL_QUEUES,
    resources.WORKLOADS,
)
"""Kinds that every view reads."""

_MOST_NAMESPACES: Final = 50
"""Limit for namespaces that are read one by one."""

_READY_SECONDS: Final = 0.4
"""Time that the first page waits for the first objects; later ones arrive as live updates."""

_ENTER_SECONDS: Final = 1.0
"""Time that the first page of a namespace waits for its objects."""

_SAMPLE_SECONDS: Final = 60.0
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"


class Scope(msgspec.Struct, frozen=True):
    """Part of a kind's objects that a user may read."""

    namespaces: tuple[str, ...] = ()
    """Namespaces; ("",) is the whole cluster, and () nothing."""
    refusal: str = ""
    """The API server's message if it is not the whole cluster."""
    is_served: bool = True


Scopes = Mapping[str, Scope]
"""Scopes by the qualified name of the kind."""


class UserView:
    """The cluster as one user reads it."""

    def __init__(self, identity: Identity, *, time: clock.Clock, check_seconds: float) -> None:
        self.identity: Final = identity
        self.client: Final = http.HttpClient(identity.access, clock=time, manager="drachma-dashboard")
        self.user = User("")
        self.model = Model()
        self.device_map = DeviceMap(self.model)
        self.workshop: Final = Workshop(self, time=time)
        self.scopes: Scopes = {}
        self.failure = ""
        """Why the API server does not answer at present."""
        self.is_rejected = False
        """True if the server no longer accepts the credentials."""
        self.is_closed = False
        """True if no page can use the view any more."""
        self.generation = 0
        """Number of times that everything was read anew; deltas of another generation do not apply."""
        self._time: Final = time
        self._check_seconds: Final = check_seconds
        self._namespaces: tuple[str, ...] = (identity.namespace,) if identity.namespace else ()
        self._informers: dict[str, list[informer.Informer[Any]]] = {}
        self._listeners: Final[set[Listener]] = set()
        self._is_ready: Final = asyncio.Event()
        self._again: Final = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Ask the API server who the user is, and begin to read.

        Raises:
            errors.UnauthorizedError: the server does not know the credentials.
            errors.UnreachableError: the server does not answer.
        """
        self.user = await identities.user_of(self.client)
        kind, _, account = self.user.name.rpartition(_SERVICE_ACCOUNT)
        if not kind and ":" in account:
            # The namespace of a service account is the one that it most likely may read.
            self.add_namespace(account.partition(":")[0])
        self._task = asyncio.create_task(self._run(), name=f"view of {self.user.name}")

    async def close(self) -> None:
        """Stop reading, forget everything, and end the streams of open pages."""
        self.is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._announce(models.ACCESS)
        await self.client.close()

    async def wait_ready(self) -> None:
        """Return when the first objects are here, or after a moment."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_READY_SECONDS):
                await self._is_ready.wait()

    async def wait_complete(self) -> None:
        """Return when all first lists are complete."""
        await self._is_ready.wait()

    @property
    def is_loading(self) -> bool:
        """True while first lists are under way."""
        return not self._is_ready.is_set()

    # Namespaces

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Namespaces that are read one by one, because the user may not read the whole cluster."""
        return tuple(sorted({name for scope in self.scopes.values() for name in scope.namespaces if name}))

    def add_namespace(self, name: str) -> None:
        """Read one more namespace, if the user may."""
        if name not in self._namespaces and len(self._namespaces) < _MOST_NAMESPACES:
            self._namespaces = (*self._namespaces, name)
            self._again.set()

    async def enter_namespace(self, name: str, kind: target.Of[Any]) -> None:
        """Read the namespace of a link that the user follows, unless the user may read the kind everywhere.

        The first page that names it waits for its objects, for a moment.
        """
        if self.reads_all(kind) or name in self._namespaces or names.dns1123_label(name):
            return
        generation, listener = self.generation, self.listen()
        self.add_namespace(name)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_ENTER_SECONDS):
                    while models.ACCESS not in await listener.next() or self.generation == generation:
                        pass
        finally:
            listener.close()

    def refusal(self, kind: target.Of[Any]) -> str:
        """Return the server's message if the user may not read all objects of a kind, or an empty text."""
        scope = self.scopes.get(target.of(kind).qualified, Scope())
        return scope.refusal

    def reads_all(self, kind: target.Of[Any]) -> bool:
        """Return True if the user may read a kind in the whole cluster."""
        return self.scopes.get(target.of(kind).qualified, Scope()).namespaces == ("",)

    def find(self, kind: target.Of[ObjectT], key: Key) -> ObjectT | None:
        """Return an object that the view has, or None."""
        for one in self._informers.get(target.of(kind).qualified, ()):
            cached: ObjectT | None = one.cache.get(key.name, namespace=key.namespace)
            if cached is not None:
                return cached
        return None

    def objects(self, kind: target.Of[Any]) -> list[meta.Object]:
        """Return the objects of a kind that the view has."""
        return [each for one in self._informers.get(target.of(kind).qualified, ()) for each in one.cache]

    # Reading

    async def _run(self) -> None:
        sampling = asyncio.create_task(self._sample())
        try:
            while True:
                try:
                    scopes = await self._find_scopes()
                    while True:
                        self.scopes = scopes
                        scopes = await self._read(scopes)
                except (errors.UnauthorizedError, errors.AccessError) as error:
                    self.is_rejected = True
                    self.failure = str(error)
                    return
                except errors.DrachmaError as error:
                    self._forget()
                    self._fail(str(error))
                    await self._wait_for_check()
        finally:
            sampling.cancel()
            self._forget()
            self._announce(models.ACCESS)

    def _forget(self) -> None:
        self.model = Model()
        self.device_map = DeviceMap(self.model)
        self._informers = {}

    async def _sample(self) -> None:
        await self._is_ready.wait()
        self.model.reconstruct(self._time.utc())
        while True:
            self.model.sample(self._time.utc())
            await self._time.sleep(_SAMPLE_SECONDS)

    async def _read(self, scopes: Scopes) -> Scopes:
        """Read what scopes allow until they change. Return the new ones."""
        self.generation += 1
        history = self.model.history
        self._forget()
        self.model.history.extend(history)
        async with Informers(self.client, clock=self._time) as informers:
            for kind in KINDS:
                resource = target.of(kind)
                scope = scopes[resource.qualified]
                for name in scope.namespaces:
                    one = informers.of(resource, Selection(name))
                    self._informers.setdefault(resource.qualified, []).append(one)
                    one.add_handler(informer.Handler.on_write(self._put, deleted=self._drop))
            syncing = asyncio.create_task(self._note_synced(informers))
            try:
                while True:
                    await self._wait_for_check()
                    new = await self._find_scopes()
                    if new != scopes:
                        return new
            finally:
                syncing.cancel()

    async def _note_synced(self, informers: Informers) -> None:
        await informers.wait_synced()
        self._is_ready.set()
        self._announce(models.ACCESS)

    async def _wait_for_check(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._check_seconds):
                await self._again.wait()
        self._again.clear()

    async def _find_scopes(self) -> Scopes:
        """Return what the user may read now. Keeps asking while the server does not answer."""
        while True:
            try:
                namespaces = await self._find_namespaces()
                scopes = await asyncio.gather(*(self._find_scope(target.of(kind), namespaces) for kind in KINDS))
            except (errors.UnreachableError, errors.ServerFaultError, errors.ThrottledError) as error:
                self._fail(str(error))
                await self._wait_for_check()
                continue
            self._fail("")
            return {target.of(kind).qualified: scope for kind, scope in zip(KINDS, scopes, strict=True)}

    def _fail(self, message: str) -> None:
        if message != self.failure:
            self.failure = message
            self._announce(models.ACCESS)

    async def _find_namespaces(self) -> Sequence[str]:
        try:
            page = await self.client.list(namespace.Namespace, limit=_MOST_NAMESPACES)
        except errors.ForbiddenError:
            return self._namespaces
        listed = [each.metadata.name for each in page.items]
        return [*self._namespaces, *(name for name in listed if name not in self._namespaces)][:_MOST_NAMESPACES]

    async def _find_scope(self, resource: target.Target[Any], namespaces: Sequence[str]) -> Scope:
        try:
            await self.client.list(resource, limit=1)
            if await permissions.may(self.client, "watch", resource):
                return Scope(("",))
            refusal = f"{resource.qualified}: you may list them, and not watch them"
        except errors.ObjectNotFoundError:
            return Scope(is_served=False)
        except errors.ForbiddenError as error:
            refusal = str(error)
        if not resource.namespaced:
            return Scope((), refusal)
        answers = await asyncio.gather(*(self._may_list(resource, name) for name in namespaces))
        return Scope(tuple(name for name, may in zip(namespaces, answers, strict=True) if may), refusal)

    async def _may_list(self, resource: target.Target[Any], name: str) -> bool:
        try:
            await self.client.list(resource, Selection(name), limit=1)
        except (errors.ForbiddenError, errors.ObjectNotFoundError, errors.InvalidValueError):
            return False
        return await permissions.may(self.client, "watch", resource, namespace=name)

    def _put(self, new: meta.Object) -> None:
        self._announce(*self.model.put(new))

    def _drop(self, deleted: meta.Object) -> None:
        self._announce(*self.model.drop(deleted))

    # Listening

    def listen(self) -> Listener:
        """Return a new listener of an open page; close it at the end."""
        listener = Listener(self._listeners.discard)
        self._listeners.add(listener)
        return listener

    @property
    def open_pages(self) -> int:
        """Number of open pages."""
        return len(self._listeners)

    def _announce(self, *topics: str) -> None:
        for listener in self._listeners:
            listener.note(topics)


class Listener:
    """Topics that changed since an open page was told last. Its size is bounded by the number of topics."""

    def __init__(self, end: Callable[[Listener], None]) -> None:
        self._end: Final = end
        self._topics: Final[set[str]] = set()
        self._changed: Final = asyncio.Event()

    def note(self, topics: Sequence[str]) -> None:
        """Remember topics until the page is told."""
        if topics:
            self._topics.update(topics)
            self._changed.set()

    async def next(self) -> list[str]:
        """Return the topics that changed, once there are any."""
        await self._changed.wait()
        return self.take()

    def take(self) -> list[str]:
        """Return the topics that changed since the last call."""
        topics = sorted(self._topics)
        self._topics.clear()
        self._changed.clear()
        return topics

    def close(self) -> None:
        """Forget the page."""
        self._end(self)
