"""The decision about an object to delete: remove it, mark it as being deleted, or leave it.

The order is upstream's: first the grace period, then the finalizers. A namespace takes two steps of its own. Intents of
deletion call this after all steps of the deletion have accepted it.
"""

from datetime import UTC, datetime, timedelta

from drachma.api import meta
from drachma.server import objectmeta
from drachma.server.admission.namespacelifecycle import NAMESPACES
from drachma.server.admission.proposal import Removal
from drachma.server.calls import options
from drachma.server.pipeline import intent


def decide(removal: Removal) -> intent.Decision:
    """Decide about an object to delete."""
    if removal.write.resource.group_resource == NAMESPACES:
        return _decide_namespace(removal)
    if removal.write.resource.traits.finalizer and "deletionTimestamp" not in removal.stored.value["metadata"]:
        return _hold(removal, removal.write.resource.traits.finalizer)
    return _decide(removal)


def leaves_dependents_open(delete_options: options.DeleteOptions) -> bool:
    """Return True if the options say nothing about dependents."""
    return delete_options.propagation_policy is None and delete_options.orphan_dependents is None


def _decide(removal: Removal) -> intent.Decision:
    existing, write, delete_options = removal.stored, removal.write, removal.options
    traits, document, now = write.resource.traits, existing.value, write.now
    metadata = dict(document["metadata"])
    is_graceful = traits.grace_period is not None
    if is_graceful and "deletionTimestamp" in metadata:
        shortened = _shorten(metadata, delete_options, now=now)
        if shortened is None:
            return intent.Leave(existing)
        is_graceful = shortened
    elif traits.grace_period is not None:
        _start(metadata, traits.grace_period(document, delete_options.grace_period_seconds), now=now)
    finalizers: list[str] = metadata.get("finalizers", [])
    if traits.has_dependents and (
        finalizers or traits.orphans_dependents or not leaves_dependents_open(delete_options)
    ):
        finalizers = _set_finalizers(metadata, delete_options, default_orphans=traits.orphans_dependents)
    if finalizers and not is_graceful:
        objectmeta.mark_deleted(metadata, now=now)
    changed = {**document, "metadata": metadata}
    if finalizers or (is_graceful and metadata["deletionGracePeriodSeconds"] > 0):
        return intent.Replace(existing, changed)
    return intent.Remove(existing, changed if is_graceful else document)


def _decide_namespace(removal: Removal) -> intent.Decision:
    """Decide about a namespace.

    The first request marks it. The finalizers in its spec keep it until it is empty.
    """
    namespace = removal.stored.value
    if "deletionTimestamp" not in namespace["metadata"]:
        metadata = {**namespace["metadata"], "deletionTimestamp": meta.time_text(removal.write.now)}
        _set_finalizers(metadata, removal.options, default_orphans=False)
        phase = {**(namespace.get("status") or {}), "phase": "Terminating"}
        return intent.Replace(removal.stored, {**namespace, "metadata": metadata, "status": phase})
    if (namespace.get("spec") or {}).get("finalizers"):
        return intent.Leave(removal.stored)
    return _decide(removal)


def _hold(removal: Removal, finalizer: str) -> intent.Decision:
    """Mark an object that a controller has to clean up after, and add the finalizer for that."""
    document = removal.stored.value
    metadata = {**document["metadata"], "deletionTimestamp": meta.time_text(removal.write.now)}
    metadata["finalizers"] = [*(name for name in metadata.get("finalizers", ()) if name != finalizer), finalizer]
    return intent.Replace(removal.stored, {**document, "metadata": metadata})


def _start(metadata: objectmeta.Metadata, grace: int, *, now: datetime) -> None:
    metadata["deletionTimestamp"] = meta.time_text(now + timedelta(seconds=grace))
    metadata["deletionGracePeriodSeconds"] = grace
    if metadata.get("generation", 0) > 0:
        metadata["generation"] += 1


def _shorten(metadata: objectmeta.Metadata, delete_options: options.DeleteOptions, *, now: datetime) -> bool | None:
    """Shorten the grace period of an object that is being deleted.

    Return True if it ends sooner now, False if only finalizers hold it, None if it still has to wait.
    """
    period = metadata.get("deletionGracePeriodSeconds") or 0
    if period == 0:
        return False
    requested = delete_options.grace_period_seconds
    if requested is None:
        return None
    requested = 1 if requested < 0 else requested
    if requested >= period:
        return None
    end = datetime.fromisoformat(metadata["deletionTimestamp"]).astimezone(UTC)
    sooner = end - timedelta(seconds=period) + timedelta(seconds=requested)
    if sooner < now:
        sooner, requested = now, min(requested, 1)
    metadata["deletionTimestamp"] = meta.time_text(sooner)
    metadata["deletionGracePeriodSeconds"] = requested
    return True


def _set_finalizers(
    metadata: objectmeta.Metadata, delete_options: options.DeleteOptions, *, default_orphans: bool
) -> list[str]:
    """Set the finalizers of the garbage collector in place, as the options ask; return all finalizers."""
    finalizers = objectmeta.set_dependents_finalizers(
        metadata.get("finalizers", ()),
        orphan_dependents=delete_options.orphan_dependents,
        policy=delete_options.propagation_policy,
        default_orphans=default_orphans,
    )
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    return finalizers
