"""Other forms of an answer: a Table with Kubernetes' columns, or the metadata of objects alone.

The wire calls these with documents as they would be sent, in the version of the request; nothing given is changed.

Public: ``of_list(listing, resource, *, now, include, is_headless)``, ``of_object(document, resource, ...)``,
``metadata_of(document)``, ``metadata_of_list(listing)``.
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
"""What rows carry beside their cells: the values of ``includeObject``."""


def of_list(
    listing: Document,
    resource: resources.Resource,
    *,
    now: datetime,
    include: str = METADATA,
    meta_version: str = "v1",
    is_headless: bool = False,
) -> Document:
    """The Table of a list."""
    metadata = {key: value for key, value in listing.get("metadata", {}).items() if key != "selfLink"}
    layout = resource.layout_in(listing.get("apiVersion", ""))
    rows = _rows(listing.get("items") or [], layout, now=now, include=include, meta_version=meta_version)
    return _table(rows, layout, metadata=metadata, meta_version=meta_version, is_headless=is_headless)


def of_object(
    document: Document,
    resource: resources.Resource,
    *,
    now: datetime,
    include: str = METADATA,
    meta_version: str = "v1",
    is_headless: bool = False,
) -> Document:
    """The Table of a single object, also for watches; those have their columns only in the first event."""
    version = document.get("metadata", {}).get("resourceVersion")
    layout = resource.layout_in(document.get("apiVersion", ""))
    rows = _rows([document], layout, now=now, include=include, meta_version=meta_version)
    metadata = {"resourceVersion": version} if version else {}
    return _table(rows, layout, metadata=metadata, meta_version=meta_version, is_headless=is_headless)


def metadata_of(document: Document, *, meta_version: str = "v1") -> Document:
    """An object's PartialObjectMetadata."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{meta_version}",
        "metadata": document.get("metadata", {}),
    }


def metadata_of_list(listing: Document, *, meta_version: str = "v1") -> Document:
    """A list's PartialObjectMetadataList."""
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": f"meta.k8s.io/{meta_version}",
        "metadata": listing.get("metadata", {}),
        "items": [metadata_of(item, meta_version=meta_version) for item in listing.get("items") or []],
    }


def _table(
    rows: list[Document], layout: layouts.Layout, *, metadata: Document, meta_version: str, is_headless: bool
) -> Document:
    shown = None if is_headless else [msgspec.to_builtins(column) for column in layout.columns]
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{meta_version}",
        "metadata": metadata,
        "columnDefinitions": shown,
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
        row["object"] = _included(item, include, meta_version)
        rows.append(row)
    return rows


def _included(item: Document, include: str, meta_version: str) -> Document | None:
    match include:
        case "Object":
            return item
        case "None":
            return None
        case _:
            return metadata_of(item, meta_version=meta_version)
