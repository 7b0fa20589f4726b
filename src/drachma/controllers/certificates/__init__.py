"""Requests for certificates: approved if they are kubelets' own, signed if they were approved, deleted in time."""

from drachma.controllers.certificates.approval import RequestApproval
from drachma.controllers.certificates.cleaning import RequestCleaning
from drachma.controllers.certificates.signing import RequestSigning

__all__ = ["RequestApproval", "RequestCleaning", "RequestSigning"]
