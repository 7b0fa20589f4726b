"""Rules for CertificateSigningRequest."""

import base64
import binascii
from collections.abc import Sequence
from typing import Final

from cryptography import x509

from drachma.api import certificatesigningrequest as csr
from drachma.validation import fielderror, rendering, rulenotation
from drachma.validation.fielderror import Errors, Found
from drachma.validation.path import SPEC, STATUS, Document, Path
from drachma.values import certificaterequests, names, quotation

APPROVAL: Final = "approval"

_USAGES: Final = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
_LONGEST_DOMAIN: Final = 253
_LONGEST_SIGNER: Final = 571
_CONDITIONS: Final = STATUS.child("conditions")
_CERTIFICATE: Final = STATUS.child("certificate")
_DECISIONS: Final = (csr.APPROVED, csr.DENIED)
_FINAL: Final = (*_DECISIONS, csr.FAILED)
_STATES: Final = ("False", "True", "Unknown")


def check(spec: Document, old: Document | None = None) -> Found:
    """Return the errors of a spec; errors that the ``old`` one has already may stay."""
    return _TYPES["CertificateSigningRequestSpec"](spec, SPEC, old or {})


def _certificate_request(request: str, at: Path) -> Errors:
    problem = _request_problem(request)
    if problem is not None:
        yield fielderror.invalid(at, rendering.wire(request), problem)


def _signer_name(name: str, at: Path) -> Errors:
    """Check the name of a signer: a domain and a path."""
    domain, separator, path = name.partition("/")
    if not separator or "/" in path:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield fielderror.invalid(at, name, detail)
        return
    if len(domain) > _LONGEST_DOMAIN:
        yield fielderror.too_long(at, _LONGEST_DOMAIN)
    labels = domain.split(".")
    for label in labels:
        details = names.dns1123_label(label)
        if details:
            yield from fielderror.problems(at, domain, [_label_problem(label, detail) for detail in details])
            break
    if len(labels) < 2:
        yield fielderror.invalid(at, domain, "should be a domain with at least two segments separated by dots")
    for label in path.split("."):
        details = names.dns1123_subdomain(label)
        if details:
            yield from fielderror.problems(at, path, [_label_problem(label, detail) for detail in details])
            break
    if len(name) > _LONGEST_SIGNER:
        yield fielderror.too_long(at, _LONGEST_SIGNER)


def check_status(status: Document, old: Document, *, subresource: str) -> Errors:
    """Yield the errors of a changed status; approval and denial are final, and only the approver sets them."""
    conditions: Sequence[Document] = status.get("conditions") or ()
    old_conditions: Sequence[Document] = old.get("conditions") or ()
    yield from _check_conditions(conditions, old_conditions)
    certificate = status.get("certificate") or ""
    if certificate != (old.get("certificate") or ""):
        problem = _certificate_problem(certificate)
        if problem is not None:
            yield fielderror.invalid(_CERTIFICATE, "<certificate data>", problem)
    for word in _FINAL:
        if len(_select(conditions, word)) < len(_select(old_conditions, word)):
            detail = f"updates may not remove a condition of type {quotation.quote(word)}"
            yield fielderror.forbidden(_CONDITIONS, detail)
    if subresource != APPROVAL:
        yield from _check_decisions(conditions, old_conditions)
    if certificate != (old.get("certificate") or ""):
        if subresource == APPROVAL:
            yield fielderror.forbidden(_CERTIFICATE, "updates may not set certificate content")
        elif old.get("certificate"):
            yield fielderror.forbidden(_CERTIFICATE, "updates may not modify existing certificate content")
    words = {each.get("type") for each in conditions}
    if words.issuperset(_DECISIONS) and not {each.get("type") for each in old_conditions}.issuperset(_DECISIONS):
        members = [f'conditions[{{"type": "{word}"}}]' for word in _DECISIONS]
        detail = f"must specify at most one of: {', '.join(f'`{member}`' for member in members)}"
        yield fielderror.invalid(_CONDITIONS, f"{{{', '.join(members)}}}", detail)


def _check_usages(spec: Document, at: Path, old_spec: Document) -> Errors:
    usages, old, at = spec.get("usages") or (), old_spec.get("usages") or (), at.child("usages")
    if all(usage in _USAGES for usage in old):
        for position, usage in enumerate(usages):
            if usage not in _USAGES:
                yield fielderror.not_supported(at.item(position), rendering.named(usage), _USAGES)
    if len(set(old)) == len(old):
        for position, usage in enumerate(usages):
            if usage in usages[:position]:
                yield fielderror.duplicate(at.item(position), rendering.named(usage))


def _check_conditions(conditions: Sequence[Document], old: Sequence[Document]) -> Errors:
    before = [each.get("type", "") for each in old]
    for position, condition in enumerate(conditions):
        at, word = _CONDITIONS.item(position), condition.get("type", "")
        if not word and "" not in before:
            yield fielderror.required(at.child("type"))
        state, supported = condition.get("status", ""), ("True",) if word in _FINAL else _STATES
        if not state:
            yield fielderror.required(at.child("status"))
        elif state not in supported:
            yield fielderror.not_supported(at.child("status"), rendering.named(state), supported)
        if word in [each.get("type", "") for each in conditions[:position]] and len(set(before)) == len(before):
            yield fielderror.duplicate(at.child("type"), rendering.named(word))


def _check_decisions(conditions: Sequence[Document], old: Sequence[Document]) -> Errors:
    """Check that a signer adds no decision; existing decisions are restored before."""
    for word in _DECISIONS:
        if len(_select(conditions, word)) > len(_select(old, word)):
            yield fielderror.forbidden(_CONDITIONS, f"updates may not add a condition of type {quotation.quote(word)}")


def _select(conditions: Sequence[Document], word: str) -> list[Document]:
    return [each for each in conditions if each.get("type") == word]


def _label_problem(label: str, detail: str) -> str:
    return f"validating label {quotation.quote(label)}: {detail}"


def _request_problem(text: str) -> str | None:
    try:
        return certificaterequests.read(base64.b64decode(text, validate=True)).signature_problem()
    except binascii.Error:
        return certificaterequests.WRONG_BLOCK
    except certificaterequests.UnreadableRequestError as error:
        return str(error)


def _certificate_problem(text: str) -> str | None:
    if not text:
        return None
    try:
        x509.load_pem_x509_certificates(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        return "must contain at least one CERTIFICATE PEM block"
    return None


_TYPES: Final = rulenotation.load("certificatesigningrequest", globals())
