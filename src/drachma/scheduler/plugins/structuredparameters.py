"""StructuredParameters: requirements of claims of the first alpha that v1 claims cannot express (ADR 13).

It reads only annotations of v1 claims that represent such claims (:mod:`drachma.structured.counterpart`): missing
parameters, claims for one pod at a time, and the nodes on which a claim may be allocated. A pod without such claims is
skipped.
"""

from __future__ import annotations

import functools
from typing import Final

from drachma.api import nodeselector, pod, resourceclaim
from drachma.claims import podclaims
from drachma.scheduler.framework import cyclestate, hints, nodeselectors, plugin, verdict
from drachma.scheduler.snapshot import Snapshot, nodeinfo
from drachma.structured import counterpart

_IN_USE: Final = "resourceclaim in use"
_UNSUITABLE: Final = "node is not suitable for the resource class"
_SELECTORS: Final = cyclestate.Key[tuple[nodeselector.NodeSelector, ...]]("suitable nodes of classes")


class StructuredParameters:
    """The plugin."""

    name: Final = "StructuredParameters"

    def hints(self, _snapshot: Snapshot) -> tuple[hints.Hint, ...]:
        """Return the changes that can help."""
        claim = hints.Hint(
            hints.Resource.RESOURCE_CLAIM, hints.Action.ADD | hints.Action.UPDATE | hints.Action.DELETE, _is_own
        )
        return (claim, hints.Hint(hints.Resource.NODE, hints.Action.ADD | hints.Action.UPDATE_NODE_LABEL, hints.always))

    def pre_filter(self, cycle: cyclestate.CycleState) -> plugin.PreFilterResult | verdict.Rejection:
        """Check that the claims have their parameters and may be used, and read the nodes that they are for."""
        selectors = []
        for claim in _claims(cycle.pod.pod, cycle.snapshot):
            reason = counterpart.reason(claim)
            if reason:
                label = f"{claim.metadata.namespace}/{claim.metadata.name}"
                return verdict.Rejection(self.name, (f"resourceclaim {label}: {reason}",))
            if not counterpart.has_room(claim, cycle.pod.uid):
                return verdict.Rejection(self.name, (_IN_USE,))
            suitable = counterpart.suitable_nodes(claim) if claim.status.allocation is None else None
            if suitable is not None:
                selectors.append(suitable)
        if not selectors:
            return plugin.SKIP
        cycle.write(_SELECTORS, tuple(selectors))
        return plugin.ALL_NODES

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> plugin.Filtered:
        """Return the nodes that suit all classes of claims without an allocation."""
        passing = alive
        for selector in cycle.read(_SELECTORS):
            ask = functools.partial(_matches, selector)
            classes = cycle.snapshot.nodes.properties.classes(("suitable", selector), ask, among=alive)
            passing &= classes.get(True, 0)
        return plugin.split(alive, passing, rejection=verdict.Rejection(self.name, (_UNSUITABLE,)))


def _claims(user: pod.Pod, snapshot: Snapshot) -> list[resourceclaim.ResourceClaim]:
    """Return the existing claims of a pod."""
    if not user.spec.resource_claims:
        return []
    claims = (snapshot.claims.get(user.metadata.namespace, name) for name in podclaims.names(user))
    return [claim for claim in claims if claim is not None]


def _is_own(
    waiting_pod: pod.Pod, old: resourceclaim.ResourceClaim | None, new: resourceclaim.ResourceClaim | None
) -> bool:
    changed = new or old
    return changed is not None and changed.metadata.name in podclaims.names(waiting_pod)


def _matches(selector: nodeselector.NodeSelector, info: nodeinfo.NodeInfo) -> bool:
    return nodeselectors.strict(selector).matches(info.node.metadata.labels, info.name)
