"""RuntimeClass: what a pod needs beside its containers comes from the class of the runtime that it names.

There are no runtime classes here, so that a pod can neither name one nor have the overhead of one.
"""

from drachma.server.admission.proposal import Proposal
from drachma.values import quotation


def admit(proposal: Proposal) -> None:
    """Refuses a new pod that names a class."""
    name = proposal.subject.content["spec"].get("runtimeClassName")
    if name:
        raise proposal.forbidden(f"pod rejected: RuntimeClass {quotation.quote(name)} not found")


def validate(proposal: Proposal) -> None:
    """Refuses a new pod with an overhead of its own making."""
    if proposal.subject.content["spec"].get("overhead"):
        raise proposal.forbidden("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
