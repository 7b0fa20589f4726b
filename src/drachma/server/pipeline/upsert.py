"""Updates and applies of what is not there: who may change an object may not by that make one."""

from drachma.server.access import authorization
from drachma.server.access.authorization import Attributes, Authoriser
from drachma.server.admission.proposal import Proposal
from drachma.server.surface import verbs


class Upsert:
    """Asks whether the author of an update may create as well."""

    def __init__(self, authoriser: Authoriser) -> None:
        self._authoriser = authoriser

    def check(self, proposal: Proposal) -> None:
        """Refuses to make an object for who may only change it."""
        write = proposal.write
        authorization.require(
            self._authoriser,
            Attributes(
                user=write.user,
                verb=verbs.CREATE,
                group=write.resource.group,
                version=write.version,
                resource=write.resource.plural,
                namespace=write.namespace,
                name=write.name,
            ),
        )
