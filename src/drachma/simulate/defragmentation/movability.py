"""Reasons why defragmentation does not move a pod.

A pod is moved by evicting it: its controller creates another one, which gets other devices. That works only for pods
with a controller whose claims are made for them, and only if disruption budgets allow the eviction. Users mark pods
that must stay with one of the annotations in :data:`MARKS`.
"""

from __future__ import annotations

from typing import Final

from drachma.api import pod
from drachma.claims import identity, ownership, podclaims, podstate
from drachma.scheduler.snapshot import Snapshot, gangs
from drachma.simulate import shrinkage

MARKS: Final = {
    "drachma.dev/movable": "false",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}
"""Annotations of pods that must stay where they are: ours, and those of autoscalers."""


def obstacle(snapshot: Snapshot, member: pod.Pod) -> str:
    """Return why a pod is not moved, or an empty text if it can be moved."""
    title = f"pod {identity.label(member.metadata)}"
    annotations = member.metadata.annotations
    for name, value in MARKS.items():
        if annotations.get(name) == value:
            return f"{title} has the annotation {name}={value}"
    if member.metadata.deletion_timestamp is not None or podstate.has_ended(member):
        return f"{title} is ending"
    if shrinkage.belongs_to_node(member):
        return f"{title} belongs to its node"
    if ownership.controller_of(member) is None:
        return f"{title} has no controller that recreates it"
    gang = gangs.key_of(member)
    if gang is not None:
        return f"{title} is one of the gang {gang}, whose pods run together"
    for name in podclaims.all_names(member):
        claim = snapshot.claims.get(member.metadata.namespace, name)
        if claim is not None and not ownership.is_controlled_by(claim.metadata, member.metadata.uid):
            return f"{title} uses claim {name}, which was not made for it alone and keeps its devices"
    blocking = snapshot.budgets.blocking(member)
    return f"{title} may not be evicted: {blocking}" if blocking else ""
