"""Admission requests: what a write asks for, as policies and webhooks look at it.

Made of a proposal or a removal by the steps that ask policies or webhooks. Objects are shown in the version that is
asked for, as clients see them; a request of another kind, such as the binding of a pod, has an object of that kind.
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
    """One request. ``name`` and ``namespace`` are those that the client named, or is known by."""

    __slots__ = ("is_dry_run", "name", "namespace", "operation", "options", "subresource", "write")

    def __init__(self, write: Write, *, operation: str, name: str, options: Document) -> None:
        self.write: Final = write
        self.operation: Final = operation
        self.name: Final = name
        self.subresource: Final = write.subresource
        # A namespace is in itself, as far as admission goes.
        self.namespace: Final = name if write.resource.group_resource == NAMESPACES else write.namespace
        self.options: Final = options
        self.is_dry_run: Final = "dryRun" in options

    def object(self, version: str) -> Document | None:
        """The object as it would be; None for a deletion."""
        return None

    def old_object(self, version: str) -> Document | None:
        """The object as it is; None for a creation."""
        return None

    def labels(self) -> tuple[Mapping[str, str] | None, Mapping[str, str] | None]:
        """The labels of the object and of the old one; None where there is no such object."""
        return None, None

    def kind(self, version: str) -> Document:
        """What the object is, in a version."""
        resource = self.write.resource
        below = resource.subresource(self.subresource) if self.subresource else None
        if below is not None and below.kind:
            group, _, own_version = below.api_version.rpartition("/")
            return {"group": group, "version": own_version, "kind": below.kind}
        return {"group": resource.group, "version": version, "kind": resource.kind}

    def resource(self, version: str) -> Document:
        """Where the object is, in a version."""
        resource = self.write.resource
        return {"group": resource.group, "version": version, "resource": resource.plural}

    def document(self, version: str) -> dict[str, Any]:
        """The AdmissionRequest without its objects, for who matches it in a version."""
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
        written = {field: value for field, value in request.items() if value or field == "userInfo"}
        return {**written, "dryRun": self.is_dry_run, "options": self.options}

    def shown_name(self) -> str:
        """The name that refusals show."""
        return self.name or "Unknown"

    def forbidden(self, detail: str) -> status.StatusError:
        """A refusal."""
        return status.forbidden(self.write.resource, self.shown_name(), detail=detail)


class WriteRequest(Request):
    """A request to store something."""

    __slots__ = ("proposal",)

    def __init__(self, proposal: Proposal) -> None:
        stored, write = proposal.stored, proposal.write
        is_new = stored is None or write.subresource == "binding"
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
        return self._shown(self.proposal.document(), version)

    def old_object(self, version: str) -> Document | None:
        stored = self.proposal.stored
        if stored is None or self.operation == CREATE:
            return None
        return self._shown(stored.value, version)

    def _shown(self, document: Document, version: str) -> Document:
        served = self.proposal.strategy.serve(document, version)
        if self.subresource == scaleform.SUBRESOURCE:
            return scaleform.made(served, self.write.resource, version=version)
        return served

    def labels(self) -> tuple[Mapping[str, str] | None, Mapping[str, str] | None]:
        stored = self.proposal.stored
        if self.subresource == scaleform.SUBRESOURCE:
            # Scales have none.
            return _NO_LABELS, _NO_LABELS
        old = None if stored is None or self.operation == CREATE else stored.value["metadata"].get("labels")
        has_old = stored is not None and self.operation != CREATE
        return self.proposal.subject.metadata.get("labels") or _NO_LABELS, (old or _NO_LABELS) if has_old else None

    def shown_name(self) -> str:
        metadata = self.proposal.subject.metadata
        return self.name or metadata.get("name") or metadata.get("generateName") or "Unknown"


class RemovalRequest(Request):
    """A request to delete something, or to evict a pod."""

    __slots__ = ("removal",)

    def __init__(self, removal: Removal) -> None:
        write = removal.write
        # Objects of a collection are deleted one by one, and nobody named them.
        name = "" if write.verb == verbs.DELETE_COLLECTION else write.name
        is_eviction = write.subresource == "eviction"
        shown = _delete_options(removal.options)
        super().__init__(
            write,
            operation=CREATE if is_eviction else DELETE,
            name=name,
            options={**shown, "kind": "CreateOptions"} if is_eviction else shown,
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


def _write_options(given: options.WriteOptions, kind: str) -> Document:
    shown: dict[str, Any] = {"kind": kind, "apiVersion": _OPTIONS_VERSION}
    if given.is_dry_run:
        shown["dryRun"] = ["All"]
    if given.field_manager:
        shown["fieldManager"] = given.field_manager
    if given.field_validation != "Warn":
        shown["fieldValidation"] = given.field_validation
    return shown


def _delete_options(given: options.DeleteOptions) -> Document:
    conditions = {"uid": given.uid, "resourceVersion": given.resource_version}
    shown = {
        "gracePeriodSeconds": given.grace_period_seconds,
        "preconditions": {field: value for field, value in conditions.items() if value is not None} or None,
        "orphanDependents": given.orphan_dependents,
        "propagationPolicy": given.propagation_policy,
        "dryRun": ["All"] if given.is_dry_run else None,
    }
    written = {field: value for field, value in shown.items() if value is not None}
    return {"kind": "DeleteOptions", "apiVersion": _OPTIONS_VERSION, **written}
