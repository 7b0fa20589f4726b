"""CertificateSigningRequest: a request for a certificate, and its outcome. A partial view."""

from collections.abc import Mapping
from typing import Final

from drachma.api import meta
from drachma.api.struct import ABSENT_MAP, ABSENT_TEXT, ABSENT_TUPLE, ZERO_TEXT, Int32, Struct

API_CLIENT: Final = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT: Final = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING: Final = "kubernetes.io/kubelet-serving"
LEGACY_UNKNOWN: Final = "kubernetes.io/legacy-unknown"
"""Built-in signers of Kubernetes."""

APPROVED: Final = "Approved"
DENIED: Final = "Denied"
FAILED: Final = "Failed"


class CertificateSigningRequestSpec(Struct, frozen=True, kw_only=True):
    """Requested certificate, signer and requester. ``request`` is PEM in base64, as on the wire."""

    request: str = ZERO_TEXT
    signer_name: str = ZERO_TEXT
    expiration_seconds: Int32 | None = None
    usages: tuple[str, ...] = ABSENT_TUPLE
    username: str = ABSENT_TEXT
    uid: str = ABSENT_TEXT
    groups: tuple[str, ...] = ABSENT_TUPLE
    extra: Mapping[str, tuple[str, ...]] = ABSENT_MAP


class CertificateSigningRequestCondition(Struct, frozen=True, kw_only=True):
    """Approval, denial or failure of a request."""

    type: str = ZERO_TEXT
    status: str = ZERO_TEXT
    reason: str = ABSENT_TEXT
    message: str = ABSENT_TEXT
    last_update_time: meta.Time | None = None
    last_transition_time: meta.Time | None = None


class CertificateSigningRequestStatus(Struct, frozen=True, kw_only=True):
    """Conditions and issued certificate; ``certificate`` is PEM in base64."""

    conditions: tuple[CertificateSigningRequestCondition, ...] = ABSENT_TUPLE
    certificate: str = ABSENT_TEXT


class CertificateSigningRequest(meta.Object, frozen=True, kw_only=True):
    """``certificates.k8s.io`` CertificateSigningRequest, cluster-scoped; a partial view."""

    spec: CertificateSigningRequestSpec = CertificateSigningRequestSpec()
    status: CertificateSigningRequestStatus = CertificateSigningRequestStatus()


def condition(status: CertificateSigningRequestStatus, kind: str) -> CertificateSigningRequestCondition | None:
    """Return the condition of a type, or None."""
    return next((each for each in status.conditions if each.type == kind), None)
