"""Names of workloads: the owner's kind and name, and a hash that tells owners of one name apart."""

import hashlib
from collections.abc import Mapping
from typing import Final

from drachma.queueing.configuration.frameworks import GroupVersionKind
from drachma.queueing.configuration.gates import DEFAULT, Gate, Gates
from drachma.values import names

PREBUILT: Final = "kueue.x-k8s.io/prebuilt-workload-name"
"""Where a job names its workload, if somebody else has made it: in a label or an annotation."""

_HASH_LENGTH: Final = 5


def for_owner(
    name: str, *, uid: str, kind: GroupVersionKind, gates: Gates = DEFAULT, generation: int | None = None
) -> str:
    """The name of the workload of an owner; short enough for a label's value unless that is switched off.

    Owners that have one workload after the other have one for each ``generation``.
    """
    longest = names.LABEL_LENGTH if gates.on(Gate.SHORT_WORKLOAD_NAMES) else names.SUBDOMAIN_LENGTH
    prefix = f"{kind.kind.lower()}-{name}"[: longest - 1 - _HASH_LENGTH]
    identity = [kind.kind, kind.group, name, uid]
    if generation is not None:
        identity.append(str(generation))
    digest = hashlib.sha1("\n".join(identity).encode(), usedforsecurity=False).hexdigest()
    return f"{prefix}-{digest[:_HASH_LENGTH]}"


def prebuilt(labels: Mapping[str, str], annotations: Mapping[str, str], gates: Gates) -> str:
    """The name of the workload that somebody made for a job, by what the job says; empty if nobody did."""
    label, annotation = labels.get(PREBUILT, ""), annotations.get(PREBUILT, "")
    if gates.on(Gate.WORKLOAD_IDENTIFIER_ANNOTATIONS):
        return annotation or label
    return label or (annotation if len(annotation) > names.LABEL_LENGTH else "")
