"""Claims of v1alpha2 and their templates."""

from datetime import datetime
from typing import Final

from drachma.api.v1alpha2 import resourceclaim, resourceclaimtemplate
from drachma.server.kinds.resource import devicekind
from drachma.server.kinds.resource.v1alpha2 import alphakind
from drachma.server.surface import cells, layout

_CLASS: Final = layout.text("ResourceClassName", "The class of the claim.")
_MODE: Final = layout.text("AllocationMode", "When the claim is allocated.")


def _states(claim: layout.Document) -> str:
    status, is_deleted = cells.part(claim, "status"), bool(claim["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if is_deleted else []
    if status.get("deallocationRequested"):
        states.append("deallocating")
    if status.get("allocation") is not None:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    elif not is_deleted:
        states.append("pending")
    return ",".join(states)


def _wish(spec: layout.Document) -> layout.Cells:
    return [spec.get("resourceClassName", ""), spec.get("allocationMode", "")]


def _claim_cells(claim: layout.Document, now: datetime) -> layout.Cells:
    wish = _wish(cells.part(claim, "spec"))
    return [cells.name(claim), *wish, _states(claim), cells.since_creation(claim, now)]


def _template_cells(template: layout.Document, now: datetime) -> layout.Cells:
    wish = _wish(cells.part(cells.part(template, "spec"), "spec"))
    return [cells.name(template), *wish, cells.since_creation(template, now)]


CLAIM: Final = alphakind.of(
    resourceclaim.ResourceClaim,
    has_namesake=True,
    subresources=(devicekind.STATUS,),
    table=layout.Layout(
        (
            layout.NAME,
            _CLASS,
            _MODE,
            layout.text("State", "A summary of the current state (allocated, pending, reserved, etc.)."),
            layout.AGE,
        ),
        _claim_cells,
    ),
)
TEMPLATE: Final = alphakind.of(
    resourceclaimtemplate.ResourceClaimTemplate,
    table=layout.Layout((layout.NAME, _CLASS, _MODE, layout.AGE), _template_cells),
)
