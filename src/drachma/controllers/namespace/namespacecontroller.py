"""The controller: namespaces that are being deleted are emptied until nothing is left in them, then finalized."""

import datetime as dt
import logging
from typing import Any, Final

from drachma import errors
from drachma.api import namespace, pod
from drachma.claims import wellknown
from drachma.client.protocol import Document
from drachma.controllers.namespace import conditions, contents
from drachma.runtime import Surroundings, controller, informer, workqueue

WORKERS: Final = 10
"""In the spec of every namespace: the part of its end that is done here."""

SETTLING_SECONDS: Final = 5.0
"""For so long other API servers of a cluster may still let new objects in."""

_LONGEST_PAUSE: Final = 60.0

_log = logging.getLogger(__name__)


class NamespaceController:
    """Empties namespaces. One API server in this process needs no time to settle, and whoever knows that says so."""

    name: Final = "namespace"

    def __init__(self, surroundings: Surroundings, *, settling_seconds: float = SETTLING_SECONDS) -> None:
        self._client: Final = surroundings.client
        self._clock: Final = surroundings.clock
        self._settling: Final = settling_seconds
        self._contents: Final = contents.Contents(surroundings.client)
        self._queue: Final[workqueue.Queue[str]] = workqueue.Queue(
            self.name,
            time=surroundings.clock,
            measured=surroundings.queues,
            retries=workqueue.Retries(maximum=_LONGEST_PAUSE),
        )
        namespaces = surroundings.informers.of(namespace.Namespace)
        namespaces.add_handler(informer.Handler(added=self._see, updated=lambda _, new: self._see(new)))
        self._namespaces: Final = namespaces.cache
        pods = surroundings.informers.of(pod.Pod)
        pods.add_handler(informer.Handler(deleted=self._see_pod_gone))
        self._pods: Final = pods.cache

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    def _see(self, new: namespace.Namespace) -> None:
        if new.metadata.deletion_timestamp is not None:
            self._queue.add_after(new.metadata.name, self._settling)

    def _see_pod_gone(self, gone: pod.Pod) -> None:
        """The last pod of a namespace that waits for its pods is gone: there is nothing more to wait for."""
        subject = self._namespaces.get(gone.metadata.namespace)
        if subject is None or subject.metadata.deletion_timestamp is None:
            return
        deleted_for = self._clock.utc() - subject.metadata.deletion_timestamp
        if deleted_for.total_seconds() >= self._settling and not self._pods.in_namespace(subject.metadata.name):
            self._queue.hasten(subject.metadata.name)

    async def _reconcile(self, name: str) -> controller.After | None:
        try:
            return await self._end(name)
        except errors.ObjectNotFoundError:
            return None

    async def _end(self, name: str) -> controller.After | None:
        subject = await self._client.get(namespace.Namespace, name)
        if subject.metadata.deletion_timestamp is None:
            return None
        if subject.status.phase != "Terminating":
            document = await self._client.get_document(namespace.Namespace, name)
            await self._write_status(document, {"phase": "Terminating"})
        if not subject.spec.finalizers:
            return None
        deleted_for = self._clock.utc() - subject.metadata.deletion_timestamp
        remains = await self._delete_contents(subject, deleted_for)
        if remains.is_failed:
            what = "; ".join((*remains.problems, remains.discovery_problem)).rstrip("; ")
            raise errors.ReconcileError(f"contents could not be deleted: {what}")
        if not remains.is_empty:
            return controller.After(remains.seconds // 2 + 1)
        await self._finalize(name)
        return None

    async def _delete_contents(self, subject: namespace.Namespace, deleted_for: dt.timedelta) -> contents.Remains:
        remains = await self._contents.delete(subject.metadata.name, deleted_for=deleted_for)
        document = await self._client.get_document(namespace.Namespace, subject.metadata.name)
        current: list[Any] = (document.get("status") or {}).get("conditions") or []
        new_conditions = conditions.updated(current, remains, now=self._clock.utc())
        if new_conditions != current and document["metadata"]["uid"] == subject.metadata.uid:
            try:
                await self._write_status(document, {"conditions": new_conditions})
            except errors.ObjectConflictError as error:
                # Only people read them, and the next round writes them again.
                _log.debug("%s: %s: conditions not written: %s", self.name, subject.metadata.name, error)
        return remains

    async def _write_status(self, document: Document, content: dict[str, Any]) -> None:
        """Writes on the version that was read; upstream's role may update, not patch."""
        status = {**(document.get("status") or {}), **content}
        await self._client.update_document(namespace.Namespace, {**document, "status": status}, subresource="status")

    async def _finalize(self, name: str) -> None:
        document = await self._client.get_document(namespace.Namespace, name)
        if "deletionTimestamp" not in document["metadata"]:
            return
        document["spec"]["finalizers"] = [
            each for each in document["spec"]["finalizers"] if each != wellknown.NAMESPACE_FINALIZER
        ]
        await self._client.update_document(namespace.Namespace, document, subresource="finalize")
