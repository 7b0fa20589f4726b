"""Events of ``events.k8s.io``: the events of the core group with other field names, stored once.

Validation is stricter in this shape: eventTime to the microsecond and a reporting controller are required, deprecated
counts are refused, and an update may only change the series.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.api import types
from drachma.server.kinds.core import event as core
from drachma.server.kinds.document import Document
from drachma.server.schema import emptyfields
from drachma.server.surface import layout, resources, selectable
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import event, metadata
from drachma.validation.fielderror import FieldError

_EVENT: Final = types.get("events.k8s.io/v1.Event")

_NAMES: Final = {
    "deprecatedCount": "count",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedSource": "source",
    "note": "message",
    "regarding": "involvedObject",
    "reportingController": "reportingComponent",
}
"""Names of fields in the core group, by their names here."""

_NAMES_BY_STORED: Final = {core_name: name for name, core_name in _NAMES.items()}


class EventStrategy(core.EventStrategy):
    """Strategy that reads and serves this shape, and works on the stored shape in between."""

    name_rule = staticmethod(metadata.dns_subdomain)
    qualifies_finalizers = True

    def check_create(self, content: Document, subject: Subject, metadata_errors: list[FieldError]) -> list[FieldError]:
        return [*self.check(content, subject), *metadata_errors, *self.check_new(content, subject)]

    def stored_form(self, resource: resources.Resource) -> resources.Resource:
        return core.KIND

    def normalize(self, fields: Document, write: Write) -> Document:
        # An unknown field of this shape must not turn into a known field of the stored shape.
        own = {field: value for field, value in super().normalize(fields, write).items() if field in _EVENT.fields}
        return _rename(own, _NAMES)

    def convert(self, document: Mapping[str, Any], version: str) -> Mapping[str, Any]:
        api_version = self._api_versions[version]
        if document["apiVersion"] == api_version:
            return document
        served = _rename({**document, "apiVersion": api_version}, _NAMES_BY_STORED)
        for field in ("reportingController", "reportingInstance"):
            # The core group writes these fields even if they are empty.
            if not served.get(field):
                served.pop(field, None)
        emptyfields.fill(served, self.resource.schema(version))
        return served

    serve = convert


def _rename(document: Mapping[str, Any], names: Mapping[str, str]) -> Document:
    return {names.get(field, field): value for field, value in document.items()}


def _cells(event: Document, now: datetime) -> layout.Cells:
    return core.KIND.layout.cells(_rename(event, _NAMES), now)


def _reader(field: str) -> selectable.Read:
    first, *steps = field.split(".")
    path = (_NAMES.get(first, first), *steps)
    return lambda event: selectable.dig(event, path) or ""


_FIELDS: Final = frozenset(
    {
        "reason",
        "regarding.apiVersion",
        "regarding.fieldPath",
        "regarding.kind",
        "regarding.name",
        "regarding.namespace",
        "regarding.resourceVersion",
        "regarding.uid",
        "reportingController",
        "type",
    }
)

KIND: Final = Kind(
    group="events.k8s.io",
    versions=("v1",),
    plural="events",
    kind="Event",
    namespaced=True,
    short_names=("ev",),
    stored_as="events",
    traits=resources.Traits(creates_on_update=True, has_dependents=False),
    layout=layout.Layout(core.KIND.layout.columns, _cells),
    selectable=selectable.Selectable(
        fields=_FIELDS | {selectable.NAME, selectable.NAMESPACE},
        special={field: _reader(field) for field in _FIELDS},
        unknown=selectable.unknown_in_core,
    ),
    rules=event.KINDS["NewerEvent"],
    strategy=EventStrategy,
)
