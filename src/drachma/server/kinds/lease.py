"""Leases: leader election, and heartbeats of nodes."""

from datetime import datetime
from typing import Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import cells, layout, resources
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import constraints, fielderror
from drachma.validation.fielderror import Errors
from drachma.validation.path import SPEC


class LeaseStrategy(DocumentStrategy):
    qualifies_finalizers = False

    def default(self, content: Document, metadata: objectmeta.Metadata) -> None:
        """Drop the fields of CoordinatedLeaderElection, a gate that is off."""
        spec = content.get("spec")
        if spec and ("strategy" in spec or "preferredHolder" in spec):
            content["spec"] = {name: spec[name] for name in spec if name not in ("strategy", "preferredHolder")}

    def updates_unconditionally(self, write: Write) -> bool:
        return False

    def check(self, content: Document, subject: Subject) -> Errors:
        spec = content.get("spec") or {}
        if spec.get("leaseDurationSeconds") is not None and spec["leaseDurationSeconds"] <= 0:
            at = SPEC.child("leaseDurationSeconds")
            yield fielderror.invalid(at, spec["leaseDurationSeconds"], "must be greater than 0")
        if spec.get("leaseTransitions") is not None and spec["leaseTransitions"] < 0:
            at = SPEC.child("leaseTransitions")
            yield fielderror.invalid(at, spec["leaseTransitions"], constraints.NOT_NEGATIVE)


def _cells(lease: Document, now: datetime) -> layout.Cells:
    holder = cells.part(lease, "spec").get("holderIdentity") or ""
    return [cells.name(lease), holder, cells.since_creation(lease, now)]


KIND: Final = Kind(
    group="coordination.k8s.io",
    versions=("v1",),
    plural="leases",
    kind="Lease",
    namespaced=True,
    traits=resources.Traits(creates_on_update=True),
    layout=layout.Layout((layout.NAME, layout.text("Holder", "The holder of the lease."), layout.AGE), _cells),
    strategy=LeaseStrategy,
)
