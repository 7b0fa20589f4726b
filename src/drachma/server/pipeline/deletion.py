"""Deletion: preconditions, time to end gracefully, finalizers, dependents, and namespaces, which take two steps.

Whether an object goes at once or is only marked is upstream's decision, in upstream's order: first preconditions,
then grace, then finalizers. Called by the delete and deletecollection verbs and by eviction.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from drachma import errors
from drachma.server import objectmeta, status
from drachma.server.calls import options
from drachma.server.kinds.strategy import Strategy, Write
from drachma.server.pipeline import registry
from drachma.server.presentation import encoding
from drachma.store import record

IMMORTAL_NAMESPACES: Final = frozenset({"default", "kube-public", "kube-system"})
"""Namespaces that the cluster cannot do without."""

_NAMESPACES: Final = "namespaces"
_ORPHANED: Final = (
    "child pods are preserved by default when jobs are deleted; "
    "set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning"
)


class Deleted(NamedTuple):
    """What is left of an object, and whether it is gone; ``document`` is its newest state in the stored version."""

    document: Mapping[str, Any]
    stored: record.Record | None
    is_gone: bool


class _Plan(NamedTuple):
    """What a deletion does to an object: nothing, change it to ``document``, or remove it."""

    document: dict[str, Any] | None
    removes: bool


class Deleter:
    """Deletes objects of a registry."""

    def __init__(self, objects: registry.Registry) -> None:
        self._registry = objects

    async def delete(self, write: Write, wanted: options.DeleteOptions) -> Deleted:
        """Deletes one object, or marks it as being deleted."""
        strategy = self._registry.strategy(write.resource)
        if strategy.traits.orphans_dependents and _is_left_open(wanted):
            write.warnings.append(_ORPHANED)
        for _ in range(registry.ATTEMPTS):
            stored = self._registry.get(write.resource, write.namespace, name=write.name)
            if write.resource.key == _NAMESPACES:
                outcome = await self._delete_namespace(stored, write, wanted, strategy=strategy)
            else:
                outcome = await self._delete(stored, write, wanted, strategy=strategy)
            if outcome is not None:
                return outcome
        raise status.conflict(write.resource, write.name, detail=status.MODIFIED)

    async def _delete(
        self, stored: record.Record, write: Write, wanted: options.DeleteOptions, *, strategy: Strategy
    ) -> Deleted | None:
        """One attempt; None if another write came first."""
        document = stored.value
        _check_preconditions(stored, write, wanted)
        plan = _plan(document, write, wanted, strategy=strategy)
        if plan.document is not None and not plan.removes:
            return await self._change(plan.document, stored, wanted)
        if not plan.removes:
            return Deleted(document, stored, is_gone=False)
        final = plan.document or document
        if wanted.is_dry_run:
            return Deleted(final, None, is_gone=True)
        try:
            last = await self._registry.store.delete(
                stored.key,
                revision=stored.revision,
                draft=lambda _record, revision: encoding.stamped(final)(revision),
            )
        except errors.ConflictError:
            return None
        except errors.NotFoundError:
            raise status.not_found(write.resource, write.name) from None
        return Deleted(last.value, last, is_gone=True)

    async def _delete_namespace(
        self, stored: record.Record, write: Write, wanted: options.DeleteOptions, *, strategy: Strategy
    ) -> Deleted | None:
        """The first request starts the end, which the finalizers in its spec hold up until it is empty."""
        if write.name in IMMORTAL_NAMESPACES:
            raise status.forbidden(write.resource, write.name, detail="this namespace may not be deleted")
        namespace: Mapping[str, Any] = stored.value
        _check_namespace_preconditions(stored, write, wanted)
        if "deletionTimestamp" not in namespace["metadata"]:
            metadata = {**namespace["metadata"], "deletionTimestamp": objectmeta.time_text(write.now)}
            finalizers = objectmeta.with_dependents_finalizers(
                metadata.get("finalizers", ()),
                orphan_dependents=wanted.orphan_dependents,
                policy=wanted.propagation_policy,
            )
            _set(metadata, "finalizers", finalizers)
            phase = {**(namespace.get("status") or {}), "phase": "Terminating"}
            return await self._change({**namespace, "metadata": metadata, "status": phase}, stored, wanted)
        if (namespace.get("spec") or {}).get("finalizers"):
            return Deleted(namespace, stored, is_gone=False)
        return await self._delete(stored, write, wanted, strategy=strategy)

    async def _change(
        self, document: dict[str, Any], stored: record.Record, wanted: options.DeleteOptions
    ) -> Deleted | None:
        if wanted.is_dry_run:
            return Deleted(document, None, is_gone=False)
        try:
            changed = await self._registry.store.update(
                stored.key, encoding.stamped(document), revision=stored.revision
            )
        except (errors.ConflictError, errors.NotFoundError):
            return None
        return Deleted(changed.value, changed, is_gone=False)


def _plan(document: Mapping[str, Any], write: Write, wanted: options.DeleteOptions, *, strategy: Strategy) -> _Plan:
    metadata = dict(document["metadata"])
    is_graceful = strategy.traits.dies_gracefully
    is_ending = "deletionTimestamp" in metadata
    if is_graceful and is_ending:
        shortened = _shorten(metadata, wanted, now=write.now)
        if shortened is None:
            return _Plan(None, removes=False)
        is_graceful = shortened
    elif is_graceful:
        grace = strategy.grace_period(document, wanted.grace_period_seconds)
        _start(metadata, grace, now=write.now)
    finalizers: list[str] = metadata.get("finalizers", [])
    traits = strategy.traits
    if traits.has_dependents and (finalizers or traits.orphans_dependents or not _is_left_open(wanted)):
        finalizers = objectmeta.with_dependents_finalizers(
            finalizers,
            orphan_dependents=wanted.orphan_dependents,
            policy=wanted.propagation_policy,
            default_orphans=traits.orphans_dependents,
        )
        _set(metadata, "finalizers", finalizers)
    if finalizers and not is_graceful:
        objectmeta.mark_deleted(metadata, now=write.now)
    changed = {**document, "metadata": metadata}
    if finalizers:
        return _Plan(changed, removes=False)
    if is_graceful and metadata["deletionGracePeriodSeconds"] > 0:
        return _Plan(changed, removes=False)
    return _Plan(changed if is_graceful else None, removes=True)


def _is_left_open(wanted: options.DeleteOptions) -> bool:
    """Whether nothing is said about what becomes of dependents."""
    return wanted.propagation_policy is None and wanted.orphan_dependents is None


def _start(metadata: objectmeta.Metadata, grace: int, *, now: datetime) -> None:
    metadata["deletionTimestamp"] = objectmeta.time_text(now + timedelta(seconds=grace))
    metadata["deletionGracePeriodSeconds"] = grace
    if metadata.get("generation", 0) > 0:
        metadata["generation"] += 1


def _shorten(metadata: objectmeta.Metadata, wanted: options.DeleteOptions, *, now: datetime) -> bool | None:
    """A deletion that has begun: True if it is to end sooner now, False if only finalizers hold it, None to wait."""
    period = metadata.get("deletionGracePeriodSeconds") or 0
    if period == 0:
        return False
    asked = wanted.grace_period_seconds
    if asked is None:
        return None
    asked = 1 if asked < 0 else asked
    if asked >= period:
        return None
    end = datetime.fromisoformat(metadata["deletionTimestamp"]).astimezone(UTC)
    sooner = end - timedelta(seconds=period) + timedelta(seconds=asked)
    if sooner < now:
        sooner, asked = now, min(asked, 1)
    metadata["deletionTimestamp"] = objectmeta.time_text(sooner)
    metadata["deletionGracePeriodSeconds"] = asked
    return True


def _set(metadata: objectmeta.Metadata, field: str, value: list[str]) -> None:
    if value:
        metadata[field] = value
    else:
        metadata.pop(field, None)


def _check_preconditions(stored: record.Record, write: Write, wanted: options.DeleteOptions) -> None:
    if wanted.uid is not None and wanted.uid != stored.uid:
        detail = (
            f"the UID in the precondition ({wanted.uid}) does not match the UID in record ({stored.uid}). "
            "The object might have been deleted and then recreated"
        )
        raise status.conflict_of_kind(write.resource, write.name, detail=detail)
    if wanted.resource_version is None:
        return
    version = stored.value["metadata"]["resourceVersion"]
    if wanted.resource_version != version:
        detail = (
            f"the ResourceVersion in the precondition ({wanted.resource_version}) does not match the "
            f"ResourceVersion in record ({version}). The object might have been modified"
        )
        raise status.conflict_of_kind(write.resource, write.name, detail=detail)


def _check_namespace_preconditions(stored: record.Record, write: Write, wanted: options.DeleteOptions) -> None:
    version = stored.value["metadata"]["resourceVersion"]
    if wanted.uid is not None and wanted.uid != stored.uid:
        detail = f"Precondition failed: UID in precondition: {wanted.uid}, UID in object meta: {stored.uid}"
        raise status.conflict(write.resource, write.name, detail=detail)
    if wanted.resource_version is not None and wanted.resource_version != version:
        detail = (
            f"Precondition failed: ResourceVersion in precondition: {wanted.resource_version}, "
            f"ResourceVersion in object meta: {version}"
        )
        raise status.conflict(write.resource, write.name, detail=detail)
