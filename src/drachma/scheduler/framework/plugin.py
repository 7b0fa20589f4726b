"""Plugins: what takes part in scheduling a pod, by upstream's extension points.

A plugin has upstream's name and any of the methods below; a :class:`drachma.scheduler.framework.profile.Profile` finds
out which. Plugins know nodes only as sets: a filter gets the set of nodes that are left and says which of them pass and
why the others do not, asking each class of nodes once (:mod:`drachma.scheduler.snapshot.nodeclass`). They decide, and
change nothing; only PreBind writes. They may raise :class:`~drachma.scheduler.framework.verdict.AbortError`.

All they look at is passed in, the cluster as a :class:`~drachma.scheduler.snapshot.Snapshot`: one plugin serves live
decisions, dry runs and what-if questions alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol, runtime_checkable

from drachma.api import pod
from drachma.scheduler.framework import bindingwork, cyclestate, diagnosis, hints, remedy, verdict
from drachma.scheduler.snapshot import Snapshot, assignment

Scores = Mapping[int, int]
"""Sets of nodes by score, from 0 to 100."""


class PreFilterResult(NamedTuple):
    """What is known about a pod before any node is looked at."""

    names: frozenset[str] | None = None
    """The only nodes that come into question; None for all."""
    is_skipped: bool = False
    """Whether there is nothing to filter for this pod."""


ALL_NODES: Final = PreFilterResult()
SKIP: Final = PreFilterResult(is_skipped=True)


Rejections = Sequence[tuple[verdict.Rejection, int]]
"""Sets of nodes that do not pass, each with the reason."""

Filtered = tuple[int, Rejections]
"""What became of a set of nodes: those that pass, and the others, each in one of the sets."""


def split(alive: int, passing: int, *, rejection: verdict.Rejection) -> Filtered:
    """The outcome where all nodes that do not pass are rejected for the same reason."""
    rejected = alive & ~passing
    return (alive & passing, ((rejection, rejected),)) if rejected else (alive, ())


class PostFilterResult(NamedTuple):
    """What was tried for a pod that fits nowhere, in the words of its condition."""

    message: str = ""
    node: str = ""
    """The node that is to be kept for the pod: success, and nothing else is tried."""
    is_hopeless: bool = False
    """Whether no node is worth keeping for the pod."""
    remedies: tuple[remedy.Remedy, ...] = ()


class Plugin(Protocol):
    """Anything in a profile."""

    @property
    def name(self) -> str: ...


class Filters(Protocol):
    """All filters of a profile, for plugins that make dry runs."""

    def filter_with_nominated_pods(self, cycle: cyclestate.CycleState, alive: int) -> Filtered: ...


@runtime_checkable
class PreEnqueuePlugin(Plugin, Protocol):
    """Has a say before a pod comes into the active queue."""

    def pre_enqueue(self, waiting: pod.Pod, snapshot: Snapshot) -> verdict.Rejection | None:
        """Why the pod is not even tried, if that is so."""
        ...


@runtime_checkable
class EnqueueExtensions(Plugin, Protocol):
    """Knows what can help the pods that it rejected. Without, any change may."""

    def hints(self, snapshot: Snapshot) -> Sequence[hints.Hint]:
        """The changes that can help; tests of them read the snapshot as it is by then."""
        ...


@runtime_checkable
class PreFilterPlugin(Plugin, Protocol):
    """Looks at the pod before any node is looked at."""

    def pre_filter(self, cycle: cyclestate.CycleState) -> PreFilterResult | verdict.Rejection:
        """What is known by then, or why the pod fits nowhere."""
        ...


@runtime_checkable
class FilterPlugin(Plugin, Protocol):
    """Rules out nodes."""

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> Filtered:
        """What becomes of the nodes that are left; ``alive`` is never empty."""
        ...


@runtime_checkable
class PostFilterPlugin(Plugin, Protocol):
    """Tries to make a pod fit next time."""

    def post_filter(
        self, cycle: cyclestate.CycleState, unfit: diagnosis.Diagnosis, *, filters: Filters
    ) -> PostFilterResult:
        """What may help, and what to say about it."""
        ...


@runtime_checkable
class ScorePlugin(Plugin, Protocol):
    """Prefers some of the nodes that would do."""

    def score(self, cycle: cyclestate.CycleState, passing: int) -> Scores:
        """The passing nodes by score, normalized. Only differences count: one class, or none, prefers nothing."""
        ...


@runtime_checkable
class ReservePlugin(Plugin, Protocol):
    """Knows what else a pod takes on the node that was chosen."""

    def reserve(self, cycle: cyclestate.CycleState, planned: assignment.Assignment) -> assignment.Assignment:
        """The assignment with what this plugin adds; the snapshot counts it, and uncounts it if binding fails."""
        ...


@runtime_checkable
class PreBindPlugin(Plugin, Protocol):
    """Has something written before a pod is bound."""

    def pre_bind(
        self, cycle: cyclestate.CycleState, planned: assignment.Assignment, *, handle: bindingwork.Handle
    ) -> bindingwork.BindingWork | None:
        """What is to be done for the pod on the node that was chosen; None for nothing."""
        ...
