"""Certificate signing requests: approvers and signers write conditions and certificates to their status."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.api import certificatesigningrequest as csr
from drachma.api import meta
from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.surface import age, cells, layout, resources, selectable, verbs
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import certificatesigningrequest as rules
from drachma.validation import metadata
from drachma.validation.fielderror import Errors

_SPEAKER: Final = ("username", "uid", "groups", "extra")


class CertificateSigningRequestStrategy(DocumentStrategy):
    name_rule: metadata.NameRule = staticmethod(metadata.path_segment)

    def prepare_create(self, content: Document, metadata: objectmeta.Metadata, write: Write) -> None:
        content["status"] = {}
        spec = {name: value for name, value in (content.get("spec") or {}).items() if name not in _SPEAKER}
        spec["username"] = write.user.name
        if write.user.uid:
            spec["uid"] = write.user.uid
        if write.user.groups:
            spec["groups"] = list(write.user.groups)
        if write.user.extra:
            spec["extra"] = {name: list(values) for name, values in write.user.extra.items()}
        content["spec"] = spec

    def prepare_update(self, content: Document, old: Mapping[str, Any], write: Write) -> None:
        content["spec"], content["status"] = old["spec"], old.get("status") or {}

    def prepare_status(self, content: Document, old: Mapping[str, Any], subject: Subject, write: Write) -> None:
        super().prepare_status(content, old, subject, write)
        before, current = old.get("status") or {}, content.get("status") or {}
        status = {name: value for name, value in current.items() if name not in ("certificate", "conditions")}
        conditions: list[Document] = current.get("conditions") or []
        source = current
        if write.subresource == rules.APPROVAL:
            source = before
        else:
            for word in (csr.APPROVED, csr.DENIED):
                conditions = _restore_conditions(conditions, before.get("conditions") or [], word)
        if source.get("certificate"):
            status["certificate"] = source["certificate"]
        if conditions:
            now = meta.time_text(write.now)
            status["conditions"] = [_with_times(each, before.get("conditions") or [], now) for each in conditions]
        content["status"] = status

    def check_new(self, content: Document, subject: Subject) -> Errors:
        yield from rules.check(content["spec"])

    def check_update(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check(content["spec"], old["spec"])

    def check_subresource(self, content: Document, old: Mapping[str, Any], write: Write) -> Errors:
        yield from rules.check_status(
            content.get("status") or {}, old.get("status") or {}, subresource=write.subresource
        )


def _restore_conditions(conditions: list[Document], old: list[Document], condition_type: str) -> list[Document]:
    """Return the conditions with those of one type restored, if their number is unchanged: signers cannot edit them."""
    stored_conditions = [each for each in old if each.get("type") == condition_type]
    if len([each for each in conditions if each.get("type") == condition_type]) != len(stored_conditions):
        return conditions
    restored = iter(stored_conditions)
    return [next(restored) if each.get("type") == condition_type else each for each in conditions]


def _with_times(condition: Document, old: list[Document], now: str) -> Document:
    """Return a condition with the times of its last transition and its last update."""
    same = (each for each in old if all(each.get(name) == condition.get(name) for name in ("type", "status")))
    since = next((each["lastTransitionTime"] for each in same if each.get("lastTransitionTime")), now)
    return {
        **condition,
        "lastUpdateTime": condition.get("lastUpdateTime") or now,
        "lastTransitionTime": condition.get("lastTransitionTime") or since,
    }


def _cells(request: Document, now: datetime) -> layout.Cells:
    spec, status = cells.part(request, "spec"), cells.part(request, "status")
    condition_types = {each.get("type") for each in status.get("conditions") or ()}
    states = [state for state in ("Denied", "Approved") if state in condition_types][:1] or ["Pending"]
    states += ["Failed"] if "Failed" in condition_types else []
    states += ["Issued"] if status.get("certificate") else []
    seconds = spec.get("expirationSeconds")
    return [
        cells.name(request),
        cells.since_creation(request, now),
        spec.get("signerName", ""),
        spec.get("username", ""),
        age.words(seconds) if seconds is not None else "<none>",
        ",".join(states),
    ]


KIND: Final = Kind(
    group="certificates.k8s.io",
    versions=("v1",),
    plural="certificatesigningrequests",
    kind="CertificateSigningRequest",
    namespaced=False,
    short_names=("csr",),
    subresources=(
        resources.Subresource(name=rules.APPROVAL, verbs=verbs.STATUS, resets=(("spec",), ("status", "certificate"))),
        resources.status(("spec",), ("status", "conditions")),
    ),
    layout=layout.Layout(
        (
            layout.NAME,
            layout.AGE,
            layout.text("SignerName", "The requested signer."),
            layout.text("Requestor", "The user that requests the certificate."),
            layout.text("RequestedDuration", "The requested lifetime."),
            layout.text("Condition", "The state of the request."),
        ),
        _cells,
    ),
    selectable=selectable.Selectable(
        fields=frozenset({selectable.NAME, "spec.signerName"}), unknown=selectable.unknown_in_core
    ),
    strategy=CertificateSigningRequestStrategy,
)
