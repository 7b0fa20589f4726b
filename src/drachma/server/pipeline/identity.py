"""Steps about who an object is: its place and name, what the server says about it, and what an update cannot change."""

import random

from drachma.server import objectmeta
from drachma.server.admission.proposal import Proposal
from drachma.values import generatedname


def place(proposal: Proposal) -> None:
    """Puts an object into the namespace of its path, and refuses one that says it is in another."""
    metadata, namespace = proposal.subject.metadata, proposal.write.namespace
    if "namespace" not in metadata or metadata["namespace"] != namespace:
        objectmeta.place(metadata, namespace)


def check_name(proposal: Proposal) -> None:
    """Refuses an object that has another name than its path."""
    objectmeta.check_name(proposal.subject.metadata, proposal.write.name)


def merge_owners(proposal: Proposal) -> None:
    """Drops owner references that are there twice, with a warning."""
    if "ownerReferences" in proposal.subject.metadata:
        objectmeta.merge_owners(proposal.subject.metadata, proposal.write.warnings)


def begin_anew(proposal: Proposal) -> None:
    """An update of nothing makes a new object, of no version."""
    proposal.subject.metadata.pop("resourceVersion", None)


def reset(proposal: Proposal) -> None:
    """Forgets what a client cannot say about an object that does not exist yet."""
    objectmeta.wipe_system_fields(proposal.subject.metadata)


def carry_over(proposal: Proposal) -> None:
    """Takes from the stored object what an update cannot change."""
    assert proposal.stored is not None, "an update is one of something"
    old = proposal.old
    if old is None:
        old = proposal.old = proposal.strategy.load(proposal.stored.value)
    metadata = proposal.subject.metadata
    objectmeta.carry_over(metadata, old.metadata)
    # An update without a version is one of whatever version is there.
    metadata["resourceVersion"] = old.metadata["resourceVersion"]


class Birth:
    """What is drawn by chance for a new object."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def name(self, proposal: Proposal) -> None:
        """A name for an object that leaves it to the server."""
        metadata = proposal.subject.metadata
        if "generateName" in metadata and metadata["generateName"] and not metadata.get("name"):
            prefix, consultation = metadata["generateName"], proposal.write.consultation
            metadata["name"] = consultation.draw("name", lambda: generatedname.draw(prefix, chance=self._chance))

    def identify(self, proposal: Proposal) -> None:
        """Its uid, and the time of its creation."""
        uid = proposal.write.consultation.draw("uid", lambda: objectmeta.generate_uid(self._chance))
        objectmeta.fill_system_fields(proposal.subject.metadata, uid=uid, now=proposal.write.now)
