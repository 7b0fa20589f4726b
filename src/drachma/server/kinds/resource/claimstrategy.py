"""Strategy of claims and claim templates, many of which differ in metadata only.

Results that depend on one field are derived once for equal fields (:mod:`drachma.server.parts`). Validation and stored
form are those of :mod:`drachma.server.kinds.resource.devicestrategy`.
"""

from collections.abc import Hashable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec import structs

from drachma import errors
from drachma.api import codec, defaults, meta, resourceclaim
from drachma.server import objectmeta
from drachma.server.kinds.resource.devicestrategy import DeviceFastPath, DeviceStrategy
from drachma.server.surface import resources
from drachma.server.surface.strategy import Environment, Marks, Subject, Write
from drachma.validation import authorization, context, writes

_NEVER: Final = datetime.min.replace(tzinfo=UTC)
"""Time for defaults and validation that do not depend on the time, such as those of new claims."""


_LABEL_LENGTH: Final = 63


class ClaimStrategy(DeviceStrategy):
    """Strategy of claims and claim templates."""

    def __init__(self, resource: resources.Resource, environment: Environment) -> None:
        super().__init__(resource, environment)
        self._interner = environment.interner
        self._blank = self._kind.model()

    def read(self, document: dict[str, Any], write: Write) -> Subject:
        try:
            own = objectmeta.read(document.get("metadata", {}))
            return Subject(own, self._kind.model(**self._typed_fields(document)))
        except (msgspec.ValidationError, errors.DecodeError):
            # The slow path accepts nulls, and reports problems of the document as a whole.
            return super().read(document, write)

    def read_fields(self, new: meta.Object) -> meta.Object:
        """Return the fields of an object in its v1 form with defaults, and without metadata."""
        part = self._interner.part
        fields = {field: part(getattr(new, field)).changed(self.default_field, field).value for field in self._fields}
        return self._kind.model(**fields)

    def default_field(self, value: Any, field: str) -> Any:
        """Return the typed value of a top-level field with defaults."""
        return getattr(defaults.apply(structs.replace(self._blank, **{field: value}), now=_NEVER), field)

    def _typed_fields(self, document: Mapping[str, Any]) -> dict[str, Any]:
        part, api_version = self._interner.part, document["apiVersion"]
        fields = {}
        for field in self._fields:
            if field in document:
                fields[field] = part(document[field]).changed(self._typed, field, api_version).value
        return fields

    def _typed(self, value: Any, field: str, api_version: str) -> Any:
        decoded = codec.decode({"apiVersion": api_version, "kind": self._resource.kind, field: value})
        return getattr(defaults.apply(decoded, now=_NEVER), field)

    def _whole_document(self, subject: Subject) -> dict[str, Any]:
        part = self._interner.part
        return {
            "kind": self._resource.kind,
            "apiVersion": self._api_version,
            "metadata": subject.metadata,
            **{
                field: part(getattr(subject.content, field)).changed(self._stored_field, field).value
                for field in self._fields
            },
        }

    def create(self, subject: Subject, write: Write) -> None:
        claim = self._object(subject)
        admin_access = self._namespace_labels(write).get(authorization.ADMIN_ACCESS_LABEL)
        spec = self._interner.part(subject.content.spec)
        examination = spec.derive(self._examine, self._served[write.version], admin_access)
        self._accept(subject, claim, writes.judge_new(examination, claim.metadata), write=write)

    def read_status_permission(self, write: Write) -> str | None:
        """Return why the user of a write may not allocate or reserve claims, or None."""
        if not write.subresource or self._status_authorizer is None:
            return None
        return self._status_authorizer(write).refusal(verb=write.verb, subresource="binding", namespace="", name="")

    def _examine(self, spec: Any, api_version: str, admin_access: str | None) -> writes.Examination[meta.Object]:
        labels = {} if admin_access is None else {authorization.ADMIN_ACCESS_LABEL: admin_access}
        rules_context = context.Context(now=_NEVER, gates=self._gates, api_version=api_version, namespace_labels=labels)
        return writes.examine_new(structs.replace(self._blank, spec=spec), rules_context)


class ClaimFastPath(DeviceFastPath):
    """Fast path that shares equal fields of claims, and decisions about claims that differ in names."""

    def __init__(self, strategy: ClaimStrategy) -> None:
        super().__init__(strategy)
        self._claims: Final = strategy

    def read_object(self, new: meta.Object, write: Write) -> Subject:
        return Subject(objectmeta.normalized(new.metadata), self._claims.read_fields(new))

    def with_status(
        self, stored_document: Mapping[str, Any], old: Subject, status: Any, *, fields: tuple[str, ...] = ()
    ) -> Subject:
        return super().with_status(stored_document, old, self._claims.default_field(status, "status"), fields=fields)

    def mark_object(self, new: Any) -> Marks | None:
        own = new.metadata
        owners = own.owner_references
        if not own.name or len(owners) > 1:
            # Managers of several owners are sorted by uid.
            return None
        names = [own.name]
        if own.generate_name:
            names.append(own.generate_name.removesuffix("-"))
        for owner in owners:
            names += owner.name, owner.uid
        return Marks(tuple(names))

    def mark_status(self, status: Any) -> Marks | None:
        if not isinstance(status, resourceclaim.ResourceClaimStatus) or status.devices or len(status.reserved_for) > 1:
            return None
        names: list[str] = []
        for consumer in status.reserved_for:
            names += consumer.name, consumer.uid
        allocation = status.allocation
        if allocation is not None:
            for result in allocation.devices.results:
                if result.share_id is not None or "." in result.device or len(result.device) > _LABEL_LENGTH:
                    return None
                names += result.pool, result.device
            node = authorization.node_of(allocation)
            if node:
                names.append(node)
        return Marks(tuple(names))

    def mark_stored(self, document: Mapping[str, Any]) -> Marks | None:
        own = document["metadata"]
        owners = own.get("ownerReferences", ())
        if document.get("status") or len(owners) > 1:
            return None
        names = [own["name"], own["uid"]]
        if "generateName" in own:
            names.append(own["generateName"].removesuffix("-"))
        for owner in owners:
            names += owner["name"], owner["uid"]
        return Marks(tuple(names), versions=(own["resourceVersion"],))

    def read_facts(self, write: Write) -> Hashable:
        return self._claims.read_status_permission(write)
