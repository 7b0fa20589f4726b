"""Steps that a kind's strategy does: it prepares the object by the rules of the kind, and refuses what breaks them."""

from drachma.server.admission.proposal import Proposal


def create(proposal: Proposal) -> None:
    """A new object."""
    proposal.strategy.create(proposal.subject, proposal.write)


def update(proposal: Proposal) -> None:
    """A changed object."""
    assert proposal.old is not None, "what an update cannot change is carried over first"
    proposal.strategy.update(proposal.subject, proposal.old, proposal.write)


def update_status(proposal: Proposal) -> None:
    """An object that is changed through a subresource, of which only that part counts."""
    assert proposal.old is not None, "what an update cannot change is carried over first"
    proposal.strategy.update_status(proposal.subject, proposal.old, proposal.write)
