"""ServiceAccount: a pod that names no service account is one of its namespace's ``default``.

Differs from upstream: the account need not exist, and no token of it is mounted, because no kubelet runs here.
"""

from typing import Final

from drachma.server.admission import podspecs
from drachma.server.admission.podspecs import Spec
from drachma.server.admission.proposal import Proposal
from drachma.validation.podspec import pod as pod_rules

_DEFAULT: Final = "default"


def admit(proposal: Proposal) -> None:
    """Names the account of a new pod; that of a mirror pod is the business of the kubelet that runs it."""
    if pod_rules.MIRROR_ANNOTATION not in (proposal.subject.metadata.get("annotations") or ()):
        podspecs.change(proposal, _with_account)


def _with_account(spec: Spec) -> Spec:
    if spec.get("serviceAccountName"):
        return spec
    return {**spec, "serviceAccountName": _DEFAULT, "serviceAccount": _DEFAULT}
