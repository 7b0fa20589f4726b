"""Slices of v1alpha2, under the KEP's name and that of Kubernetes 1.30."""

from datetime import datetime
from typing import Final

from drachma.api.v1alpha2 import resourceslice
from drachma.server.kinds.resource.v1alpha2 import alphakind
from drachma.server.surface import cells, layout, selectable

_COLUMNS: Final = (
    layout.NAME,
    layout.text("Node", "The node whose resources these are."),
    layout.text("Driver", "The driver that published the slice."),
    layout.AGE,
)


def _row(slice_: layout.Document, spec: layout.Document, now: datetime) -> layout.Cells:
    names = [spec.get("nodeName") or "", spec.get("driverName", "")]
    return [cells.name(slice_), *names, cells.since_creation(slice_, now)]


def _fields(*fields: str) -> selectable.Selectable:
    return selectable.Selectable(fields=frozenset({selectable.NAME, *fields}))


NODE_SLICE: Final = alphakind.of(
    resourceslice.NodeResourceSlice,
    table=layout.Layout(_COLUMNS, lambda slice_, now: _row(slice_, cells.part(slice_, "spec"), now)),
    fields=_fields("spec.nodeName", "spec.driverName"),
)
SLICE: Final = alphakind.of(
    resourceslice.ResourceSlice,
    table=layout.Layout(_COLUMNS, lambda slice_, now: _row(slice_, slice_, now)),
    fields=_fields("nodeName", "driverName"),
)
