"""Permissions for approving and signing certificate requests.

They are about signers (verbs ``approve`` and ``sign`` on ``signers`` by name), in addition to those about the requests.
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
    """Refuses approvals and denials by users without permission for the signer."""

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
    """Refuses certificates from users without permission to sign for the signer."""

    def __init__(self, authoriser: Authoriser) -> None:
        self._authoriser = authoriser

    def validate(self, proposal: Proposal) -> None:
        if proposal.write.subresource != "status" or not _has_outcome(proposal):
            return
        signer = _signer(proposal)
        if not _may(self._authoriser, proposal, "sign", signer):
            raise proposal.forbidden(f"user not permitted to sign requests with signerName {quotation.quote(signer)}")


def restrict_subject(proposal: Proposal) -> None:
    """Refuse a request for membership in the group with unrestricted access."""
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
    """Return the signer of the stored request; a change cannot replace it."""
    assert proposal.stored is not None, "the step runs on changes"
    signer: str = proposal.stored.value["spec"].get("signerName", "")
    return signer


def _has_outcome(proposal: Proposal) -> bool:
    """Return True if a change touches the certificate or the conditions."""
    assert proposal.stored is not None, "the step runs on changes"
    old, new = proposal.stored.value.get("status") or {}, proposal.subject.content.get("status") or {}
    return any(not documents.same(old.get(field), new.get(field)) for field in ("certificate", "conditions"))


def _may(authoriser: Authoriser, proposal: Proposal, verb: str, signer: str) -> bool:
    """Return True if the user has a permission for a signer, or for all signers of its domain."""
    names = (signer, f"{signer.partition('/')[0]}/*")
    return any(
        authoriser.authorise(
            Attributes(user=proposal.write.user, verb=verb, group=_GROUP, version="*", resource="signers", name=name)
        ).is_allowed
        for name in names
    )
