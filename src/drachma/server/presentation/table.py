"""Tables with Kubernetes' columns, and metadata of objects.

The arguments are documents as they would be sent, in the version of the request; they are not changed.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, TypeAlias

import msgspec

from drachma.server.surface import layout as layouts
from drachma.server.surface import resources

Document: TypeAlias = dict[str, Any]

NONE: Final = "None"
METADATA: Final = "Metadata"
OBJECT: Final = "Object"
"""Objects in rows: the values of ``includeObject``."""


def make_list_table(
    listing: Document,
    resource: resources.Resource,
    *,
    now: datetime,
    include: str = METADATA,
    meta_version: str = "v1",
    is_headless: bool = False,
) -> Document:
    """Return the Table of a list."""
    metadata = {key: value for key, value in listing.get("metadata", {}).items() if key != "selfLink"}
    layout = resource.layout_in(listing.get("apiVersion", ""))
    rows = _rows(listing.get("items") or [], layout, now=now, include=include, meta_version=meta_version)
    return _table(rows, layout, metadata=metadata, meta_version=meta_version, is_headless=is_headless)


def make_object_table(
    document: Document,
    resource: resources.Resource,
    *,
    now: datetime,
    include: str = METADATA,
    meta_version: str = "v1",
    is_headless: bool = False,
) -> Document:
    """Return the Table of a single object; watches have column definitions only in their first event."""
    version = document.get("metadata", {}).get("resourceVersion")
    layout = resource.layout_in(document.get("apiVersion", ""))
    rows = _rows([document], layout, now=now, include=include, meta_version=meta_version)
    metadata = {"resourceVersion": version} if version else {}
    return _table(rows, layout, metadata=metadata, meta_version=meta_version, is_headless=is_headless)


def metadata_of(document: Document, *, meta_version: str = "v1") -> Document:
    """Return the PartialObjectMetadata of an object."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{meta_version}",
        "metadata": document.get("metadata", {}),
    }


def metadata_of_list(listing: Document, *, meta_version: str = "v1") -> Document:
    """Return the PartialObjectMetadataList of a list."""
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": f"meta.k8s.io/{meta_version}",
        "metadata": listing.get("metadata", {}),
        "items": [metadata_of(item, meta_version=meta_version) for item in listing.get("items") or []],
    }


def _table(
    rows: list[Document], layout: layouts.Layout, *, metadata: Document, meta_version: str, is_headless: bool
) -> Document:
    columns = None if is_headless else [msgspec.to_builtins(column) for column in layout.columns]
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{meta_version}",
        "metadata": metadata,
        "columnDefinitions": columns,
        "rows": rows,
    }


def _rows(
    items: Iterable[Document], layout: layouts.Layout, *, now: datetime, include: str, meta_version: str
) -> list[Document]:
    rows = []
    for item in items:
        row: Document = {"cells": layout.cells(item, now)}
        conditions = layout.conditions(item)
        if conditions:
            row["conditions"] = list(conditions)
        row["object"] = _row_object(item, include, meta_version)
        rows.append(row)
    return rows


def _row_object(item: Document, include: str, meta_version: str) -> Document | None:
    match include:
        case "Object":
            return item
        case "None":
            return None
        case _:
            return metadata_of(item, meta_version=meta_version)
