"""The conditions of a namespace that is being deleted: how far it is, and what holds it up. Pure."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from drachma.api import meta
from drachma.controllers.namespace import contents

Condition = dict[str, Any]


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


def updated(current: Sequence[Condition], remains: contents.Remains, *, now: dt.datetime) -> list[Condition]:
    """The conditions after a round of deleting; those of other types stay, and times change only with a status."""
    problems = _problems(remains)
    changed = [dict(each) for each in current]
    by_type = {each["type"]: each for each in changed}
    moment = meta.time_text(now)
    for kind, fine in _FINE.items():
        reason, message = problems.get(kind, fine)
        status = "True" if kind in problems else "False"
        known = by_type.get(kind)
        if known is None:
            known = {"type": kind, "status": status, "lastTransitionTime": moment}
            changed.append(known)
        elif known["status"] != status:
            known.update(status=status, lastTransitionTime=moment)
        known.update(reason=reason, message=message)
    return changed


def _problems(remains: contents.Remains) -> dict[str, tuple[str, str]]:
    """What is not as it should be, by type of condition: reason and message.

    Differs from upstream: pods that remain are told too, though nothing else was tried yet.
    """
    found = {}
    if remains.discovery_problem:
        found["NamespaceDeletionDiscoveryFailure"] = ("DiscoveryFailed", remains.discovery_problem)
    if remains.problems:
        listed = ", ".join(sorted(remains.problems))
        message = f"Failed to delete all resource types, {len(remains.problems)} remaining: {listed}"
        found["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", message)
    if remains.counts:
        listed = ", ".join(sorted(f"{kind} has {count} resource instances" for kind, count in remains.counts.items()))
        found["NamespaceContentRemaining"] = ("SomeResourcesRemain", f"Some resources are remaining: {listed}")
    if remains.finalizers:
        held = remains.finalizers.items()
        listed = ", ".join(sorted(f"{finalizer} in {count} resource instances" for finalizer, count in held))
        message = f"Some content in the namespace has finalizers remaining: {listed}"
        found["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", message)
    return found
