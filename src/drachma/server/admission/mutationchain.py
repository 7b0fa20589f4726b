"""The order of mutation by extensions: policies, then webhooks, and a second round.

If one of them changes the object, the server's own plugins complete it again, and so do policies and webhooks that
asked for reinvocation.
"""

from collections.abc import Callable
from typing import Any, Final

from drachma.server import documents
from drachma.server.admission.mutatingadmissionpolicy import MutatingAdmissionPolicy
from drachma.server.admission.mutatingadmissionwebhook import MutatingAdmissionWebhook
from drachma.server.admission.proposal import Proposal
from drachma.server.admission.reinvocation import Rounds
from drachma.server.surface.strategy import Write


class MutationChain:
    """Policies and webhooks in their order; ``again`` runs the server's own plugins on a changed object."""

    def __init__(
        self,
        policies: MutatingAdmissionPolicy,
        webhooks: MutatingAdmissionWebhook,
        *,
        again: Callable[[Proposal], None],
    ) -> None:
        self._policies: Final = policies
        self._webhooks: Final = webhooks
        self._again: Final = again

    def concerns(self, write: Write) -> bool:
        """Return True if a policy or a webhook may change the object of a write."""
        return self._policies.concerns(write) or self._webhooks.concerns(write)

    def admit(self, proposal: Proposal) -> None:
        """Have all matching policies and webhooks change an object."""
        write = proposal.write
        has_policies, has_webhooks = self._policies.concerns(write), self._webhooks.concerns(write)
        if not has_policies and not has_webhooks:
            return
        for_policies, for_webhooks = Rounds(), Rounds()
        if has_policies:
            self._policies.admit(proposal, for_policies)
        after_policies = _snapshot(proposal)
        if has_webhooks:
            self._webhooks.admit(proposal, for_webhooks)
        if not for_policies.is_changed and not for_webhooks.is_changed:
            return
        after_webhooks = _snapshot(proposal)
        self._again(proposal)
        for_policies.number = for_webhooks.number = 1
        if has_policies:
            if not documents.same(_snapshot(proposal), after_policies):
                for_policies.require()
            self._policies.admit(proposal, for_policies)
        if has_webhooks:
            if not documents.same(_snapshot(proposal), after_webhooks):
                for_webhooks.require()
            self._webhooks.admit(proposal, for_webhooks)


def _snapshot(proposal: Proposal) -> dict[str, Any]:
    document = proposal.document()
    return {**document, "metadata": dict(document["metadata"])}
