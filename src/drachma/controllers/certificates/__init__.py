"""Controllers of certificate signing requests: approve those of kubelets, sign approved ones, delete old ones."""

from drachma.controllers.certificates.approval import RequestApproval
from drachma.controllers.certificates.cleaning import RequestCleaning
from drachma.controllers.certificates.signing import RequestSigning

__all__ = ["RequestApproval", "RequestCleaning", "RequestSigning"]
