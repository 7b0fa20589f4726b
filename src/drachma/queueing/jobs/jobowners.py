"""Who a job belongs to: the topmost of its owners that queueing knows, which is admitted in its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma import errors
from drachma.queueing.configuration import frameworks
from drachma.queueing.jobs.jobworkload import QUEUE_LABEL
from drachma.values import quotation

Document = Mapping[str, Any]
Owners = Mapping[tuple[str, str, str], Document]
"""Objects of one namespace by apiVersion, kind and name."""

MOST: Final = 10
_REPLICA_SET: Final = ("apps/v1", "ReplicaSet")


class AncestryError(errors.DrachmaError):
    """The owners of a job cannot be followed."""


class NestingError(AncestryError):
    """There are more owners above each other than are followed."""


class Management(msgspec.Struct, frozen=True):
    """Which objects are queued."""

    frameworks: frozenset[str] = frozenset({frameworks.BATCH_JOB})
    """Kinds of jobs, as configurations name them."""
    without_queue_name: bool = False
    """Whether those without a queue's name are held back, too."""


def is_owned(of: Document, management: Management) -> bool:
    """Whether the controller of an object is of a kind that is queued, in a queue or not."""
    owner = controller(of)
    kinds = (frameworks.KINDS[name] for name in management.frameworks if name in frameworks.KINDS)
    return owner is not None and any((owner["apiVersion"], owner["kind"]) == (k.api_version, k.kind) for k in kinds)


def controller(of: Document) -> Document | None:
    """The reference to the one owner that made an object, if there is one."""
    return next((each for each in of["metadata"].get("ownerReferences") or () if each.get("controller")), None)


def ancestor(of: Document, owners: Owners, management: Management) -> Document | None:
    """The topmost owner that is queued; None if the object stands for itself."""
    known = {(kind.api_version, kind.kind): name for name, kind in frameworks.KINDS.items()}
    top: Document | None = None
    passed: set[str] = set()
    while True:
        uid = of["metadata"].get("uid", "")
        if uid in passed:
            raise AncestryError("cyclic ownership")
        passed.add(uid)
        owner = controller(of)
        if owner is None:
            return top
        kind = (owner["apiVersion"], owner["kind"])
        if kind not in known and kind != _REPLICA_SET:
            return top
        parent = owners.get((*kind, owner["name"]))
        if parent is None:
            group = kind[0].rpartition("/")[0]
            resource = f"{kind[1].lower()}s.{group}" if group else f"{kind[1].lower()}s"
            raise AncestryError(f"workload owner not found\n{resource} {quotation.quote(owner['name'])} not found")
        if parent["metadata"].get("uid", "") != owner.get("uid", ""):
            return top
        is_queued = management.without_queue_name or bool((parent["metadata"].get("labels") or {}).get(QUEUE_LABEL))
        if known.get(kind) in management.frameworks and is_queued:
            top = parent
        of = parent
        if len(passed) > MOST:
            raise NestingError("managed owner chain limit reached")
