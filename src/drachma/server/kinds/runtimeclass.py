"""Runtime classes: container runtimes that pods can request."""

from datetime import datetime
from typing import Final

from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import cells, layout
from drachma.server.surface.apisurface import Kind
from drachma.validation import node


def _cells(runtime_class: Document, now: datetime) -> layout.Cells:
    return [cells.name(runtime_class), runtime_class.get("handler", ""), cells.since_creation(runtime_class, now)]


KIND: Final = Kind(
    group="node.k8s.io",
    versions=("v1",),
    plural="runtimeclasses",
    kind="RuntimeClass",
    namespaced=False,
    layout=layout.Layout(
        (layout.NAME, layout.text("Handler", "The handler in container runtimes."), layout.AGE), _cells
    ),
    rules=node.KINDS["RuntimeClass"],
    strategy=DocumentStrategy,
)
