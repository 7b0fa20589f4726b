"""Lifecycle of custom resource definitions: names, conditions, and removal of their objects.

After every write of a definition, and before the writer is answered, its names are accepted if they are free, and it is
established: from then on its kind is served. Large definitions are decided and made into kinds in threads. A deleted
definition stays until its objects are removed in the background. A server that starts completes what an earlier one
left.
"""

import asyncio
import functools
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from drachma.api import meta
from drachma.server import lanes, mediatypes, status
from drachma.server.calls.call import Body, Call, Target
from drachma.server.kinds.apiextensions import customresourcedefinition, extensions, naming
from drachma.server.pipeline.desk import Desks
from drachma.server.pipeline.dispatcher import Dispatcher
from drachma.server.surface import resources, verbs
from drachma.server.user import User
from drachma.store import record

_log = logging.getLogger(__name__)

_SERVER: Final = User(name="system:apiserver", groups=("system:masters",))
_AGENT: Final = "kube-apiserver"
_DELETE: Final = msgspec.json.encode({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"})


class Definitions:
    """Maintains the definitions of a dispatcher, which reports every write of one."""

    def __init__(
        self, dispatcher: Dispatcher, kinds: extensions.Extensions, *, desks: Desks, lanes: lanes.Lanes
    ) -> None:
        """``kinds`` are the kinds of the dispatcher's definitions."""
        self._dispatcher: Final = dispatcher
        self._kinds: Final = kinds
        self._desks: Final = desks
        self._lanes: Final = lanes
        self._store: Final = dispatcher.services.store
        self._turn: Final = asyncio.Lock()
        self._settling: asyncio.Task[Any] | None = None
        self._cleaning: Final[dict[str, asyncio.Task[None]]] = {}
        self._served: dict[str, resources.Resource] = {}
        dispatcher.after[extensions.KEY] = self.settle

    async def settle(self) -> None:
        """Update the status of all definitions, and start to remove the objects of deleted ones."""
        task = asyncio.current_task()
        if self._settling is task:
            # The writes of this method also call it.
            return
        async with self._turn:
            self._settling = task
            try:
                for _ in range(2):
                    # A name that one definition gives up may be free for another.
                    for definition in self._definitions():
                        await self._settle(definition)
                await self._make_kinds()
            finally:
                self._settling = None
            self._end_watches()

    async def _make_kinds(self) -> None:
        """Make the kinds of large definitions."""
        while unmade := self._kinds.unmade():
            for entry in unmade:
                lane = self._lanes.of(len(entry.data)) or self._lanes.costly
                self._kinds.add(await lane.run(functools.partial(extensions.MadeKind, entry)))

    def _end_watches(self) -> None:
        """End the watches of kinds that are gone or have changed."""
        before = self._served
        surface = self._dispatcher.surface
        self._served = {each.key: each for each in surface.resources if each.traits.is_custom}
        for key, resource in before.items():
            if self._served.get(key) is not resource:
                self._dispatcher.services.watches.end(resource)

    async def idle(self) -> None:
        """Return once no objects are being removed."""
        while self._cleaning:
            await asyncio.wait(list(self._cleaning.values()))

    def _definitions(self) -> Sequence[record.Record]:
        return self._store.list(extensions.KEY).records

    async def _settle(self, definition: record.Record) -> None:
        document = definition.value
        other_definitions = (each.value for each in self._definitions() if each.key != definition.key)
        now = meta.time_text(self._dispatcher.services.clock())
        new_status = naming.desired_status(document, other_definitions, now=now)
        if new_status is not None:
            await self._write(definition.key.name, {**document, "status": new_status})
        if "deletionTimestamp" in document["metadata"] and definition.key.name not in self._cleaning:
            self._clean(definition.key.name)

    # Cleaning up

    def _clean(self, name: str) -> None:
        task = asyncio.get_running_loop().create_task(self._clean_up(name), name=f"clean up behind {name}")
        self._cleaning[name] = task
        task.add_done_callback(lambda _task: self._cleaning.pop(name, None))

    async def _clean_up(self, name: str) -> None:
        """Delete the objects of a definition, then its finalizer; runs again when the last object is removed."""
        definition = self._store.get(record.Key(extensions.KEY, "", name))
        if definition is None or customresourcedefinition.FINALIZER not in definition.value["metadata"].get(
            "finalizers", ()
        ):
            return
        try:
            await self._delete_objects(definition.value)
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

    async def _delete(self, key: str, custom_object: record.Record) -> None:
        surface = self._dispatcher.surface
        resource = next((each for each in surface.resources if each.key == key), None)
        if resource is None:
            return
        target = Target(resource, resource.versions[0], custom_object.key.namespace, custom_object.key.name, None)
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
        definition = self._store.get(record.Key(extensions.KEY, "", name))
        if definition is None:
            return
        document = dict(definition.value)
        current = document.get("status") or {}
        now = meta.time_text(self._dispatcher.services.clock())
        conditions = naming.with_condition(current.get("conditions") or (), condition, now=now)
        document["status"] = {**current, "conditions": conditions}
        if finalizers is not None:
            document["metadata"] = {**document["metadata"], "finalizers": list(finalizers)}
        await self._write(name, document)

    async def _finish(self, name: str, condition: Mapping[str, Any]) -> None:
        """Remove the finalizer, and with the last one the definition."""
        definition = self._store.get(record.Key(extensions.KEY, "", name))
        if definition is not None:
            finalizers = definition.value["metadata"].get("finalizers", ())
            other_finalizers = [each for each in finalizers if each != customresourcedefinition.FINALIZER]
            await self._set(name, condition, finalizers=other_finalizers)

    async def _write(self, name: str, document: Mapping[str, Any]) -> None:
        surface = self._dispatcher.surface
        resource = surface.find("apiextensions.k8s.io", "v1", plural="customresourcedefinitions")
        assert resource is not None, "the kind of definitions is served"
        call = Call(
            user=_SERVER,
            verb=verbs.UPDATE,
            surface=surface,
            target=Target(resource, "v1", "", name, resource.subresource("status")),
            body=Body(msgspec.json.encode(document), mediatypes.JSON),
            user_agent=_AGENT,
        )
        try:
            await self._dispatcher.dispatch(call, self._desks)
        except status.StatusError as error:
            # A concurrent change or deletion has triggered another pass.
            if error.reason not in ("NotFound", "Conflict"):
                raise
