"""Merge patches that make the stored workload equal to the decided one: metadata and spec, and the status apart.

A patch applies only to the version of the workload that the decision was based on. If another client has changed the
workload meanwhile, the API server refuses the patch and the decision is taken again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import structs

from drachma.api import event
from drachma.api.struct import Struct
from drachma.client import patches, protocol, transactions
from drachma.queueing import conditions
from drachma.queueing.component import resources
from drachma.queueing.devices import account as deviceaccount
from drachma.queueing.kinds import decoding, workload
from drachma.runtime import clock, events

Document = Mapping[str, Any]
StoredWorkload = protocol.StoredObject[workload.Workload]

_SERVER_FIELDS: Final = frozenset({"managed_fields", "resource_version", "generation", "uid", "creation_timestamp"})


def current_time(source: clock.Clock) -> datetime:
    """Return the time in whole seconds, as objects have it."""
    return source.utc().replace(microsecond=0)


def difference(before: Document, after: Document) -> dict[str, Any]:
    """Return the merge patch from one document to another: fields to set, and None for fields to remove."""
    change: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(value, Mapping) and isinstance(old, Mapping):
            inner = difference(old, value)
            if inner:
                change[name] = inner
        elif name not in before or old != value:
            change[name] = value
    return change


def with_times(decided: workload.Workload, now: datetime) -> workload.Workload:
    """Return a workload whose conditions all have a transition time."""
    if all(each.last_transition_time is not None for each in decided.status.conditions):
        return decided
    dated = tuple(
        each if each.last_transition_time is not None else structs.replace(each, last_transition_time=now)
        for each in decided.status.conditions
    )
    return structs.replace(decided, status=structs.replace(decided.status, conditions=dated))


class WorkloadLocks:
    """One lock for each workload, so that writes of this process to it do not conflict with each other."""

    def __init__(self) -> None:
        self._locks: Final[dict[str, asyncio.Lock]] = {}
        self._users: Final[dict[str, int]] = {}

    @contextlib.asynccontextmanager
    async def hold(self, key: str) -> AsyncIterator[None]:
        """Hold the lock of a workload. The cache has every earlier write when the lock is acquired."""
        lock = self._locks.setdefault(key, asyncio.Lock())
        self._users[key] = self._users.get(key, 0) + 1
        try:
            async with lock:
                yield
        finally:
            self._users[key] -= 1
            if not self._users[key]:
                del self._locks[key], self._users[key]


# Changes


def status_change(before: workload.Workload, after: workload.Workload) -> dict[str, Any]:
    """Return the merge patch of the status."""
    return _struct_change(before.status, after.status)


def object_change(
    before: workload.Workload, after: workload.Workload, pod_sets: Sequence[Document] | None = None
) -> dict[str, Any]:
    """Return the merge patch of metadata and spec. ``pod_sets`` are the new pod sets, if they change."""
    spec = _struct_change(before.spec, after.spec, ignored=frozenset({"pod_sets"}))
    if pod_sets is not None:
        spec["podSets"] = list(pod_sets)
    parts = {"metadata": _struct_change(before.metadata, after.metadata, ignored=_SERVER_FIELDS), "spec": spec}
    return {name: change for name, change in parts.items() if change}


def _struct_change(before: Struct, after: Struct, *, ignored: frozenset[str] = frozenset()) -> dict[str, Any]:
    if before is after:
        return {}
    changed = [
        name
        for name in after.__struct_fields__
        if name not in ignored and getattr(before, name) != getattr(after, name)
    ]
    return difference(_only(before, changed), _only(after, changed)) if changed else {}


def _only(part: Struct, names: Iterable[str]) -> dict[str, Any]:
    """Return some fields of a struct as a document."""
    return decoding.document(type(part)(**{name: getattr(part, name) for name in names}))


# Writes


async def patch(
    recorder: events.Recorder,
    before: workload.Workload,
    content: Document,
    *,
    subresource: str = "",
    reported: Sequence[event.Event] = (),
) -> StoredWorkload:
    """Patch a workload that is stored as ``before``, and return the stored workload.

    Raises:
        errors.ObjectConflictError, errors.ObjectNotFoundError: the workload has changed.
    """
    change = transactions.PatchStored(
        resources.WORKLOADS,
        before.metadata.name,
        patches.merge(content, patches.unchanged(before)),
        namespace=before.metadata.namespace,
        subresource=subresource,
    )
    return await recorder.patch(change, reported=reported)


async def write_status(
    recorder: events.Recorder, before: workload.Workload, after: workload.Workload
) -> StoredWorkload | None:
    """Write the status of ``after``. Return the stored workload, or None if there is no change. Raises like patch()."""
    change = status_change(before, after)
    return await patch(recorder, before, {"status": change}, subresource="status") if change else None


async def write_account(
    recorder: events.Recorder, before: workload.Workload, after: workload.Workload
) -> StoredWorkload | None:
    """Write the device account of ``after``; returns and raises like write_status()."""
    text = _account(after)
    if text == _account(before):
        return None
    return await patch(recorder, before, {"metadata": {"annotations": {deviceaccount.ANNOTATION: text}}})


def _account(wl: workload.Workload) -> str | None:
    return wl.metadata.annotations.get(deviceaccount.ANNOTATION)


# Decisions on newer versions


def rebase(before: workload.Workload, after: workload.Workload, *, onto: workload.Workload) -> workload.Workload | None:
    """Return a decision applied to a newer version of its workload, or None if the decision no longer holds.

    Other controllers often change parts of the status that do not matter for the decision, such as PodsReady. The
    decision no longer holds if the spec has changed, or the state that it is based on: quota, eviction, the end.
    """
    if _decision_basis(before) != _decision_basis(onto):
        return None
    old = {each.type: each for each in before.status.conditions}
    new = {each.type: each for each in after.status.conditions}
    removed = {kind for kind in old if kind not in new}
    merged = tuple(each for each in onto.status.conditions if each.type not in removed)
    for kind, condition in new.items():
        if old.get(kind) != condition:
            merged = conditions.put(merged, condition).conditions
    fields = {
        field: getattr(after.status, field)
        for field in after.status.__struct_fields__
        if field != "conditions" and getattr(after.status, field) != getattr(before.status, field)
    }
    metadata = onto.metadata
    if (text := _account(after)) is not None:
        metadata = structs.replace(metadata, annotations={**metadata.annotations, deviceaccount.ANNOTATION: text})
    return structs.replace(onto, metadata=metadata, status=structs.replace(onto.status, conditions=merged, **fields))


def _decision_basis(wl: workload.Workload) -> tuple[object, ...]:
    status = wl.status
    return (
        wl.metadata.uid,
        wl.metadata.generation,
        wl.metadata.deletion_timestamp,
        _account(wl),
        status.admission,
        status.reclaimable_pods,
        status.admission_checks,
        status.unhealthy_nodes,
        conditions.is_true(status.conditions, conditions.EVICTED),
        conditions.is_true(status.conditions, conditions.FINISHED),
        conditions.is_true(status.conditions, conditions.QUOTA_RESERVED),
    )
