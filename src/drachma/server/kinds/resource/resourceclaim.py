"""Claims: wishes for devices, and once they are allocated, which devices those are and who uses them."""

from datetime import datetime
from typing import Final

from drachma.api import resourceclaim
from drachma.server.kinds.resource import claimstrategy, devicekind
from drachma.server.surface import cells, layout


def _cells(claim: layout.Document, now: datetime) -> layout.Cells:
    status, is_deleted = cells.part(claim, "status"), bool(claim["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if is_deleted else []
    if status.get("allocation") is not None:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    elif not is_deleted:
        states.append("pending")
    return [cells.name(claim), ",".join(states), cells.since_creation(claim, now)]


KIND: Final = devicekind.of(
    resourceclaim.ResourceClaim,
    subresources=(devicekind.STATUS,),
    table=layout.Layout(
        (
            layout.NAME,
            layout.text("State", "A summary of the current state (allocated, pending, reserved, etc.)."),
            layout.AGE,
        ),
        _cells,
    ),
    strategy=claimstrategy.ClaimStrategy,
)
