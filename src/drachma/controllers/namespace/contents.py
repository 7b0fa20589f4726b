"""Contents of a namespace: deleting them, and counting the rest.

Pods are deleted first and all other objects wait for them, so that pods keep the objects that they use. Deletion is
repeated until nothing remains, because finalizers and grace periods take time.
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
"""Estimated time for objects with finalizers."""

_NOT_SERVED: Final = (404, 405)


class Remains(msgspec.Struct):
    """Remaining objects of a namespace, the reasons, and the seconds to wait for them."""

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
    """Contents of namespaces on one server."""

    def __init__(self, client: Client) -> None:
        self._client: Final = client

    async def delete(self, namespace: str, *, deleted_for: dt.timedelta) -> Remains:
        """Delete the contents of a namespace. Return what remains. ``deleted_for`` is the time since its deletion.

        A failure for one kind is part of the result and does not stop the others.
        """
        remains = Remains()
        try:
            kinds = [each for each in await self._client.resources() if each.namespaced]
        except errors.DrachmaError as error:
            remains.discovery_problem = str(error)
            return remains
        pods = [each for each in kinds if each.qualified == "pods"]
        other_kinds = [each for each in kinds if each.qualified != "pods"]
        for each in pods:
            grace = await self._grace_of_pods(namespace)
            # The grace period counts from the deletion of the namespace.
            await self._delete_kind(each, namespace, remains, grace=grace if deleted_for.total_seconds() < grace else 0)
        if remains.is_empty and not remains.problems:
            for each in other_kinds:
                await self._delete_kind(each, namespace, remains, grace=0)
        return remains

    async def _delete_kind(self, kind: target.Target[Any], namespace: str, remains: Remains, *, grace: int) -> None:
        try:
            await self._delete_all(kind, namespace)
            objects = (await self._client.list(kind, Selection(namespace))).items
        except errors.DrachmaError as error:
            if not _is_not_served(error):
                remains.problems.append(str(error))
            return
        if not objects:
            return
        remains.counts[f"{kind.plural}.{kind.group}"] = len(objects)
        finalizers = Counter(finalizer for each in objects for finalizer in each.metadata.finalizers)
        remains.finalizers.update(finalizers)
        if grace or finalizers:
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

    async def _delete_one(self, kind: target.Target[Any], subject: meta.Object) -> None:
        try:
            await self._client.delete(
                kind, subject.metadata.name, namespace=subject.metadata.namespace, propagation="Background"
            )
        except errors.RefusedError as error:
            if not _is_not_served(error):
                raise

    async def _grace_of_pods(self, namespace: str) -> int:
        listed = (await self._client.list(pod.Pod, Selection(namespace))).items
        active = [each for each in listed if not podstate.has_ended(each)]
        return max((each.spec.termination_grace_period_seconds or 0 for each in active), default=0)


def _is_not_served(error: errors.DrachmaError) -> bool:
    return isinstance(error, errors.RefusedError) and error.code in _NOT_SERVED
