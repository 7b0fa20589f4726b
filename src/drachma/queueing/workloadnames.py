"""Names of workloads: the owner's kind and name, and a hash that tells owners of one name apart."""

import hashlib
from typing import Final

from drachma.queueing.frameworks import GroupVersionKind
from drachma.queueing.gates import DEFAULT, Gate, Gates
from drachma.values import names

_HASH_LENGTH: Final = 5


def for_owner(name: str, *, uid: str, kind: GroupVersionKind, gates: Gates = DEFAULT) -> str:
    """The name of the workload of an owner; short enough for a label's value unless that is switched off."""
    longest = names.LABEL_LENGTH if gates.on(Gate.SHORT_WORKLOAD_NAMES) else names.SUBDOMAIN_LENGTH
    prefix = f"{kind.kind.lower()}-{name}"[: longest - 1 - _HASH_LENGTH]
    identity = "\n".join((kind.kind, kind.group, name, uid))
    digest = hashlib.sha1(identity.encode(), usedforsecurity=False).hexdigest()
    return f"{prefix}-{digest[:_HASH_LENGTH]}"
