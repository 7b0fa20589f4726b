"""Profiles: which plugins there are, in which order, with which weights; and running them, point by point.

The order is the same for decisions, dry runs of preemption and what-if questions, because all of them ask here. What
the outcome is to people (whose rejection a node counts for, which plugin is first to say no) follows from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from drachma.api import pod
from drachma.scheduler.framework import bindingwork, cyclestate, diagnosis, hints, plugin, scoring, verdict
from drachma.scheduler.snapshot import Snapshot, assignment

_POINTS: Final[tuple[tuple[str, type], ...]] = (
    ("PreEnqueue", plugin.PreEnqueuePlugin),
    ("PreFilter", plugin.PreFilterPlugin),
    ("Filter", plugin.FilterPlugin),
    ("PostFilter", plugin.PostFilterPlugin),
    ("Score", plugin.ScorePlugin),
    ("Reserve", plugin.ReservePlugin),
    ("PreBind", plugin.PreBindPlugin),
    ("EnqueueExtensions", plugin.EnqueueExtensions),
)
_REJECTING: Final = frozenset({"PreEnqueue", "PreFilter", "Filter"})
_ANY_CHANGE: Final = tuple(hints.Hint(resource, ~hints.Action(0), hints.always) for resource in hints.Resource)


class Entry(NamedTuple):
    """A plugin in a profile; the weight of its scores matters where it has any."""

    plugin: plugin.Plugin
    weight: int = 1

    @property
    def extension_points(self) -> tuple[str, ...]:
        """Where it takes part, by upstream's names."""
        return tuple(name for name, protocol in _POINTS if isinstance(self.plugin, protocol))

    @property
    def is_scoring(self) -> bool:
        return isinstance(self.plugin, plugin.ScorePlugin)


class Preselection(NamedTuple):
    """The nodes that come into question before any is looked at."""

    names: frozenset[str] | None = None
    """None for all."""
    absent: verdict.Rejection | None = None
    """With names: why all others do not."""


_ALL: Final = Preselection()


class Profile:
    """Plugins in order."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries: Final = tuple(entries)
        plugins = [entry.plugin for entry in entries]
        names = [each.name for each in plugins]
        if len(set(names)) < len(names):
            raise ValueError(f"a profile has every plugin once, not {names}")
        self._pre_enqueue: Final = [each for each in plugins if isinstance(each, plugin.PreEnqueuePlugin)]
        self._pre_filters: Final = [each for each in plugins if isinstance(each, plugin.PreFilterPlugin)]
        self._filters: Final = [(each.name, each.filter) for each in plugins if isinstance(each, plugin.FilterPlugin)]
        self._post_filters: Final = [each for each in plugins if isinstance(each, plugin.PostFilterPlugin)]
        self._scores: Final = [
            (entry.plugin.score, entry.weight) for entry in entries if isinstance(entry.plugin, plugin.ScorePlugin)
        ]
        self._reserves: Final = [each for each in plugins if isinstance(each, plugin.ReservePlugin)]
        self._pre_binds: Final = [each for each in plugins if isinstance(each, plugin.PreBindPlugin)]

    def __str__(self) -> str:
        """The plugins as a table, in their order."""
        return "\n".join(f"{name:<33}{weight:<8}{points}".rstrip() for name, weight, points in self._rows())

    def _rows(self) -> Iterator[tuple[str, str, str]]:
        yield "PLUGIN", "WEIGHT", "EXTENSION POINTS"
        for entry in self.entries:
            weight = str(entry.weight) if entry.is_scoring else ""
            yield entry.plugin.name, weight, ", ".join(entry.extension_points)

    # For the queue

    def pre_enqueue(self, waiting: pod.Pod, snapshot: Snapshot) -> verdict.Rejection | None:
        """Why a pod does not come into the active queue, if that is so."""
        for each in self._pre_enqueue:
            rejection = each.pre_enqueue(waiting, snapshot)
            if rejection is not None:
                return rejection
        return None

    def hints(self, snapshot: Snapshot) -> dict[str, Sequence[hints.Hint]]:
        """By plugin, the changes that can help pods which it rejected: any, where a plugin does not say."""
        by_plugin: dict[str, Sequence[hints.Hint]] = {}
        for entry in self.entries:
            if isinstance(entry.plugin, plugin.EnqueueExtensions):
                by_plugin[entry.plugin.name] = entry.plugin.hints(snapshot)
            elif not _REJECTING.isdisjoint(entry.extension_points):
                by_plugin[entry.plugin.name] = _ANY_CHANGE
        return by_plugin

    # For one pod

    def pre_filter(self, cycle: cyclestate.CycleState) -> Preselection | verdict.Rejection:
        """Which nodes are worth a look, or why none is."""
        names: frozenset[str] | None = None
        choosy: list[str] = []
        for each in self._pre_filters:
            result = each.pre_filter(cycle)
            if isinstance(result, verdict.Rejection):
                return result
            if result.is_skipped:
                cycle.skipped.append(each.name)
            elif result.names is not None:
                choosy.append(each.name)
                names = result.names if names is None else names & result.names
                if not names:
                    return verdict.Rejection(each.name, (_unsatisfied(choosy, suffix=" simultaneously"),))
        if names is None:
            return _ALL
        return Preselection(names, verdict.Rejection(choosy[0], (_unsatisfied(choosy),)))

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> plugin.Filtered:
        """The nodes that pass all filters, and the first rejection of each of the others."""
        rejections: list[tuple[verdict.Rejection, int]] = []
        skipped = cycle.skipped
        for name, run in self._filters:
            if not alive:
                break
            if name not in skipped:
                alive, rejected = run(cycle, alive)
                if rejected:
                    rejections += rejected
        return alive, rejections

    def filter_with_nominated_pods(self, cycle: cyclestate.CycleState, alive: int) -> plugin.Filtered:
        """The same, where nodes that are kept for more important pods must have room for these too."""
        kept = 0
        fork: Snapshot | None = None
        for node, pods in cycle.snapshot.nominations.ahead_of(cycle.pod):
            info = cycle.snapshot.nodes.find(node)
            if info is None or not info.bit & alive:
                continue
            kept |= info.bit
            fork = fork or cycle.snapshot.fork()
            for other in pods:
                fork.bind(assignment.Assignment(other.pod, node, other.demand))
        if fork is None:
            return self.filter(cycle, alive)
        passing, rejections = self.filter(cycle.on(fork), kept)
        passing, more = self.filter(cycle, alive & ~kept | passing)
        return passing, [*rejections, *more]

    def post_filter(self, cycle: cyclestate.CycleState, unfit: diagnosis.Diagnosis) -> plugin.PostFilterResult:
        """What may help a pod that fits nowhere: of the first plugin that succeeds, or of all that tried."""
        tried = plugin.PostFilterResult()
        if not unfit.node_count:
            return tried
        for each in self._post_filters:
            try:
                result = each.post_filter(cycle, unfit, filters=self)
            except verdict.AbortError as error:
                return plugin.PostFilterResult(str(error), remedies=tried.remedies)
            remedies = (*tried.remedies, *result.remedies)
            if result.node:
                return result._replace(remedies=remedies)
            message = ", ".join(filter(None, (tried.message, result.message)))
            is_hopeless = tried.is_hopeless or result.is_hopeless
            tried = plugin.PostFilterResult(message, is_hopeless=is_hopeless, remedies=remedies)
        return tried

    def best(self, cycle: cyclestate.CycleState, passing: int) -> int:
        """Of the nodes that would do, those with the highest score in all."""
        if not passing & (passing - 1):
            return passing
        classes = [(0, passing)]
        for run, weight in self._scores:
            scores = run(cycle, passing)
            if len(scores) > 1:
                classes = scoring.split(classes, scores, weight=weight)
        return scoring.best(classes)

    def reserve(self, cycle: cyclestate.CycleState, node: str) -> assignment.Assignment:
        """All that the pod takes on the node that was chosen for it."""
        planned = assignment.Assignment(cycle.pod.pod, node, cycle.pod.demand)
        for each in self._reserves:
            planned = each.reserve(cycle, planned)
        return planned

    def pre_bind(
        self, cycle: cyclestate.CycleState, planned: assignment.Assignment, *, handle: bindingwork.Handle
    ) -> list[tuple[str, bindingwork.BindingWork]]:
        """What has to be done before a pod is bound, each with the name of its plugin."""
        work: list[tuple[str, bindingwork.BindingWork]] = []
        for each in self._pre_binds:
            todo = each.pre_bind(cycle, planned, handle=handle)
            if todo is not None:
                work.append((each.name, todo))
        return work


def _unsatisfied(plugins: list[str], *, suffix: str = "") -> str:
    if suffix and len(plugins) == 1:
        return f"node(s) didn't satisfy plugin {plugins[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]{suffix}"
