"""Requests for certificates, as objects: who is to approve and sign them says so here."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from drachma.server import objectmeta
from drachma.server.kinds.document import Document, DocumentStrategy
from drachma.server.schema import metatypes, notation
from drachma.server.surface import age, cells, layout, resources, verbs
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject, Write
from drachma.validation import certificatesigningrequest as rules
from drachma.validation.fielderror import Errors

_TYPES: Final = """\
CertificateSigningRequest: apiVersion=str kind=str metadata=ObjectMeta! spec=CertificateSigningRequestSpec!*
    status=CertificateSigningRequestStatus!
CertificateSigningRequestCondition: lastTransitionTime=Time! lastUpdateTime=Time! message=str reason=str status=str*
    type=str*
CertificateSigningRequestSpec: expirationSeconds=int32? extra=<[str]> groups=[str] request=bytes* signerName=str*
    uid=str usages=[str] username=str
CertificateSigningRequestStatus: certificate=bytes conditions={CertificateSigningRequestCondition:type}
"""
_NUMBERS: Final = """\
CertificateSigningRequest: metadata spec status
CertificateSigningRequestCondition: type reason message lastUpdateTime lastTransitionTime status
CertificateSigningRequestSpec: request username uid groups usages extra signerName expirationSeconds?
CertificateSigningRequestStatus: conditions certificate
"""
_TEXTS: Final = """\
CertificateSigningRequest: A request for a certificate.
CertificateSigningRequestSpec.signerName: Who is to sign it.
CertificateSigningRequestSpec.request: The request in the form of PKCS 10.
"""
_PACKAGE: Final = notation.Types(
    "io.k8s.api.certificates.v1", _TYPES, numbers=_NUMBERS, texts=_TEXTS, uses=(metatypes.META,)
)
_APPROVAL: Final = "approval"
_SPEAKER: Final = ("username", "uid", "groups", "extra")


class CertificateSigningRequestStrategy(DocumentStrategy):
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
        kept = "certificate" if write.subresource == _APPROVAL else ""
        status = {name: value for name, value in current.items() if name != kept}
        if kept in before:
            status[kept] = before[kept]
        now = objectmeta.time_text(write.now)
        if status.get("conditions"):
            status["conditions"] = [_timed(each, now) for each in status["conditions"]]
        content["status"] = status

    def check(self, content: Document, subject: Subject) -> Errors:
        yield from rules.check(content["spec"])

    def check_status(self, content: Document, old: Mapping[str, Any], subject: Subject) -> Errors:
        yield from rules.check_status(content.get("status") or {}, old.get("status") or {})


def _timed(condition: Document, now: str) -> Document:
    times = {name: condition.get(name) or now for name in ("lastUpdateTime", "lastTransitionTime")}
    return {**condition, **times}


def _cells(request: Document, now: datetime) -> layout.Cells:
    spec, status = cells.part(request, "spec"), cells.part(request, "status")
    words = {each.get("type") for each in status.get("conditions") or ()}
    shown = [word for word in ("Denied", "Approved") if word in words][:1] or ["Pending"]
    shown += ["Failed"] if "Failed" in words else []
    shown += ["Issued"] if status.get("certificate") else []
    seconds = spec.get("expirationSeconds")
    return [
        cells.name(request),
        cells.since_creation(request, now),
        spec.get("signerName", ""),
        spec.get("username", ""),
        age.words(seconds) if seconds is not None else "<none>",
        ",".join(shown),
    ]


KIND: Final = Kind(
    group="certificates.k8s.io",
    versions=("v1",),
    plural="certificatesigningrequests",
    kind="CertificateSigningRequest",
    namespaced=False,
    short_names=("csr",),
    subresources=(
        resources.Subresource(name=_APPROVAL, verbs=verbs.STATUS, resets=(("spec",), ("status", "certificate"))),
        resources.status(),
    ),
    schemas={"v1": _PACKAGE.object("CertificateSigningRequest")},
    layout=layout.Layout(
        (
            layout.NAME,
            layout.AGE,
            layout.text("SignerName", "Who is to sign it."),
            layout.text("Requestor", "Who asks for it."),
            layout.text("RequestedDuration", "How long it should be good for."),
            layout.text("Condition", "What has become of the request."),
        ),
        _cells,
    ),
    strategy=CertificateSigningRequestStrategy,
)
