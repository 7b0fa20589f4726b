"""What becomes of an object that is deleted: it goes at once, is marked as going, or stays as it is.

Upstream's decision, in upstream's order: first grace, then finalizers; a namespace takes two steps of its own. The
intents of deletion ask it once nothing speaks against the deletion itself.
"""

from datetime import UTC, datetime, timedelta

from drachma.api import meta
from drachma.server import objectmeta
from drachma.server.admission.namespacelifecycle import NAMESPACES
from drachma.server.admission.proposal import Removal
from drachma.server.calls import options
from drachma.server.pipeline import intent


def decide(removal: Removal) -> intent.Decision:
    """What is to be done to the object."""
    if removal.write.resource.group_resource == NAMESPACES:
        return _decide_namespace(removal)
    if removal.write.resource.traits.finalizer and "deletionTimestamp" not in removal.stored.value["metadata"]:
        return _hold(removal, removal.write.resource.traits.finalizer)
    return _decide(removal)


def is_left_open(wanted: options.DeleteOptions) -> bool:
    """Whether nothing is said about what becomes of dependents."""
    return wanted.propagation_policy is None and wanted.orphan_dependents is None


def _decide(removal: Removal) -> intent.Decision:
    stored, write, wanted = removal.stored, removal.write, removal.options
    traits, document, now = write.resource.traits, stored.value, write.now
    metadata = dict(document["metadata"])
    is_graceful = traits.dies_gracefully
    if is_graceful and "deletionTimestamp" in metadata:
        shortened = _shorten(metadata, wanted, now=now)
        if shortened is None:
            return intent.Leave(stored)
        is_graceful = shortened
    elif is_graceful:
        _start(metadata, write.served.strategy.grace_period(document, wanted.grace_period_seconds), now=now)
    finalizers: list[str] = metadata.get("finalizers", [])
    if traits.has_dependents and (finalizers or traits.orphans_dependents or not is_left_open(wanted)):
        finalizers = _set_finalizers(metadata, wanted, default_orphans=traits.orphans_dependents)
    if finalizers and not is_graceful:
        objectmeta.mark_deleted(metadata, now=now)
    changed = {**document, "metadata": metadata}
    if finalizers or (is_graceful and metadata["deletionGracePeriodSeconds"] > 0):
        return intent.Replace(stored, changed)
    return intent.Remove(stored, changed if is_graceful else document)


def _decide_namespace(removal: Removal) -> intent.Decision:
    """The first request starts the end, which the finalizers in the spec hold up until the namespace is empty."""
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
    """The first request only starts the end of an object that somebody has to clean up after."""
    document = removal.stored.value
    metadata = {**document["metadata"], "deletionTimestamp": meta.time_text(removal.write.now)}
    metadata["finalizers"] = [*(name for name in metadata.get("finalizers", ()) if name != finalizer), finalizer]
    return intent.Replace(removal.stored, {**document, "metadata": metadata})


def _start(metadata: objectmeta.Metadata, grace: int, *, now: datetime) -> None:
    metadata["deletionTimestamp"] = meta.time_text(now + timedelta(seconds=grace))
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
    metadata["deletionTimestamp"] = meta.time_text(sooner)
    metadata["deletionGracePeriodSeconds"] = asked
    return True


def _set_finalizers(
    metadata: objectmeta.Metadata, wanted: options.DeleteOptions, *, default_orphans: bool
) -> list[str]:
    """Sets the finalizers of the garbage collector as the options say, in place; returns all that there are then."""
    finalizers = objectmeta.with_dependents_finalizers(
        metadata.get("finalizers", ()),
        orphan_dependents=wanted.orphan_dependents,
        policy=wanted.propagation_policy,
        default_orphans=default_orphans,
    )
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    return finalizers
