"""Classes of container runtimes that pods can ask for."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server.kinds.core import podtypes
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import runtimeclass
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
Overhead: podFixed=<Quantity>
RuntimeClass: apiVersion=str handler=str* kind=str metadata=ObjectMeta! overhead=Overhead scheduling=Scheduling
Scheduling: nodeSelector=<<str>> tolerations=[Toleration]
"""
_NUMBERS: Final = """\
Overhead: podFixed
RuntimeClass: metadata handler overhead scheduling
Scheduling: nodeSelector tolerations
"""
_TEXTS: Final = """\
RuntimeClass: A class of container runtimes that pods can ask for.
RuntimeClass.handler: What container runtimes call it.
RuntimeClass.overhead: What a pod of the class takes beside its containers.
RuntimeClass.scheduling: Which nodes have such a runtime.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.node.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META, podtypes.PODS)
)


class RuntimeClassStrategy(DocumentStrategy):
    def check(self, content: Document, subject: Subject) -> Errors:
        yield from runtimeclass.check(content)

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from runtimeclass.check_update(content, old)


def _cells(runtime_class: Document, now: datetime) -> layout.Cells:
    return [cells.name(runtime_class), runtime_class.get("handler", ""), cells.since_creation(runtime_class, now)]


KIND: Final = Kind(
    group="node.k8s.io",
    versions=("v1",),
    plural="runtimeclasses",
    kind="RuntimeClass",
    namespaced=False,
    schemas={"v1": _PACKAGE.object("RuntimeClass")},
    layout=layout.Layout((layout.NAME, layout.text("Handler", "What container runtimes call it."), layout.AGE), _cells),
    strategy=RuntimeClassStrategy,
)
