"""What decisions make of a workload, written down: its spec and metadata, and its status apart.

A write is only good for the version of the object that the decision was about; where somebody else was faster it is
refused, and the decision is taken anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from msgspec import structs

from drachma.api import meta
from drachma.client import patches, protocol
from drachma.queueing import conditions
from drachma.queueing.component import documentchange, resources
from drachma.queueing.devices import deviceaccount
from drachma.queueing.kinds import decoding, workload


def with_times(of: workload.Workload, now: datetime) -> workload.Workload:
    """With the time of conditions that have none."""
    if all(each.last_transition_time is not None for each in of.status.conditions):
        return of
    dated = tuple(
        each if each.last_transition_time is not None else structs.replace(each, last_transition_time=now)
        for each in of.status.conditions
    )
    return structs.replace(of, status=structs.replace(of.status, conditions=dated))


async def write_status(
    client: protocol.Client, before: workload.Workload, after: workload.Workload
) -> workload.Workload:
    """Makes the status of the stored workload, which is as ``before``, that of ``after``; what is stored then.

    Raises:
        errors.ObjectConflictError, errors.ObjectNotFoundError: it is not as ``before`` any more.
    """
    change = status_change(before, after)
    if not change:
        return before
    return await client.patch(
        resources.WORKLOADS,
        before.metadata.name,
        namespace=before.metadata.namespace,
        subresource="status",
        patch=patches.merge({"status": change}, patches.unchanged(before)),
    )


async def write_account(
    client: protocol.Client, before: workload.Workload, after: workload.Workload
) -> workload.Workload:
    """Makes the device account of the stored workload, which is as ``before``, that of ``after``; raises as above."""
    text = _account(after)
    if text == _account(before):
        return before
    return await client.patch(
        resources.WORKLOADS,
        before.metadata.name,
        namespace=before.metadata.namespace,
        patch=patches.merge({"metadata": {"annotations": {deviceaccount.ANNOTATION: text}}}, patches.unchanged(before)),
    )


def _account(of: workload.Workload) -> str | None:
    return of.metadata.annotations.get(deviceaccount.ANNOTATION)


def rebased(
    before: workload.Workload, after: workload.Workload, *, onto: workload.Workload
) -> workload.Workload | None:
    """What was decided about a workload, on a newer version of it; None where that is another case.

    Others note things in the status all the time, such as whether pods are ready, which change nothing about the
    decision. It is another case if the spec changed, or what the decision rests on: quota, eviction, the end.
    """
    if _case(before) != _case(onto):
        return None
    old = {each.type: each for each in before.status.conditions}
    new = {each.type: each for each in after.status.conditions}
    gone = {kind for kind in old if kind not in new}
    kept = tuple(each for each in onto.status.conditions if each.type not in gone)
    for kind, condition in new.items():
        if old.get(kind) != condition:
            kept = conditions.put(kept, condition).conditions
    fields = {
        field: getattr(after.status, field)
        for field in after.status.__struct_fields__
        if field != "conditions" and getattr(after.status, field) != getattr(before.status, field)
    }
    metadata = onto.metadata
    if (text := _account(after)) is not None:
        metadata = structs.replace(metadata, annotations={**metadata.annotations, deviceaccount.ANNOTATION: text})
    return structs.replace(onto, metadata=metadata, status=structs.replace(onto.status, conditions=kept, **fields))


def _case(of: workload.Workload) -> tuple[object, ...]:
    status = of.status
    return (
        of.metadata.uid,
        of.metadata.generation,
        of.metadata.deletion_timestamp,
        _account(of),
        status.admission,
        status.reclaimable_pods,
        status.admission_checks,
        conditions.is_true(status.conditions, conditions.EVICTED),
        conditions.is_true(status.conditions, conditions.FINISHED),
        conditions.is_true(status.conditions, conditions.QUOTA_RESERVED),
    )


def status_change(before: workload.Workload, after: workload.Workload) -> dict[str, Any]:
    """What is different in the status."""
    old, new = before.status, after.status
    if old is new:
        return {}
    changed = [name for name in new.__struct_fields__ if getattr(old, name) != getattr(new, name)]
    if not changed:
        return {}
    return documentchange.difference(_only(old, changed), _only(new, changed))


def _only(status: workload.WorkloadStatus, names: Iterable[str]) -> dict[str, Any]:
    """Some fields of a status as a document."""
    return decoding.document(workload.WorkloadStatus(**{name: getattr(status, name) for name in names}))


async def write_object(
    client: protocol.Client,
    kind: Any,
    before: Mapping[str, Any],
    *,
    after: Mapping[str, Any],
    observe: Callable[[Any], None],
) -> Mapping[str, Any]:
    """Patch a document of any kind with a status: metadata and spec first, then the status.

    ``observe`` gets each stored version.
    """
    main = documentchange.difference(_without_status(before), _without_status(after))
    version = before["metadata"].get("resourceVersion", "")
    if main:
        patched = await _patch(client, kind, before, content=main, version=version)
        observe(patched)
        version = patched.metadata.resource_version
    status = documentchange.difference(before.get("status") or {}, after.get("status") or {})
    if status:
        patched = await _patch(client, kind, before, content={"status": status}, version=version, part="status")
        observe(patched)
        version = patched.metadata.resource_version
    return {**after, "metadata": {**after["metadata"], "resourceVersion": version}}


async def _patch(
    client: protocol.Client,
    kind: Any,
    of: Mapping[str, Any],
    *,
    content: Mapping[str, Any],
    version: str,
    part: str = "",
) -> meta.Object:
    """Patch an object or its subresource ``part``, and return the stored object."""
    metadata = of["metadata"]
    meant = patches.Preconditions(uid=metadata["uid"], resource_version=version)
    patched: meta.Object = await client.patch(
        kind,
        metadata["name"],
        namespace=metadata.get("namespace", ""),
        subresource=part,
        patch=patches.merge(content, meant),
    )
    return patched


def _without_status(document: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in document.items() if name != "status"}
    kept["metadata"] = {name: value for name, value in document["metadata"].items() if name not in _OF_SERVER}
    return kept


_OF_SERVER = frozenset({"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"})
