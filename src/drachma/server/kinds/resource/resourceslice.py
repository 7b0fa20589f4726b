"""Slices: devices, or some of the devices of a pool, as a driver publishes them."""

from datetime import datetime
from typing import Final

from drachma.api import resourceslice
from drachma.server.kinds.resource import devicekind
from drachma.server.surface import cells, layout, selectable


def _cells(slice_: layout.Document, now: datetime) -> layout.Cells:
    spec = cells.part(slice_, "spec")
    pool = cells.part(spec, "pool").get("name", "")
    node, driver = spec.get("nodeName") or "", spec.get("driver", "")
    return [cells.name(slice_), node, driver, pool, cells.since_creation(slice_, now)]


KIND: Final = devicekind.of(
    resourceslice.ResourceSlice,
    table=layout.Layout(
        (
            layout.NAME,
            layout.text("Node", "The node whose devices these are."),
            layout.text("Driver", "The driver that published the slice."),
            layout.text("Pool", "The pool that the slice is part of."),
            layout.AGE,
        ),
        _cells,
    ),
    fields=selectable.Selectable(fields=frozenset({selectable.NAME, "spec.nodeName", "spec.driver", "spec.pool.name"})),
)
