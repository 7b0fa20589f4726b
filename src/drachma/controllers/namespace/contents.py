"""Everything in a namespace: deleting it, and what is left of it.

Pods go first and everything else waits for them, so that nothing they use is taken from under them. Deleting is
repeated until nothing remains; what has finalizers or a grace period takes its time.
"""

import datetime as dt
from collections import Counter
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.api import meta, pod
from drachma.claims import podstate
from drachma.client import Client, Selection, target

_FINALIZER_SECONDS: Final = 15
"""How long objects with finalizers may take, for want of knowing better."""

_NOT_SERVED: Final = (404, 405)


class Remains(msgspec.Struct):
    """What is left of a namespace, why, and for how many seconds that is to be expected."""

    seconds: int = 0
    counts: dict[str, int] = {}
    finalizers: Counter[str] = msgspec.field(default_factory=Counter)
    discovery_problem: str = ""
    problems: list[str] = []

    @property
    def is_failed(self) -> bool:
        return bool(self.problems or self.discovery_problem)

    @property
    def is_empty(self) -> bool:
        return not self.counts


class Contents:
    """The contents of namespaces on one server."""

    def __init__(self, client: Client) -> None:
        self._client: Final = client

    async def delete(self, namespace: str, *, deleted_for: dt.timedelta) -> Remains:
        """Deletes what is there, and tells what remains; ``deleted_for`` is for how long the namespace has been going.

        What fails for one kind is told in the answer and does not hold up others.
        """
        remains = Remains()
        try:
            found = [each for each in await self._client.resources() if each.namespaced]
        except errors.DrachmaError as error:
            remains.discovery_problem = str(error)
            return remains
        pods = [each for each in found if each.qualified == "pods"]
        others = [each for each in found if each.qualified != "pods"]
        for each in pods:
            grace = await self._grace_of_pods(namespace)
            # The time they had counts from when the namespace was deleted; after that they are overdue.
            await self._delete_kind(each, namespace, remains, grace=grace if deleted_for.total_seconds() < grace else 0)
        if remains.is_empty and not remains.problems:
            for each in others:
                await self._delete_kind(each, namespace, remains, grace=0)
        return remains

    async def _delete_kind(self, kind: target.Target[Any], namespace: str, remains: Remains, *, grace: int) -> None:
        try:
            await self._delete_all(kind, namespace)
            left = (await self._client.list(kind, Selection(namespace))).items
        except errors.DrachmaError as error:
            if not _is_not_served(error):
                remains.problems.append(str(error))
            return
        if not left:
            return
        remains.counts[f"{kind.plural}.{kind.group}"] = len(left)
        held = Counter(finalizer for each in left for finalizer in each.metadata.finalizers)
        remains.finalizers.update(held)
        if grace or held:
            remains.seconds = max(remains.seconds, grace or _FINALIZER_SECONDS)
        else:
            where = f"{kind.group}/{kind.versions[0]}, Resource={kind.plural}"
            remains.problems.append(f"unexpected items still remain in namespace: {namespace} for gvr: {where}")

    async def _delete_all(self, kind: target.Target[Any], namespace: str) -> None:
        try:
            await self._client.delete_collection(kind, Selection(namespace), propagation="Background")
        except errors.RefusedError as error:
            if not _is_not_served(error):
                raise
            for each in (await self._client.list(kind, Selection(namespace))).items:
                await self._delete_one(kind, each)

    async def _delete_one(self, kind: target.Target[Any], known: meta.Object) -> None:
        try:
            await self._client.delete(
                kind, known.metadata.name, namespace=known.metadata.namespace, propagation="Background"
            )
        except errors.RefusedError as error:
            if not _is_not_served(error):
                raise

    async def _grace_of_pods(self, namespace: str) -> int:
        listed = (await self._client.list(pod.Pod, Selection(namespace))).items
        running = [each for each in listed if not podstate.has_ended(each)]
        return max((each.spec.termination_grace_period_seconds or 0 for each in running), default=0)


def _is_not_served(error: errors.DrachmaError) -> bool:
    return isinstance(error, errors.RefusedError) and error.code in _NOT_SERVED
