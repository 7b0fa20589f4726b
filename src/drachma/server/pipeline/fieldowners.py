"""Steps that record who owns which field of an object, in ``metadata.managedFields``."""

from drachma.server.admission.proposal import Proposal
from drachma.server.ownership import fieldmanagers


def drop_unreadable(proposal: Proposal) -> None:
    """Puts back the managed fields of the stored object where a client sent some that nobody can make sense of."""
    old = {} if proposal.old is None else proposal.old.metadata
    fieldmanagers.drop_unreadable(proposal.subject.metadata, old)


def own_before_completion(proposal: Proposal) -> None:
    """Has the writer own what it wrote, for kinds that the server then adds to."""
    subject, strategy = proposal.subject, proposal.strategy
    if not proposal.write.resource.traits.is_completed or subject.is_owned:
        return
    document = strategy.document(subject)
    owned = fieldmanagers.created(document, proposal.write, wanted=proposal.options)
    subject.metadata.pop("managedFields", None)
    if "managedFields" in owned["metadata"]:
        subject.metadata["managedFields"] = owned["metadata"]["managedFields"]
    subject.is_owned = True


def own_created(proposal: Proposal) -> None:
    """Has the writer own all of a new object."""
    if not proposal.subject.is_owned:
        proposal.document = fieldmanagers.created(proposal.document, proposal.write, wanted=proposal.options)


def own_updated(proposal: Proposal) -> None:
    """Has the writer own what it changed; a server-side apply has settled that already."""
    assert proposal.stored is not None, "an update is one of something"
    before = proposal.stored.value
    if proposal.subject.is_owned:
        proposal.document = fieldmanagers.settled(proposal.document, before)
    else:
        proposal.document = fieldmanagers.updated(proposal.document, before, proposal.write, wanted=proposal.options)
