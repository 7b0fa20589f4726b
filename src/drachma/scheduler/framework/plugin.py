"""Plugins: the extension points of scheduling, as upstream has them.

A plugin has upstream's name and any of the methods below. A :class:`drachma.scheduler.framework.profile.Profile` finds
out which. Plugins see nodes as sets: a filter gets the set of remaining nodes and returns the passing ones and the
rejections of the others, asking each class of nodes once (:mod:`drachma.scheduler.snapshot.nodeclass`). Plugins decide
and change nothing; only PreBind and remedies write. They may raise
:class:`~drachma.scheduler.framework.verdict.AbortError`.

Everything that a plugin reads is passed in, the cluster as a :class:`~drachma.scheduler.snapshot.Snapshot`. So one
plugin serves live decisions, dry runs and what-if questions.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, runtime_checkable

from drachma.accounting import ledger
from drachma.api import pod
from drachma.scheduler.framework import bindingwork, cyclestate, diagnosis, handle, hints, remedy, verdict
from drachma.scheduler.snapshot import Snapshot, assignment, nodeinfo, podinfo

Scores = Mapping[int, int]
"""Sets of nodes by score, from 0 to 100."""


class PreFilterResult(NamedTuple):
    """Result of PreFilter."""

    names: frozenset[str] | None = None
    """Nodes to filter; None for all."""
    is_skipped: bool = False
    """True if the plugin has nothing to filter for this pod."""


ALL_NODES: Final = PreFilterResult()
SKIP: Final = PreFilterResult(is_skipped=True)


Rejections = Sequence[tuple[verdict.Rejection, int]]
"""Sets of nodes that do not pass, each with the reason."""

Filtered = tuple[int, Rejections]
"""Passing nodes, and the rejections of the others. Each other node is in exactly one rejection."""


def split(alive: int, passing: int, *, rejection: verdict.Rejection) -> Filtered:
    """Return the result of a filter that rejects nodes for one reason."""
    rejected = alive & ~passing
    return (alive & passing, ((rejection, rejected),)) if rejected else (alive, ())


class PostFilterResult(NamedTuple):
    """Result of PostFilter, with a message for the pod's condition."""

    message: str = ""
    node: str = ""
    """Node to nominate for the pod. If there is one, no further plugin is asked."""
    is_hopeless: bool = False
    """True if no node should stay nominated for the pod."""
    remedies: tuple[remedy.Remedy, ...] = ()


class Plugin(Protocol):
    """Member of a profile."""

    @property
    def name(self) -> str: ...


class Filters(Protocol):
    """All filters of a profile, for plugins that make dry runs."""

    def filter_with_nominated_pods(self, cycle: cyclestate.CycleState, alive: int) -> Filtered: ...

    def local_question(self, cycle: cyclestate.CycleState) -> Hashable | None:
        """Return a key of what the filters ask each node, or None if they read more than the node.

        Equal keys mean equal answers of nodes that are equal, with the same pods on them.
        """
        ...


@runtime_checkable
class PreEnqueuePlugin(Plugin, Protocol):
    """Plugin that is asked before a pod becomes active in the queue."""

    def pre_enqueue(self, waiting_pod: pod.Pod, snapshot: Snapshot) -> verdict.Rejection | None:
        """Return a rejection if the pod must not be tried."""
        ...


@runtime_checkable
class EnqueueExtensions(Plugin, Protocol):
    """Plugin with queueing hints. For a plugin without, any change may help."""

    def hints(self, snapshot: Snapshot) -> Sequence[hints.Hint]:
        """Return the changes that can help a rejected pod. Their tests read the snapshot at the time of the change."""
        ...


@runtime_checkable
class PreFilterPlugin(Plugin, Protocol):
    """Plugin that looks at a pod before nodes are filtered."""

    def pre_filter(self, cycle: cyclestate.CycleState) -> PreFilterResult | verdict.Rejection:
        """Return the nodes to filter, or a rejection if the pod fits nowhere."""
        ...


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """Plugin that filters nodes."""

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> Filtered:
        """Filter nodes. ``alive`` is never empty."""
        ...


@runtime_checkable
class LocalFilterPlugin(Plugin, Protocol):
    """Filter plugin whose answers for some pods depend on nothing but the node and the pods on it.

    The answers of dry runs are kept for the next pod of the same shape if all filters are local.
    """

    def is_local(self, cycle: cyclestate.CycleState) -> bool:
        """Return True if the answer about a node follows from the shape of the pod, the node, and the pods on it."""
        ...


@runtime_checkable
class PostFilterPlugin(Plugin, Protocol):
    """Plugin that looks for help for a pod that fits nowhere."""

    def post_filter(
        self, cycle: cyclestate.CycleState, unfit: diagnosis.Diagnosis, *, filters: Filters
    ) -> PostFilterResult:
        """Return remedies and a message about them."""
        ...


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """Plugin that prefers some of the feasible nodes."""

    def score(self, cycle: cyclestate.CycleState, passing: int) -> Scores:
        """Return the passing nodes by normalized score. Only differences count: a single class prefers nothing."""
        ...


@runtime_checkable
class PlacementScorePlugin(Plugin, Protocol):
    """Plugin that prefers some of the topology domains that a pod group fits in."""

    def score_placement(self, pods: Sequence[podinfo.PodInfo], nodes: Sequence[nodeinfo.NodeInfo]) -> int:
        """Return the score, from 0 to 100, of a domain with these nodes for pods that would go there."""
        ...


@runtime_checkable
class ReservePlugin(Plugin, Protocol):
    """Plugin that adds to the resources that a pod takes on its node."""

    def reserve(self, cycle: cyclestate.CycleState, planned: assignment.Assignment) -> assignment.Assignment:
        """Return the assignment with additions of this plugin. The snapshot counts it until binding fails."""
        ...


@runtime_checkable
class RecheckPlugin(Plugin, Protocol):
    """Checks a node again before anything is written for a pod, since other schedulers may have used the node."""

    def still_fits(self, planned: assignment.Assignment, account: ledger.Ledger) -> bool:
        """Return True if the pod fits next to the pods in the account: bound ones and those announced before it."""
        ...


@runtime_checkable
class PreBindPlugin(Plugin, Protocol):
    """Plugin that writes before a pod is bound."""

    def pre_bind(
        self, cycle: cyclestate.CycleState, planned: assignment.Assignment, *, handle: handle.Handle
    ) -> bindingwork.BindingWork | None:
        """Return the work for a pod on its node, or None."""
        ...
