"""Resource classes: what an administrator offers under a name."""

from datetime import datetime
from typing import Final

from drachma.api.v1alpha2 import resourceclass
from drachma.server.kinds.resource.v1alpha2 import alphakind
from drachma.server.surface import cells, layout


def _cells(class_: layout.Document, now: datetime) -> layout.Cells:
    return [cells.name(class_), class_.get("driverName", ""), cells.since_creation(class_, now)]


KIND: Final = alphakind.of(
    resourceclass.ResourceClass,
    table=layout.Layout(
        (layout.NAME, layout.text("DriverName", "The driver that allocates claims of the class."), layout.AGE), _cells
    ),
)
