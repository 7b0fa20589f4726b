"""Steps that a kind's strategy does: the rules of the kind, and the form in which it is stored."""

from drachma.server.admission.proposal import Proposal


def validate(proposal: Proposal) -> None:
    """Prepares the object by the rules of its kind, and refuses what breaks them."""
    strategy, subject, write = proposal.strategy, proposal.subject, proposal.write
    if proposal.old is None:
        strategy.create(subject, write)
    elif write.subresource:
        strategy.update_status(subject, proposal.old, write)
    else:
        strategy.update(subject, proposal.old, write)


def form(proposal: Proposal) -> None:
    """Makes the form that is stored."""
    proposal.document = proposal.strategy.document(proposal.subject)
