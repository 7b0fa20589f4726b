"""The annotation in which client-side ``kubectl apply`` keeps its last configuration, where server-side apply meets it.

When kubectl changes over to server-side apply, fields that still are as it last applied them do not conflict, and the
annotation is kept up to date, so that it can change back.

Public: ``MANAGER``, ``unchanged_fields(live, *, kind) -> FieldSet``, ``refreshed(document, applied) -> document``.
"""

import json
from typing import Any, Final

from drachma.server import documents
from drachma.server.ownership import comparison, fieldset, managedfields, managers
from drachma.server.ownership.managers import Document

MANAGER: Final = "kubectl"
ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
_LIMIT: Final = 256 * 1024
_ESCAPES: Final = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


def unchanged_fields(live: Document, *, kind: managers.Kind) -> fieldset.FieldSet:
    """The fields of the last configuration that the live document still has as they were; none if there is none."""
    text = _annotations(live).get(ANNOTATION)
    try:
        last = json.loads(text or "null")
    except ValueError:
        return {}
    if not isinstance(last, dict) or last.get("apiVersion") != kind.api_version:
        return {}
    try:
        fields = comparison.fields_of(last, schema=kind.schema)
        compared = comparison.compare(last, managedfields.without_owners(live), schema=kind.schema)
    except comparison.UnidentifiedError:
        return {}
    for changed in compared:
        fields = fieldset.difference(fields, changed)
    return fields


def refreshed(document: Document, applied: Document) -> Document:
    """The document with the annotation of this configuration, if it had one before and it is not too long."""
    annotations = _annotations(document)
    if not annotations.get(ANNOTATION):
        return document
    annotations = {**annotations, ANNOTATION: _written(applied)}
    if sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items()) > _LIMIT:
        del annotations[ANNOTATION]
    return {**document, "metadata": {**document["metadata"], "annotations": annotations}}


def _written(applied: Document) -> str:
    """The configuration as the annotation has it: without the annotation itself."""
    document = documents.copy(applied)
    annotations = document.get("metadata", {}).get("annotations")
    if isinstance(annotations, dict):
        annotations.pop(ANNOTATION, None)
    text = json.dumps(document, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return text.translate(_ESCAPES) + "\n"


def _annotations(document: Document) -> dict[str, Any]:
    found = document.get("metadata", {}).get("annotations")
    return found if isinstance(found, dict) else {}
