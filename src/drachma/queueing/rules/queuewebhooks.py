"""What Kueue's webhooks do to the kinds of ``kueue.x-k8s.io``, on documents in v1beta2: completed, and refused.

Whoever runs beside an API server in the same process asks these functions about every write; they look at nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from msgspec import structs

from drachma.queueing.configuration.gates import Gate, Gates
from drachma.queueing.kinds import clusterqueue, decoding, resourceflavor, workload
from drachma.queueing.lifecycle.workloadreconcile import IN_USE
from drachma.queueing.rules import queuerules, workloadrules
from drachma.validation.fielderror import FieldError

Document: TypeAlias = Mapping[str, Any]

FINALIZED: Final = frozenset({"ClusterQueue", "ResourceFlavor"})
"""Kinds whose objects stay until nobody uses them."""


def completed(document: Document, gates: Gates) -> dict[str, Any] | None:
    """A new object as it should be; None if it is so already."""
    metadata = document["metadata"]
    finalizers = metadata.get("finalizers") or []
    if document["kind"] in FINALIZED and IN_USE not in finalizers:
        return {**document, "metadata": {**metadata, "finalizers": [*finalizers, IN_USE]}}
    if document["kind"] == "Workload" and not gates.on(Gate.PARTIAL_ADMISSION):
        pod_sets = document.get("spec", {}).get("podSets") or []
        if any("minCount" in each for each in pod_sets):
            whole = [{name: value for name, value in each.items() if name != "minCount"} for each in pod_sets]
            return {**document, "spec": {**document["spec"], "podSets": whole}}
    return None


def problems(document: Document, old: Document | None, gates: Gates) -> tuple[FieldError, ...]:
    """All that is wrong with an object that is made, or changed from ``old``."""
    return _CHECKS[document["kind"]](document, old, gates)


def _queue(new: Document, old: Document | None, gates: Gates) -> tuple[FieldError, ...]:
    before = None if old is None else decoding.decode(old, clusterqueue.ClusterQueue)
    return queuerules.check_queue(decoding.decode(new, clusterqueue.ClusterQueue), before, gates=gates)


def _cohort(new: Document, _old: Document | None, _gates: Gates) -> tuple[FieldError, ...]:
    return queuerules.check_cohort(decoding.decode(new, clusterqueue.Cohort))


def _flavor(new: Document, _old: Document | None, _gates: Gates) -> tuple[FieldError, ...]:
    return queuerules.check_flavor(decoding.decode(new, resourceflavor.ResourceFlavor))


def _workload(new: Document, old: Document | None, gates: Gates) -> tuple[FieldError, ...]:
    if old is None:
        return workloadrules.check(decoding.decode(new, workload.Workload), gates=gates)
    before = decoding.decode(old, workload.Workload)
    if new.get("spec") is old.get("spec") and new["metadata"].get("annotations") == old["metadata"].get("annotations"):
        # Of a status that changes nothing else counts, and most writes are such.
        status = decoding.decode(new.get("status") or {}, workload.WorkloadStatus)
        after = structs.replace(before, status=status)
    else:
        after = decoding.decode(new, workload.Workload)
    return workloadrules.check(after, before, gates=gates)


_CHECKS: Final[Mapping[str, Callable[[Document, Document | None, Gates], tuple[FieldError, ...]]]] = {
    "ClusterQueue": _queue,
    "Cohort": _cohort,
    "ResourceFlavor": _flavor,
    "Workload": _workload,
}
