"""Controllers of service accounts: the default account, the root certificate, and tokens in secrets."""

from drachma.controllers.serviceaccount.accountcontroller import ServiceAccountController
from drachma.controllers.serviceaccount.rootcertificate import RootCertificatePublisher
from drachma.controllers.serviceaccount.tokencontroller import TokenController

__all__ = ["RootCertificatePublisher", "ServiceAccountController", "TokenController"]
