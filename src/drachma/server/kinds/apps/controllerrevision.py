"""Controller revisions: what a daemon set or stateful set looked like at some time, kept for going back to it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import cells, layout
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject
from drachma.validation import fielderror, metadata, rendering
from drachma.validation.fielderror import Errors
from drachma.validation.path import Path
from drachma.validation.podspec import choices

_TYPES: Final = """\
ControllerRevision: apiVersion=str data=RawExtension!* kind=str metadata=ObjectMeta! revision=int64!/0
"""
_NUMBERS: Final = """\
ControllerRevision: metadata data revision
"""
_TEXTS: Final = """\
ControllerRevision: What a workload looked like at some time, kept for going back to it.
ControllerRevision.data: The state.
ControllerRevision.revision: Its number.
"""
_PACKAGE: Final = notation.Types("io.k8s.api.apps.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,))


class ControllerRevisionStrategy(DocumentStrategy):
    def check(self, content: Document, subject: Subject) -> Errors:
        if content.get("data") is None:
            yield fielderror.required(Path("data"), "data is mandatory")
        yield from choices.not_negative(content.get("revision", 0), Path("revision"))

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        if content.get("data") != old.get("data"):
            yield fielderror.invalid(Path("data"), rendering.wire(content.get("data")), metadata.IMMUTABLE)


def _cells(revision: Document, now: datetime) -> layout.Cells:
    owners = cells.part(revision, "metadata").get("ownerReferences") or ()
    owner = next((each for each in owners if each.get("controller")), None)
    group = owner["apiVersion"].rpartition("/")[0] if owner else ""
    kind = owner["kind"].lower() if owner else ""
    controller = f"{kind}{'.' + group if group else ''}/{owner['name']}" if owner else "<none>"
    return [cells.name(revision), controller, revision.get("revision", 0), cells.since_creation(revision, now)]


KIND: Final = Kind(
    group="apps",
    versions=("v1",),
    plural="controllerrevisions",
    kind="ControllerRevision",
    namespaced=True,
    schemas={"v1": _PACKAGE.object("ControllerRevision")},
    layout=layout.Layout(
        (
            layout.NAME,
            layout.text("Controller", "Whose state it is."),
            layout.integer("Revision", "The number of the state."),
            layout.AGE,
        ),
        _cells,
    ),
    strategy=ControllerRevisionStrategy,
)
