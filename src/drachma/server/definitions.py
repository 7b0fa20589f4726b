"""What the server does about custom resource definitions by itself: names, conditions, and cleaning up behind them.

Whenever one is written, and before whoever wrote it is answered, its names are accepted if nobody else has them, and it
is established: from then on its kind is served. One that is deleted stays until its objects are gone, which are deleted
in the background; what a server that stops leaves undone, the next one does.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma.api import meta
from drachma.server import mediatypes, status
from drachma.server.calls.call import Body, Call, Target
from drachma.server.kinds.apiextensions import customresourcedefinition, extensions, naming
from drachma.server.pipeline.dispatcher import Dispatcher
from drachma.server.surface import resources, verbs
from drachma.server.user import User
from drachma.store import record

_log = logging.getLogger(__name__)

_SERVER: Final = User(name="system:apiserver", groups=("system:masters",))
_AGENT: Final = "kube-apiserver"
_DELETE: Final = msgspec.json.encode({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"})


class Definitions:
    """Looks after definitions; made once for a dispatcher, which tells it of every write to one."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher: Final = dispatcher
        self._store: Final = dispatcher.services.store
        self._turn: Final = asyncio.Lock()
        self._settling: asyncio.Task[Any] | None = None
        self._cleaning: Final[dict[str, asyncio.Task[None]]] = {}
        self._served: dict[str, resources.Resource] = {}
        dispatcher.after[extensions.KEY] = self.settle

    async def settle(self) -> None:
        """Brings the status of all definitions up to date, and starts to clean up behind those that are deleted."""
        task = asyncio.current_task()
        if self._settling is task:
            # Its own writes are followed, too.
            return
        async with self._turn:
            self._settling = task
            try:
                for _ in range(2):
                    # What one definition gives up another may want.
                    for stored in self._definitions():
                        await self._settle(stored)
            finally:
                self._settling = None
            self._end_watches()

    def _end_watches(self) -> None:
        """Ends the watches of kinds that have gone or changed: what they would show is no longer what is served."""
        before = self._served
        surface = self._dispatcher.surface
        self._served = {each.key: each for each in surface.resources if each.traits.is_custom}
        for key, resource in before.items():
            if self._served.get(key) is not resource:
                self._dispatcher.services.watches.end(resource)

    async def idle(self) -> None:
        """Returns once nothing is being cleaned up any more."""
        while self._cleaning:
            await asyncio.wait(list(self._cleaning.values()))

    def _definitions(self) -> Sequence[record.Record]:
        return self._store.list(extensions.KEY).records

    async def _settle(self, stored: record.Record) -> None:
        document = stored.value
        others = (each.value for each in self._definitions() if each.key != stored.key)
        now = meta.time_text(self._dispatcher.services.clock())
        wanted = naming.settled(document, others, now=now)
        if wanted is not None:
            await self._write(stored.key.name, {**document, "status": wanted})
        if "deletionTimestamp" in document["metadata"] and stored.key.name not in self._cleaning:
            self._clean(stored.key.name)

    # Cleaning up

    def _clean(self, name: str) -> None:
        task = asyncio.get_running_loop().create_task(self._clean_up(name), name=f"clean up behind {name}")
        self._cleaning[name] = task
        task.add_done_callback(lambda _task: self._cleaning.pop(name, None))

    async def _clean_up(self, name: str) -> None:
        """Deletes the objects of a definition, and then lets go of it; comes again when the last of them goes."""
        stored = self._store.get(record.Key(extensions.KEY, "", name))
        if stored is None or customresourcedefinition.FINALIZER not in stored.value["metadata"].get("finalizers", ()):
            return
        try:
            await self._delete_objects(stored.value)
        except status.StatusError as error:
            _log.warning("definition %s: its objects cannot be deleted: %s", name, error)

    async def _delete_objects(self, definition: Mapping[str, Any]) -> None:
        name = definition["metadata"]["name"]
        if not customresourcedefinition.is_established(definition):
            await self._finish(name, naming.terminating("False", "NeverEstablished", "resource was never established"))
            return
        key = f"{definition['spec']['group']}/{definition['spec']['names']['plural']}"
        progress = naming.terminating("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
        await self._set(name, progress)

        async def again() -> None:
            if not self._store.list(key, limit=1).records and name not in self._cleaning:
                self._clean(name)

        self._dispatcher.after[key] = again
        for each in self._store.list(key).records:
            if "deletionTimestamp" not in each.value["metadata"]:
                await self._delete(key, each)
        if not self._store.list(key, limit=1).records:
            self._dispatcher.after.pop(key, None)
            done = naming.terminating("False", "InstanceDeletionCompleted", "removed all instances")
            await self._finish(name, done)

    async def _delete(self, key: str, stored: record.Record) -> None:
        surface = self._dispatcher.surface
        resource = next((each for each in surface.resources if each.key == key), None)
        if resource is None:
            return
        target = Target(resource, resource.versions[0], stored.key.namespace, stored.key.name, None)
        call = Call(
            user=_SERVER,
            verb=verbs.DELETE,
            surface=surface,
            target=target,
            body=Body(_DELETE, mediatypes.JSON),
            user_agent=_AGENT,
        )
        try:
            await self._dispatcher.dispatch(call)
        except status.StatusError as error:
            if error.reason != "NotFound":
                raise

    async def _set(self, name: str, condition: Mapping[str, Any], *, finalizers: Sequence[str] | None = None) -> None:
        stored = self._store.get(record.Key(extensions.KEY, "", name))
        if stored is None:
            return
        document = dict(stored.value)
        current = document.get("status") or {}
        now = meta.time_text(self._dispatcher.services.clock())
        conditions = naming.with_condition(current.get("conditions") or (), condition, now=now)
        document["status"] = {**current, "conditions": conditions}
        if finalizers is not None:
            document["metadata"] = {**document["metadata"], "finalizers": list(finalizers)}
        await self._write(name, document)

    async def _finish(self, name: str, condition: Mapping[str, Any]) -> None:
        """Takes the finalizer, and with it the definition where it was the last."""
        stored = self._store.get(record.Key(extensions.KEY, "", name))
        if stored is not None:
            finalizers = stored.value["metadata"].get("finalizers", ())
            rest = [each for each in finalizers if each != customresourcedefinition.FINALIZER]
            await self._set(name, condition, finalizers=rest)

    async def _write(self, name: str, document: Mapping[str, Any]) -> None:
        surface = self._dispatcher.surface
        resource = surface.find("apiextensions.k8s.io", "v1", plural="customresourcedefinitions")
        assert resource is not None, "definitions are served"
        call = Call(
            user=_SERVER,
            verb=verbs.UPDATE,
            surface=surface,
            target=Target(resource, "v1", "", name, resource.subresource("status")),
            body=Body(msgspec.json.encode(document), mediatypes.JSON),
            user_agent=_AGENT,
        )
        try:
            await self._dispatcher.dispatch(call)
        except status.StatusError as error:
            # Whoever changed or deleted it in the meantime has it looked at again.
            if error.reason not in ("NotFound", "Conflict"):
                raise
