"""What Kubernetes' own signers sign: rules about who is named in a request, under which names, for which uses.

Pure. The approver recognises requests of nodes by them, the signers refuse by them what an approver let through.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeAlias

from drachma.api import certificatesigningrequest as csr
from drachma.values.certificaterequests import Request

Rule: TypeAlias = Callable[[Request, Iterable[str]], str | None]
"""What a signer has against a request with these usages; None if it signs it."""

_NODES: Final = "system:nodes"
_NODE_PREFIX: Final = "system:node:"
_SIGNATURE: Final = "digital signature"
_ENCIPHERMENT: Final = "key encipherment"
_CLIENT: Final = "client auth"
_SERVER: Final = "server auth"


def kubelet_client(request: Request, usages: Iterable[str]) -> str | None:
    """A certificate by which a kubelet shows the API server who it is."""
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
    """A certificate by which a kubelet shows others who it is."""
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
    """A certificate by which anybody shows the API server who that is."""
    uses = tuple(usages)
    for usage in uses:
        if usage not in (_SIGNATURE, _ENCIPHERMENT, _CLIENT):
            return f"invalid usage for client certificate: {usage}"
    return None if _CLIENT in uses else f"missing required usage for client certificate: {_CLIENT}"


def anything(_: Request, __: Iterable[str]) -> str | None:
    """What the signer for old requests signs: whatever was approved."""
    return None


RULES: Final[Mapping[str, Rule]] = {
    csr.KUBELET_SERVING: kubelet_serving,
    csr.KUBELET_CLIENT: kubelet_client,
    csr.API_CLIENT: api_client,
    csr.LEGACY_UNKNOWN: anything,
}
"""The signers by name."""


def _usages_problem(usages: Iterable[str], purpose: str) -> str | None:
    # A key that cannot encipher, as those of elliptic curves, need not say that it may.
    if set(usages) in ({_SIGNATURE, _ENCIPHERMENT, purpose}, {_SIGNATURE, purpose}):
        return None
    return f"usages did not match [{' '.join(sorted((purpose, _SIGNATURE, _ENCIPHERMENT)))}]"
