"""Parameters of claims and classes, as the scheduler understands them."""

from datetime import datetime
from typing import Final

from drachma.api.v1alpha2 import parameters
from drachma.server.kinds.resource.v1alpha2 import alphakind
from drachma.server.surface import cells, layout


def _cells(document: layout.Document, now: datetime) -> layout.Cells:
    source = cells.part(document, "generatedFrom")
    origin = f"{source['kind']}/{source.get('name', '')}" if source.get("kind") else ""
    return [cells.name(document), origin, cells.since_creation(document, now)]


_TABLE: Final = layout.Layout(
    (layout.NAME, layout.text("GeneratedFrom", "The object that the parameters were generated from."), layout.AGE),
    _cells,
)
CLAIM: Final = alphakind.of(parameters.ResourceClaimParameters, table=_TABLE)
CLASS: Final = alphakind.of(parameters.ResourceClassParameters, table=_TABLE)
