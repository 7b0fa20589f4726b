"""Permissions for parts of a claim's status: upstream's ``resourceclaims/binding`` and ``/driver``.

The rules are in :mod:`drachma.validation.authorization`; this module puts their questions to the authoriser.
"""

from typing import Final

import msgspec

from drachma.server.access import authorization
from drachma.server.access.authorization import Attributes, Authoriser
from drachma.server.surface.strategy import Write
from drachma.validation import metadata

NODE_NAME: Final = "authentication.kubernetes.io/node-name"
"""Extra key in tokens of service accounts with the node of the bound pod."""

_SERVICE_ACCOUNT: Final = "system:serviceaccount:"


class StatusAuthorizer(msgspec.Struct, frozen=True):
    """Permissions of a write's user for the status of a claim; see ``validation.context.Authorizer``."""

    authoriser: Authoriser
    write: Write

    @property
    def verb(self) -> str:
        return self.write.verb

    @property
    def node_name(self) -> str:
        user = self.write.user
        names = user.extra.get(NODE_NAME, ()) if user.name.startswith(_SERVICE_ACCOUNT) else ()
        return names[0] if len(names) == 1 and not metadata.dns_subdomain(names[0], is_prefix=False) else ""

    def refusal(self, *, verb: str, subresource: str, namespace: str, name: str) -> str | None:
        resource = self.write.resource
        question = Attributes(
            user=self.write.user,
            verb=verb,
            group=resource.group,
            version=self.write.version,
            resource=resource.plural,
            subresource=subresource,
            namespace=namespace,
            name=name,
        )
        opinion = self.authoriser.authorise(question)
        return None if opinion.is_allowed else str(authorization.forbidden(question, opinion.reason))
