"""Steps about the identity of an object: namespace, name, and the metadata that only the server sets."""

import random

from drachma.server import objectmeta
from drachma.server.admission.proposal import Proposal
from drachma.values import generatedname


def place(proposal: Proposal) -> None:
    """Put an object into the namespace of its path; refuse one that names another namespace."""
    metadata, namespace = proposal.subject.metadata, proposal.write.namespace
    if "namespace" not in metadata or metadata["namespace"] != namespace:
        objectmeta.place(metadata, namespace)


def check_name(proposal: Proposal) -> None:
    """Refuse an object whose name differs from that in its path."""
    objectmeta.check_name(proposal.subject.metadata, proposal.write.name)


def merge_owners(proposal: Proposal) -> None:
    """Drop duplicate owner references, with a warning."""
    if "ownerReferences" in proposal.subject.metadata:
        objectmeta.merge_owners(proposal.subject.metadata, proposal.write.warnings)


def drop_version(proposal: Proposal) -> None:
    """Drop the resourceVersion of an update that creates an object."""
    proposal.subject.metadata.pop("resourceVersion", None)


def reset(proposal: Proposal) -> None:
    """Clear the metadata that only the server sets."""
    objectmeta.wipe_system_fields(proposal.subject.metadata)


def carry_over(proposal: Proposal) -> None:
    """Copy the metadata that an update cannot change from the stored object."""
    assert proposal.stored is not None, "an update has a stored object"
    old = proposal.old
    if old is None:
        old = proposal.old = proposal.strategy.load(proposal.stored.value)
    metadata = proposal.subject.metadata
    objectmeta.carry_over(metadata, old.metadata)
    # An update without a version applies to any version.
    metadata["resourceVersion"] = old.metadata["resourceVersion"]


class NewIdentity:
    """Steps that draw the random identity of a new object."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def name(self, proposal: Proposal) -> None:
        """Draw a name for an object that asks for a generated one."""
        metadata = proposal.subject.metadata
        if "generateName" in metadata and metadata["generateName"] and not metadata.get("name"):
            prefix, consultation = metadata["generateName"], proposal.write.consultation
            metadata["name"] = consultation.draw("name", lambda: generatedname.draw(prefix, chance=self._rng))

    def identify(self, proposal: Proposal) -> None:
        """Set the uid and the creation time."""
        uid = proposal.write.consultation.draw("uid", lambda: objectmeta.generate_uid(self._rng))
        objectmeta.fill_system_fields(proposal.subject.metadata, uid=uid, now=proposal.write.now)
