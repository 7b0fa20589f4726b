"""Rules of Kubernetes' own signers: subjects, alternative names and usages that a request may have.

Pure. The approver recognises requests of nodes by these rules, and the signers refuse approved requests that break
them.
"""

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from drachma import errors
from drachma.api import certificatesigningrequest as csr
from drachma.controllers import objectwrites
from drachma.values import certificaterequests
from drachma.values.certificaterequests import Request

Rule: TypeAlias = Callable[[Request, Iterable[str]], str | None]
"""Function that returns the problem of a signer with a request for these usages, or None if it signs it."""

_NODES: Final = "system:nodes"
_NODE_PREFIX: Final = "system:node:"
_SIGNATURE: Final = "digital signature"
_ENCIPHERMENT: Final = "key encipherment"
_CLIENT: Final = "client auth"
_SERVER: Final = "server auth"


def kubelet_client(request: Request, usages: Iterable[str]) -> str | None:
    """Check a certificate by which a kubelet authenticates to the API server."""
    if request.organizations != (_NODES,):
        return "subject organization is not system:nodes"
    for names, title in (
        (request.dns_names, "DNS"),
        (request.emails, "Email"),
        (request.addresses, "IP"),
        (request.uris, "URI"),
    ):
        if names:
            return f"{title} subjectAltNames are not allowed"
    if not request.common_name.startswith(_NODE_PREFIX):
        return "subject common name does not begin with system:node:"
    return _usages_problem(usages, _CLIENT)


def kubelet_serving(request: Request, usages: Iterable[str]) -> str | None:
    """Check a certificate by which a kubelet serves HTTPS."""
    if request.organizations != (_NODES,):
        return "subject organization is not system:nodes"
    if not request.dns_names and not request.addresses:
        return "DNS or IP subjectAltName is required"
    for names, title in ((request.emails, "Email"), (request.uris, "URI")):
        if names:
            return f"{title} subjectAltNames are not allowed"
    problem = _usages_problem(usages, _SERVER)
    if problem is None and not request.common_name.startswith(_NODE_PREFIX):
        return "subject common name does not begin with system:node:"
    return problem


def api_client(_: Request, usages: Iterable[str]) -> str | None:
    """Check a certificate by which a user authenticates to the API server."""
    uses = tuple(usages)
    for usage in uses:
        if usage not in (_SIGNATURE, _ENCIPHERMENT, _CLIENT):
            return f"invalid usage for client certificate: {usage}"
    return None if _CLIENT in uses else f"missing required usage for client certificate: {_CLIENT}"


def anything(_: Request, __: Iterable[str]) -> str | None:
    """Accept all approved requests, as the signer for legacy requests does."""
    return None


RULES: Final[Mapping[str, Rule]] = {
    csr.KUBELET_SERVING: kubelet_serving,
    csr.KUBELET_CLIENT: kubelet_client,
    csr.API_CLIENT: api_client,
    csr.LEGACY_UNKNOWN: anything,
}
"""Rules of the signers by name."""


def _usages_problem(usages: Iterable[str], purpose: str) -> str | None:
    # Keys of elliptic curves cannot encipher, so the usage may be missing.
    if set(usages) in ({_SIGNATURE, _ENCIPHERMENT, purpose}, {_SIGNATURE, purpose}):
        return None
    return f"usages did not match [{' '.join(sorted((purpose, _SIGNATURE, _ENCIPHERMENT)))}]"


# Requests


def read_request(request: csr.CertificateSigningRequest) -> certificaterequests.Request:
    """Decode the content of a request. Raises InvalidValueError if it cannot be decoded."""
    try:
        return certificaterequests.read(base64.b64decode(request.spec.request, validate=True))
    except (binascii.Error, certificaterequests.UnreadableRequestError) as error:
        raise errors.InvalidValueError(f"unable to parse csr {request.metadata.name!r}: {error}") from error


async def add_condition(
    writer: objectwrites.Writer[csr.CertificateSigningRequest],
    request: csr.CertificateSigningRequest,
    condition: Mapping[str, Any],
    *,
    subresource: str,
) -> None:
    """Add a condition to a request through a subresource. Raises ObjectConflictError if the request has changed."""
    document = writer.document(request, only_if_unchanged=True)
    status = document.setdefault("status", {})
    status["conditions"] = [*(status.get("conditions") or ()), condition]
    await writer.replace(document, subresource=subresource)
