"""The strategy of claims and their templates, of which there are many that are written alike but for their metadata.

What follows from a field of them alone is derived from parts (:mod:`drachma.server.parts`). What is wrong with them,
and what is stored, is no other than for the rest of ``resource.k8s.io``.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec import structs

from drachma import errors
from drachma.api import codec, defaults, meta
from drachma.server import objectmeta
from drachma.server.kinds.resource.devicestrategy import DeviceStrategy
from drachma.server.surface import resources
from drachma.server.surface.strategy import Environment, Subject, Write
from drachma.validation import authorization, context, writes

_NEVER: Final = datetime.min.replace(tzinfo=UTC)
"""For what does not depend on the time, as everything that is said about claims when they are made."""


class ClaimStrategy(DeviceStrategy):
    """Claims and templates, whose fields are always stored."""

    def __init__(self, resource: resources.Resource, environment: Environment) -> None:
        super().__init__(resource, environment)
        self._interner = environment.interner
        self._blank = self._kind.model()

    def read(self, document: dict[str, Any], write: Write) -> Subject:
        try:
            own = objectmeta.read(document.get("metadata", {}))
            return Subject(own, self._kind.model(**self._typed_fields(document)))
        except (msgspec.ValidationError, errors.DecodeError):
            # As a whole it may have nulls, and where something is wrong with it, that is what clients are told about.
            return super().read(document, write)

    def take(self, made: meta.Object, write: Write) -> Subject:
        part = self._interner.part
        fields = {field: part(getattr(made, field)).changed(self._defaulted, field).value for field in self._fields}
        return Subject(objectmeta.normalized(made.metadata), self._kind.model(**fields))

    def restate(self, old: Subject, status: Any, *, fields: tuple[str, ...] = ()) -> Subject:
        return super().restate(old, self._defaulted(status, "status"), fields=fields)

    def _defaulted(self, value: Any, field: str) -> Any:
        return getattr(defaults.apply(structs.replace(self._blank, **{field: value}), now=_NEVER), field)

    def _typed_fields(self, document: Mapping[str, Any]) -> dict[str, Any]:
        part, api_version = self._interner.part, document["apiVersion"]
        fields = {}
        for field in self._fields:
            if field in document:
                fields[field] = part(document[field]).changed(self._typed, field, api_version).value
        return fields

    def _typed(self, value: Any, field: str, api_version: str) -> Any:
        given = codec.decode({"apiVersion": api_version, "kind": self._resource.kind, field: value})
        return getattr(defaults.apply(given, now=_NEVER), field)

    def document(self, subject: Subject) -> dict[str, Any]:
        part = self._interner.part
        return {
            "kind": self._resource.kind,
            "apiVersion": self._api_version,
            "metadata": subject.metadata,
            **{
                field: part(getattr(subject.content, field)).changed(self._stored, field).value
                for field in self._fields
            },
        }

    def create(self, subject: Subject, write: Write) -> None:
        given = self._whole(subject)
        admin_access = self._namespace_labels(write).get(authorization.ADMIN_ACCESS_LABEL)
        spec = self._interner.part(subject.content.spec)
        examination = spec.derive(self._examine, self._served[write.version], admin_access)
        self._accept(subject, given, writes.judge_new(examination, given.metadata), write=write)

    def _examine(self, spec: Any, api_version: str, admin_access: str | None) -> writes.Examination[meta.Object]:
        labels = {} if admin_access is None else {authorization.ADMIN_ACCESS_LABEL: admin_access}
        made_alike = context.Context(now=_NEVER, gates=self._gates, api_version=api_version, namespace_labels=labels)
        return writes.examine_new(structs.replace(self._blank, spec=spec), made_alike)
