"""Admission requests: writes as policies and webhooks see them.

They are made from a proposal or a removal. Objects are in the requested version, as clients see them. A request through
a subresource of another kind, such as a binding, has an object of that kind.
"""

from collections.abc import Mapping
from typing import Any, Final

from drachma.server import status
from drachma.server.admission.proposal import Proposal, Removal
from drachma.server.calls import options
from drachma.server.kinds.autoscaling import scaleform
from drachma.server.surface import verbs
from drachma.server.surface.strategy import Write

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"

Document = Mapping[str, Any]

NAMESPACES: Final = "namespaces"
_NO_LABELS: Final[Mapping[str, str]] = {}
_OPTIONS_VERSION: Final = "meta.k8s.io/v1"


class Request:
    """One request. ``name`` and ``namespace`` are those in the client's request."""

    __slots__ = ("is_dry_run", "name", "namespace", "operation", "options", "subresource", "write")

    def __init__(self, write: Write, *, operation: str, name: str, options: Document) -> None:
        self.write: Final = write
        self.operation: Final = operation
        self.name: Final = name
        self.subresource: Final = write.subresource
        # For admission, a namespace is in itself.
        self.namespace: Final = name if write.resource.group_resource == NAMESPACES else write.namespace
        self.options: Final = options
        self.is_dry_run: Final = "dryRun" in options

    def object(self, version: str) -> Document | None:
        """Return the new object; None for a deletion."""
        return None

    def old_object(self, version: str) -> Document | None:
        """Return the stored object; None for a creation."""
        return None

    def labels(self) -> tuple[Mapping[str, str] | None, Mapping[str, str] | None]:
        """Return the labels of the new and of the stored object; None if there is no such object."""
        return None, None

    def kind(self, version: str) -> Document:
        """Return the group, version and kind of the object."""
        resource = self.write.resource
        below = resource.subresource(self.subresource) if self.subresource else None
        if below is not None and below.kind:
            group, _, own_version = below.api_version.rpartition("/")
            return {"group": group, "version": own_version, "kind": below.kind}
        return {"group": resource.group, "version": version, "kind": resource.kind}

    def resource(self, version: str) -> Document:
        """Return the group, version and resource of the object."""
        resource = self.write.resource
        return {"group": resource.group, "version": version, "resource": resource.plural}

    def document(self, version: str) -> dict[str, Any]:
        """Return the AdmissionRequest without its objects, for a version."""
        own, user = self.write.version, self.write.user
        info = {"username": user.name, "uid": user.uid, "groups": list(user.groups)}
        info["extra"] = {key: list(texts) for key, texts in user.extra.items()}  # type: ignore[assignment]
        request = {
            "kind": self.kind(version),
            "resource": self.resource(version),
            "subResource": self.subresource,
            "requestKind": self.kind(own),
            "requestResource": self.resource(own),
            "requestSubResource": self.subresource,
            "name": self.name,
            "namespace": self.namespace,
            "operation": self.operation,
            "userInfo": {field: value for field, value in info.items() if value},
        }
        fields = {field: value for field, value in request.items() if value or field == "userInfo"}
        return {**fields, "dryRun": self.is_dry_run, "options": self.options}

    def display_name(self) -> str:
        """Name of the object in refusals."""
        return self.name or "Unknown"

    def forbidden(self, detail: str) -> status.StatusError:
        """Return a refusal."""
        return status.forbidden(self.write.resource, self.display_name(), detail=detail)


class WriteRequest(Request):
    """A request to store an object."""

    __slots__ = ("proposal",)

    def __init__(self, proposal: Proposal) -> None:
        existing, write = proposal.stored, proposal.write
        is_new = existing is None or write.subresource == "binding"
        super().__init__(
            write,
            operation=CREATE if is_new else UPDATE,
            name=proposal.name,
            options=_write_options(proposal.options, "CreateOptions" if is_new else "UpdateOptions"),
        )
        self.proposal: Final = proposal

    def object(self, version: str) -> Document | None:
        if self.subresource == "binding":
            return _binding(self.proposal)
        return self._serve(self.proposal.document(), version)

    def old_object(self, version: str) -> Document | None:
        existing = self.proposal.stored
        if existing is None or self.operation == CREATE:
            return None
        return self._serve(existing.value, version)

    def _serve(self, document: Document, version: str) -> Document:
        served = self.proposal.strategy.serve(document, version)
        if self.subresource == scaleform.NAME:
            return scaleform.from_workload(served, self.write.resource, version=version)
        return served

    def labels(self) -> tuple[Mapping[str, str] | None, Mapping[str, str] | None]:
        existing = self.proposal.stored
        if self.subresource == scaleform.NAME:
            # Scales have no labels.
            return _NO_LABELS, _NO_LABELS
        old = None if existing is None or self.operation == CREATE else existing.value["metadata"].get("labels")
        has_old = existing is not None and self.operation != CREATE
        return self.proposal.subject.metadata.get("labels") or _NO_LABELS, (old or _NO_LABELS) if has_old else None

    def display_name(self) -> str:
        metadata = self.proposal.subject.metadata
        return self.name or metadata.get("name") or metadata.get("generateName") or "Unknown"


class RemovalRequest(Request):
    """A request to delete an object, or to evict a pod."""

    __slots__ = ("removal",)

    def __init__(self, removal: Removal) -> None:
        write = removal.write
        # Objects of a collection are deleted one by one, and the request does not name them.
        name = "" if write.verb == verbs.DELETE_COLLECTION else write.name
        is_eviction = write.subresource == "eviction"
        document = _delete_options(removal.options)
        super().__init__(
            write,
            operation=CREATE if is_eviction else DELETE,
            name=name,
            options={**document, "kind": "CreateOptions"} if is_eviction else document,
        )
        self.removal: Final = removal

    def object(self, version: str) -> Document | None:
        if self.operation != CREATE:
            return None
        metadata = {"name": self.write.name, "namespace": self.write.namespace}
        return {"kind": "Eviction", "apiVersion": "policy/v1", "metadata": metadata}

    def old_object(self, version: str) -> Document | None:
        if self.operation == CREATE:
            return None
        return self.write.served.strategy.serve(self.removal.stored.value, version)

    def labels(self) -> tuple[Mapping[str, str] | None, Mapping[str, str] | None]:
        if self.operation == CREATE:
            return _NO_LABELS, None
        return None, self.removal.stored.value["metadata"].get("labels") or _NO_LABELS


def _binding(proposal: Proposal) -> Document:
    metadata = proposal.subject.metadata
    node = proposal.subject.content["spec"].get("nodeName", "")
    return {
        "kind": "Binding",
        "apiVersion": "v1",
        "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
        "target": {"kind": "Node", "name": node},
    }


def _write_options(write_options: options.WriteOptions, kind: str) -> Document:
    document: dict[str, Any] = {"kind": kind, "apiVersion": _OPTIONS_VERSION}
    if write_options.is_dry_run:
        document["dryRun"] = ["All"]
    if write_options.field_manager:
        document["fieldManager"] = write_options.field_manager
    if write_options.field_validation != "Warn":
        document["fieldValidation"] = write_options.field_validation
    return document


def _delete_options(delete_options: options.DeleteOptions) -> Document:
    conditions = {"uid": delete_options.uid, "resourceVersion": delete_options.resource_version}
    fields = {
        "gracePeriodSeconds": delete_options.grace_period_seconds,
        "preconditions": {field: value for field, value in conditions.items() if value is not None} or None,
        "orphanDependents": delete_options.orphan_dependents,
        "propagationPolicy": delete_options.propagation_policy,
        "dryRun": ["All"] if delete_options.is_dry_run else None,
    }
    set_fields = {field: value for field, value in fields.items() if value is not None}
    return {"kind": "DeleteOptions", "apiVersion": _OPTIONS_VERSION, **set_fields}
