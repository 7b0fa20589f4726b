"""The controller: deletes the contents of namespaces that are being deleted, then finalizes them."""

import datetime as dt
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.api import namespace, pod
from drachma.claims import conditions, wellknown
from drachma.controllers import objectwrites
from drachma.controllers.namespace import contents
from drachma.runtime import Surroundings, controller, informer, workqueue

WORKERS: Final = 10

SETTLING_SECONDS: Final = 5.0
"""Seconds for which other API servers of a cluster may still accept new objects."""

_LONGEST_PAUSE: Final = 60.0

_log = logging.getLogger(__name__)


class NamespaceController:
    """Empties namespaces. ``settling_seconds`` is zero for a single API server in this process."""

    name: Final = "namespace"

    def __init__(self, surroundings: Surroundings, *, settling_seconds: float = SETTLING_SECONDS) -> None:
        self._clock: Final = surroundings.clock
        self._settling: Final = settling_seconds
        self._contents: Final = contents.Contents(surroundings.client)
        self._queue: Final[workqueue.Queue[str]] = workqueue.Queue(
            self.name,
            clock=surroundings.clock,
            metrics=surroundings.queues,
            retries=workqueue.Retries(maximum=_LONGEST_PAUSE),
        )
        namespaces = surroundings.informers.of(namespace.Namespace)
        namespaces.add_handler(informer.Handler.on_write(self._enqueue))
        self._namespaces: Final = namespaces.cache
        self._writer: Final = objectwrites.Writer(surroundings.client, namespaces)
        pods = surroundings.informers.of(pod.Pod)
        pods.add_handler(informer.Handler(deleted=self._handle_pod_deletion))
        self._pods: Final = pods.cache

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    def _enqueue(self, new: namespace.Namespace) -> None:
        if new.metadata.deletion_timestamp is not None:
            self._queue.add_after(new.metadata.name, self._settling)

    def _handle_pod_deletion(self, pod: pod.Pod) -> None:
        """Continue at once when the last pod of a namespace is gone."""
        subject = self._namespaces.get(pod.metadata.namespace)
        if subject is None or subject.metadata.deletion_timestamp is None:
            return
        deleted_for = self._clock.utc() - subject.metadata.deletion_timestamp
        if deleted_for.total_seconds() >= self._settling and not self._pods.list_namespace(subject.metadata.name):
            self._queue.hasten(subject.metadata.name)

    async def _reconcile(self, name: str) -> controller.After | None:
        try:
            return await self._end(name)
        except errors.ObjectNotFoundError:
            return None

    async def _end(self, name: str) -> controller.After | None:
        subject = self._namespaces.get(name)
        if subject is None or subject.metadata.deletion_timestamp is None:
            return None
        if subject.status.phase != "Terminating":
            await self._writer.update_status(subject, {"phase": "Terminating"})
        if not subject.spec.finalizers:
            return None
        deleted_for = self._clock.utc() - subject.metadata.deletion_timestamp
        remains = await self._delete_contents(subject, deleted_for)
        if remains.is_failed:
            what = "; ".join((*remains.problems, remains.discovery_problem)).rstrip("; ")
            raise errors.ReconcileError(f"contents could not be deleted: {what}")
        if not remains.is_empty:
            return controller.After(remains.seconds // 2 + 1)
        await self._finalize(subject)
        return None

    async def _delete_contents(self, subject: namespace.Namespace, deleted_for: dt.timedelta) -> contents.Remains:
        remains = await self._contents.delete(subject.metadata.name, deleted_for=deleted_for)
        document = self._writer.document(subject)
        current: list[Any] = (document.get("status") or {}).get("conditions") or []
        new_conditions = updated_conditions(current, remains, now=self._clock.utc())
        if new_conditions != current:
            try:
                await self._writer.update_status(subject, {"conditions": new_conditions})
            except errors.ObjectConflictError as error:
                # Conditions are for users only, and the next round writes them again.
                _log.debug("%s: %s: conditions not written: %s", self.name, subject.metadata.name, error)
        return remains

    async def _finalize(self, subject: namespace.Namespace) -> None:
        document = self._writer.document(subject)
        document["spec"]["finalizers"] = [
            each for each in document["spec"]["finalizers"] if each != wellknown.NAMESPACE_FINALIZER
        ]
        await self._writer.replace(document, subresource="finalize")


# Conditions


class _Fine(NamedTuple):
    reason: str
    message: str


_FINE: Final[Mapping[str, _Fine]] = {
    "NamespaceDeletionDiscoveryFailure": _Fine("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": _Fine(
        "ParsedGroupVersions", "All legacy kube types successfully parsed"
    ),
    "NamespaceDeletionContentFailure": _Fine(
        "ContentDeleted", "All content successfully deleted, may be waiting on finalization"
    ),
    "NamespaceContentRemaining": _Fine("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": _Fine("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


def updated_conditions(
    current: Sequence[Mapping[str, Any]], remains: contents.Remains, *, now: dt.datetime
) -> list[Mapping[str, Any]]:
    """Return the conditions after a round of deleting; those of other types stay."""
    problems = _problems(remains)
    changed: list[Mapping[str, Any]] = list(current)
    for kind, fine in _FINE.items():
        reason, message = problems.get(kind, fine)
        status = "True" if kind in problems else "False"
        condition = conditions.document(kind, status, reason=reason, message=message, now=now)
        changed = conditions.put_document(changed, condition)
    return changed


def _problems(remains: contents.Remains) -> dict[str, tuple[str, str]]:
    """Return reason and message of each problem by type of condition.

    Differs from upstream: remaining pods are reported too, though no other kind was tried yet.
    """
    problems = {}
    if remains.discovery_problem:
        problems["NamespaceDeletionDiscoveryFailure"] = ("DiscoveryFailed", remains.discovery_problem)
    if remains.problems:
        listed = ", ".join(sorted(remains.problems))
        message = f"Failed to delete all resource types, {len(remains.problems)} remaining: {listed}"
        problems["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", message)
    if remains.counts:
        listed = ", ".join(sorted(f"{kind} has {count} resource instances" for kind, count in remains.counts.items()))
        problems["NamespaceContentRemaining"] = ("SomeResourcesRemain", f"Some resources are remaining: {listed}")
    if remains.finalizers:
        finalizers = remains.finalizers.items()
        listed = ", ".join(sorted(f"{finalizer} in {count} resource instances" for finalizer, count in finalizers))
        message = f"Some content in the namespace has finalizers remaining: {listed}"
        problems["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", message)
    return problems
