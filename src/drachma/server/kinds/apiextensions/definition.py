"""A parsed custom resource definition."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from drachma.server.surface.resources import ScalePaths
from drachma.validation.structural import customresource, schema

Document = Mapping[str, Any]


class Version:
    """One version of a definition: schema, subresources, columns and selectable fields."""

    def __init__(self, document: Document, *, keeps_all: bool) -> None:
        self.name: Final[str] = document["name"]
        self.is_served: Final = bool(document.get("served"))
        self.is_storage: Final = bool(document.get("storage"))
        self.document: Final = document
        self.written: Final[Document] = (document.get("schema") or {}).get("openAPIV3Schema") or {}
        self._subresources: Final[Document] = document.get("subresources") or {}
        self._keeps_all: Final = keeps_all

    @functools.cached_property
    def structure(self) -> customresource.Structure:
        return customresource.Structure(schema.parse(self.written), keeps_all=self._keeps_all)

    @property
    def has_status(self) -> bool:
        return "status" in self._subresources

    @functools.cached_property
    def scale(self) -> ScalePaths | None:
        scale = self._subresources.get("scale")
        if scale is None:
            return None
        paths = [scale.get(field, "") for field in ("specReplicasPath", "statusReplicasPath", "labelSelectorPath")]
        spec, status, selector = (tuple(path.removeprefix(".").split(".")) if path else () for path in paths)
        shown_paths = (paths[0], paths[1], paths[2])
        return ScalePaths(replicas=spec, status_replicas=status, selector=selector, written=shown_paths)

    @property
    def columns(self) -> Sequence[Document]:
        return self.document.get("additionalPrinterColumns") or ()

    @property
    def selectable_fields(self) -> Sequence[str]:
        return [each["jsonPath"].removeprefix(".") for each in self.document.get("selectableFields") or ()]


class Definition:
    """A definition whose names are accepted. ``revision`` is the revision of its record."""

    def __init__(self, document: Document, *, revision: int) -> None:
        self.document: Final = document
        self.revision: Final = revision
        spec = document["spec"]
        self.name: Final[str] = document["metadata"]["name"]
        self.group: Final[str] = spec["group"]
        self.names: Final[Document] = (document.get("status") or {}).get("acceptedNames") or spec["names"]
        self.is_namespaced: Final = spec["scope"] == "Namespaced"
        keeps_all = bool(spec.get("preserveUnknownFields"))
        self.versions: Final = {each["name"]: Version(each, keeps_all=keeps_all) for each in spec["versions"]}
        self.storage: Final = next(each for each in self.versions.values() if each.is_storage)

    def is_like(self, other: "Definition") -> bool:
        """Return True if both definitions define the same kind; conditions and deletion do not matter."""
        return self.document["spec"] == other.document["spec"] and self.names == other.names

    @property
    def conversion(self) -> Document | None:
        """Conversion by a webhook; None if versions differ in their schemas only."""
        conversion: Document = self.document["spec"].get("conversion") or {}
        return conversion if conversion.get("strategy") == "Webhook" else None

    @property
    def served(self) -> Sequence[Version]:
        """Served versions."""
        return [each for each in self.versions.values() if each.is_served]

    def deprecations(self) -> Mapping[str, str]:
        """Warnings for clients that use a deprecated version, by version."""
        texts = {}
        fresh = [each for each in self.served if not each.document.get("deprecated")]
        for each in self.served:
            if each.document.get("deprecated"):
                texts[each.name] = each.document.get("deprecationWarning") or self._deprecation(each, fresh)
        return texts

    def _deprecation(self, version: Version, newer: Sequence[Version]) -> str:
        kind = self.names["kind"]
        text = f"{self.group}/{version.name} {kind} is deprecated"
        return f"{text}; use {self.group}/{newer[0].name} {kind}" if newer else text
