"""The plugin: required constraints filter nodes, preferred ones score them.

The pods of a group are counted node by node, remembered, and added up by domain.
"""

from __future__ import annotations

import math
from typing import Final

from drachma import errors
from drachma.api import node as nodes
from drachma.api import pod
from drachma.scheduler.framework import cyclestate, hints, plugin, scoring, topology, verdict
from drachma.scheduler.framework.plugin import Filtered, PreFilterResult, Scores
from drachma.scheduler.plugins.podtopologyspread import constraints
from drachma.scheduler.snapshot import Snapshot

_NAME: Final = "PodTopologySpread"
_UNEVEN: Final = verdict.Rejection(_NAME, ("node(s) didn't match pod topology spread constraints",), is_resolvable=True)
_NO_LABEL: Final = verdict.Rejection(
    _NAME, ("node(s) didn't match pod topology spread constraints (missing required label)",)
)
_REQUIRED: Final = cyclestate.Key[constraints.Spread]("constraints that must hold")


class PodTopologySpread:
    """The plugin."""

    name: Final = _NAME

    def pre_filter(self, cycle: cyclestate.CycleState) -> PreFilterResult:
        """Read the pod's constraints. Skip the filter if none is required."""
        spread = _spread(cycle, constraints.DO_NOT_SCHEDULE)
        if not spread.constraints:
            return plugin.SKIP
        cycle.write(_REQUIRED, spread)
        return plugin.ALL_NODES

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> Filtered:
        """Return the nodes within the maximum skew of each constraint, with the pod on them."""
        spread, waiting_pod, snapshot = cycle.read(_REQUIRED), cycle.pod.pod, cycle.snapshot
        rejections: list[tuple[verdict.Rejection, int]] = []
        for each in spread.constraints:
            domains = topology.of(snapshot.nodes, each.topology_key)
            alive, more = plugin.split(alive, domains.members, rejection=_NO_LABEL)
            rejections += more
            alive, more = plugin.split(alive, _balanced_nodes(each, spread, waiting_pod, snapshot), rejection=_UNEVEN)
            rejections += more
            if not alive:
                break
        return alive, rejections

    def score(self, cycle: cyclestate.CycleState, passing: int) -> Scores:
        """Score nodes higher for fewer pods of the groups in their domains."""
        spread = _spread(cycle, constraints.SCHEDULE_ANYWAY)
        if not spread.constraints:
            return {}
        scored = passing
        if spread.needs_all_labels:
            for each in spread.constraints:
                scored &= topology.of(cycle.snapshot.nodes, each.topology_key).members
        classes: list[tuple[float, int]] = [(0.0, scored)]
        for each in spread.constraints:
            classes = _added(classes, _weighted_counts(each, spread, cycle, scored=scored))
        return _normalize(classes, ignored=passing & ~scored)

    def hints(self, snapshot: Snapshot) -> tuple[hints.Hint, ...]:
        """Return the changes that can help."""
        return _Hints(snapshot).all()


def _spread(cycle: cyclestate.CycleState, action: str) -> constraints.Spread:
    try:
        return constraints.of(cycle.pod.pod, action, cycle.snapshot)
    except errors.InvalidValueError as error:
        kind = "hard" if action == constraints.DO_NOT_SCHEDULE else "soft"
        raise verdict.AbortError(f"obtaining pod's {kind} topology spread constraints: {error}") from error


def _balanced_nodes(
    each: constraints.Constraint, spread: constraints.Spread, waiting_pod: pod.Pod, snapshot: Snapshot
) -> int:
    """Return the nodes in domains that may get the pod."""
    domains = topology.of(snapshot.nodes, each.topology_key)
    eligible = spread.eligible(each, waiting_pod, snapshot) & domains.members
    totals = domains.totals(spread.counts(each, snapshot), among=eligible)
    counted_nodes = domains.around(eligible)
    least = min((total for total, members in totals.items() if members & counted_nodes), default=0)
    if domains.number(eligible) < each.min_domains:
        least = 0
    own = each.group.has(waiting_pod.metadata.namespace, waiting_pod.metadata.labels)
    even = 0
    for total, members in totals.items():
        if total + own - least <= each.max_skew:
            even |= members
    return even


def _weighted_counts(
    each: constraints.Constraint, spread: constraints.Spread, cycle: cyclestate.CycleState, *, scored: int
) -> dict[float, int]:
    """Return the scored nodes by the weighted number of pods in their domain; fewer is better."""
    snapshot = cycle.snapshot
    domains = topology.of(snapshot.nodes, each.topology_key)
    counts = spread.counts(each, snapshot)
    if each.topology_key == topology.HOSTNAME:
        # As upstream: hosts are nodes, whether they count for the constraint or not.
        size = scored.bit_count()
        totals = {count: same & domains.members for count, same in counts.items()}
    else:
        # If labels may be missing, nodes without this label are one domain for the size of the topology.
        size = domains.number(scored) + bool(scored & ~domains.members)
        totals = domains.totals(counts, among=spread.eligible(each, cycle.pod.pod, snapshot))
    factor = math.log(size + 2)
    weighted: dict[float, int] = {0.0: scored & ~domains.members}
    for total, members in totals.items():
        worth = total * factor + (each.max_skew - 1)
        weighted[worth] = weighted.get(worth, 0) | members & scored
    return {worth: same for worth, same in weighted.items() if same}


def _added(classes: list[tuple[float, int]], more: dict[float, int]) -> list[tuple[float, int]]:
    if len(more) == 1:
        ((worth, _),) = more.items()
        return [(total + worth, nodes) for total, nodes in classes]
    return [(total + worth, both) for total, nodes in classes for worth, same in more.items() if (both := nodes & same)]


def _normalize(classes: list[tuple[float, int]], *, ignored: int) -> dict[int, int]:
    """Return scores from 0 to 100, highest for the fewest pods, and 0 for ignored nodes."""
    rounded: dict[int, int] = {}
    for total, same in classes:
        worth = math.floor(total + 0.5)
        rounded[worth] = rounded.get(worth, 0) | same
    scores: dict[int, int] = {0: ignored} if ignored else {}
    present = [worth for worth, same in rounded.items() if same]
    lowest, highest = min(present, default=0), max(present, default=0)
    for worth, same in rounded.items():
        if same:
            score = scoring.MAX * (highest + lowest - worth) // highest if highest else scoring.MAX
            scores[score] = scores.get(score, 0) | same
    return scores


# Hints


class _Hints:
    """Tests of changes that can help rejected pods."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot: Final = snapshot

    def all(self) -> tuple[hints.Hint, ...]:
        pods = hints.Action.ADD | hints.Action.DELETE | hints.Action.UPDATE_POD_LABEL
        own = hints.Action.UPDATE_POD_LABEL | hints.Action.UPDATE_POD_TOLERATION
        changes = hints.Action.ADD | hints.Action.DELETE
        labels = hints.Action.UPDATE_NODE_LABEL | hints.Action.UPDATE_NODE_TAINT
        return (
            hints.Hint(hints.Resource.ASSIGNED_POD, pods, self._pod_helps),
            hints.Hint(hints.Resource.TARGET_POD, own, self._update_helps),
            hints.Hint(hints.Resource.NODE, changes | labels, self._node_helps),
        )

    def _constraints(self, waiting_pod: pod.Pod) -> tuple[constraints.Constraint, ...]:
        return constraints.of(waiting_pod, constraints.DO_NOT_SCHEDULE, self._snapshot).constraints

    def _pod_helps(self, waiting_pod: pod.Pod, old: pod.Pod | None, new: pod.Pod | None) -> bool:
        return any(_belongs(each, old) is not _belongs(each, new) for each in self._constraints(waiting_pod))

    def _update_helps(self, waiting_pod: pod.Pod, old: pod.Pod, new: pod.Pod) -> bool:
        required = self._constraints(waiting_pod)
        if old.spec.tolerations != new.spec.tolerations and any(each.honors_taints for each in required):
            return True
        return self._pod_helps(waiting_pod, old, new)

    def _node_helps(self, waiting_pod: pod.Pod, old: nodes.Node | None, new: nodes.Node | None) -> bool:
        keys = constraints.keys(self._constraints(waiting_pod))
        was_member, is_member = (each is not None and keys <= each.metadata.labels.keys() for each in (old, new))
        if old is None or new is None or was_member is not is_member:
            return was_member or is_member
        if not is_member:
            return False
        has_moved = any(old.metadata.labels[key] != new.metadata.labels[key] for key in keys)
        return has_moved or old.spec.taints != new.spec.taints


def _belongs(each: constraints.Constraint, candidate: pod.Pod | None) -> bool:
    return candidate is not None and each.group.has(candidate.metadata.namespace, candidate.metadata.labels)
