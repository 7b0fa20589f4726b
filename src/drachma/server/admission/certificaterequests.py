"""Who may approve and sign requests for certificates, and for whom nobody may.

Roles say it of signers (``approve`` and ``sign`` on ``signers`` by name), beside what they say of the requests.
"""

import base64
from typing import Any, Final

from drachma.api import certificatesigningrequest as csr
from drachma.server import documents
from drachma.server.access.authorization import Attributes, Authoriser
from drachma.server.admission.proposal import Proposal
from drachma.server.authorisers import modes
from drachma.values import certificaterequests, quotation

REQUESTS: Final = frozenset({"certificates.k8s.io/certificatesigningrequests"})
_GROUP: Final = "certificates.k8s.io"


class CertificateApproval:
    """Refuses decisions about requests to a signer for whom the author may not decide."""

    def __init__(self, authoriser: Authoriser) -> None:
        self._authoriser = authoriser

    def validate(self, proposal: Proposal) -> None:
        if proposal.write.subresource != "approval":
            return
        signer = _signer(proposal)
        if not _may(self._authoriser, proposal, "approve", signer):
            raise proposal.forbidden(
                f"user not permitted to approve requests with signerName {quotation.quote(signer)}"
            )


class CertificateSigning:
    """Refuses certificates in the name of a signer for whom the author may not sign."""

    def __init__(self, authoriser: Authoriser) -> None:
        self._authoriser = authoriser

    def validate(self, proposal: Proposal) -> None:
        if proposal.write.subresource != "status" or not _has_outcome(proposal):
            return
        signer = _signer(proposal)
        if not _may(self._authoriser, proposal, "sign", signer):
            raise proposal.forbidden(f"user not permitted to sign requests with signerName {quotation.quote(signer)}")


def restrict_subject(proposal: Proposal) -> None:
    """Refuses to have anybody made a member of the group that may do everything."""
    spec: dict[str, Any] = proposal.subject.content.get("spec") or {}
    if spec.get("signerName") != csr.API_CLIENT:
        return
    try:
        request = certificaterequests.read(base64.b64decode(spec.get("request") or ""))
    except ValueError as error:
        raise proposal.forbidden(f"failed to parse CSR: {error}") from None
    if modes.MASTERS in request.organizations:
        raise proposal.forbidden(f"use of {csr.API_CLIENT} signer with system:masters group is not allowed")


def _signer(proposal: Proposal) -> str:
    """Who was asked from the beginning, whatever a change says."""
    assert proposal.stored is not None, "a change of what is there"
    signer: str = proposal.stored.value["spec"].get("signerName", "")
    return signer


def _has_outcome(proposal: Proposal) -> bool:
    """Whether a change says anything new about certificate or conditions."""
    assert proposal.stored is not None, "a change of what is there"
    old, new = proposal.stored.value.get("status") or {}, proposal.subject.content.get("status") or {}
    return any(not documents.same(old.get(field), new.get(field)) for field in ("certificate", "conditions"))


def _may(authoriser: Authoriser, proposal: Proposal, verb: str, signer: str) -> bool:
    """Whether the author may do something as a signer, or as all signers of its domain."""
    names = (signer, f"{signer.partition('/')[0]}/*")
    return any(
        authoriser.authorise(
            Attributes(user=proposal.write.user, verb=verb, group=_GROUP, version="*", resource="signers", name=name)
        ).is_allowed
        for name in names
    )
