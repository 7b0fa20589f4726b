"""Owners of a job: the topmost one that is queued is admitted in place of the job."""

from __future__ import annotations

from typing import Final

from drachma import errors
from drachma.queueing.configuration import frameworks
from drachma.queueing.jobs.settings import QUEUE_LABEL, Document, Management, Owners
from drachma.values import quotation

MAX_DEPTH: Final = 10
_REPLICA_SET: Final = ("apps/v1", "ReplicaSet")
FOLLOWED_KINDS: Final = frozenset(
    {_REPLICA_SET, *((each.api_version, each.kind) for each in frameworks.KINDS.values())}
)
"""Kinds of owners, as apiVersion and kind, whose own owners are followed."""


class AncestryError(errors.DrachmaError):
    """The owners of a job cannot be followed."""


class NestingError(AncestryError):
    """The chain of owners is longer than MAX_DEPTH."""


def is_owned(document: Document, management: Management) -> bool:
    """Return True if the controller of an object is of a managed kind, with or without a queue."""
    owner = controller(document)
    kinds = (frameworks.KINDS[name] for name in management.frameworks if name in frameworks.KINDS)
    return owner is not None and any((owner["apiVersion"], owner["kind"]) == (k.api_version, k.kind) for k in kinds)


def controller(document: Document) -> Document | None:
    """Return the reference to the controlling owner of an object, if it has one."""
    return next((each for each in document["metadata"].get("ownerReferences") or () if each.get("controller")), None)


def ancestor(document: Document, owners: Owners, management: Management) -> Document | None:
    """Return the topmost owner that is queued, or None if the object is queued itself.

    Raises:
        AncestryError: an owner is missing, or the owners form a cycle.
        NestingError: the chain of owners is too long.
    """
    framework_names = {(kind.api_version, kind.kind): name for name, kind in frameworks.KINDS.items()}
    top: Document | None = None
    visited: set[str] = set()
    while True:
        uid = document["metadata"].get("uid", "")
        if uid in visited:
            raise AncestryError("cyclic ownership")
        visited.add(uid)
        owner = controller(document)
        if owner is None:
            return top
        kind = (owner["apiVersion"], owner["kind"])
        if kind not in FOLLOWED_KINDS:
            return top
        parent = owners.get((*kind, owner["name"]))
        if parent is None:
            group = kind[0].rpartition("/")[0]
            resource = f"{kind[1].lower()}s.{group}" if group else f"{kind[1].lower()}s"
            raise AncestryError(f"workload owner not found\n{resource} {quotation.quote(owner['name'])} not found")
        if parent["metadata"].get("uid", "") != owner.get("uid", ""):
            return top
        is_queued = management.without_queue_name or bool((parent["metadata"].get("labels") or {}).get(QUEUE_LABEL))
        if framework_names.get(kind) in management.frameworks and is_queued:
            top = parent
        document = parent
        if len(visited) > MAX_DEPTH:
            raise NestingError("managed owner chain limit reached")
