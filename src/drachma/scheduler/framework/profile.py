"""Profiles: plugins with their order and weights, run one extension point after the other.

Decisions, dry runs of preemption and what-if questions all go through a profile, so the order is the same. Messages
depend on the order too: a node counts for the first plugin that rejects it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final, NamedTuple

from drachma.accounting import ledger
from drachma.api import pod
from drachma.scheduler.framework import bindingwork, cyclestate, diagnosis, handle, hints, plugin, scoring, verdict
from drachma.scheduler.snapshot import Snapshot, assignment, nodeinfo, podaffinity, podinfo

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
    """Plugin in a profile, with the weight of its scores; with weight 0 it does not score."""

    plugin: plugin.Plugin
    weight: int = 1

    @property
    def extension_points(self) -> tuple[str, ...]:
        """Extension points of the plugin, by upstream's names."""
        points = tuple(name for name, protocol in _POINTS if isinstance(self.plugin, protocol))
        return points if self.weight else tuple(name for name in points if name != "Score")

    @property
    def is_scoring(self) -> bool:
        return isinstance(self.plugin, plugin.ScorePlugin) and self.weight > 0


class Preselection(NamedTuple):
    """Nodes that remain after PreFilter."""

    names: frozenset[str] | None = None
    """None for all."""
    absent: verdict.Rejection | None = None
    """Rejection of all other nodes."""


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
        self._local_filters: Final = [
            (each.name, each.is_local if isinstance(each, plugin.LocalFilterPlugin) else None)
            for each in plugins
            if isinstance(each, plugin.FilterPlugin)
        ]
        self._post_filters: Final = [each for each in plugins if isinstance(each, plugin.PostFilterPlugin)]
        self._scores: Final = [
            (entry.plugin.score, entry.weight)
            for entry in entries
            if isinstance(entry.plugin, plugin.ScorePlugin) and entry.is_scoring
        ]
        self._placement_scores: Final = [
            (entry.plugin.score_placement, entry.weight)
            for entry in entries
            if isinstance(entry.plugin, plugin.PlacementScorePlugin)
        ]
        self._reserves: Final = [each for each in plugins if isinstance(each, plugin.ReservePlugin)]
        self._rechecks: Final = [each for each in plugins if isinstance(each, plugin.RecheckPlugin)]
        self._pre_binds: Final = [each for each in plugins if isinstance(each, plugin.PreBindPlugin)]
        self._hinting: Final = [each for each in plugins if isinstance(each, plugin.EnqueueExtensions)]
        self._without_hints: Final = {
            entry.plugin.name: _ANY_CHANGE
            for entry in entries
            if entry.plugin not in self._hinting and not _REJECTING.isdisjoint(entry.extension_points)
        }

    def __str__(self) -> str:
        """Return the plugins as a table, in their order."""
        return "\n".join(f"{name:<33}{weight:<8}{points}".rstrip() for name, weight, points in self._rows())

    def _rows(self) -> Iterator[tuple[str, str, str]]:
        yield "PLUGIN", "WEIGHT", "EXTENSION POINTS"
        for entry in self.entries:
            weight = str(entry.weight) if entry.is_scoring else ""
            yield entry.plugin.name, weight, ", ".join(entry.extension_points)

    # For the queue

    def pre_enqueue(self, waiting_pod: pod.Pod, snapshot: Snapshot) -> verdict.Rejection | None:
        """Return the first rejection of a pod before it becomes active, or None."""
        for each in self._pre_enqueue:
            rejection = each.pre_enqueue(waiting_pod, snapshot)
            if rejection is not None:
                return rejection
        return None

    def hints(self, snapshot: Snapshot) -> dict[str, Sequence[hints.Hint]]:
        """Return the changes that can help pods rejected by each plugin. For a plugin without hints, any change can."""
        return {each.name: each.hints(snapshot) for each in self._hinting} | self._without_hints

    # For groups of pods

    def score_placement(self, pods: Sequence[podinfo.PodInfo], nodes: Sequence[nodeinfo.NodeInfo]) -> int:
        """Return the weighted scores of a topology domain with these nodes for pods that would go there."""
        return sum(weight * score(pods, nodes) for score, weight in self._placement_scores)

    # For one pod

    def pre_filter(self, cycle: cyclestate.CycleState) -> Preselection | verdict.Rejection:
        """Return the nodes to filter, or a rejection if no node is feasible."""
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
                    return verdict.Rejection(each.name, (_unsatisfied_message(choosy, suffix=" simultaneously"),))
        if names is None:
            return _ALL
        return Preselection(names, verdict.Rejection(choosy[0], (_unsatisfied_message(choosy),)))

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> plugin.Filtered:
        """Return the nodes that pass all filters, and the first rejection of each other node."""
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
        """Filter nodes that must also have room for more important pods nominated for them."""
        nominated = _nominated(cycle, alive)
        if not nominated:
            return self.filter(cycle, alive)
        passing, rejections = self._filter_nominated_nodes(cycle, nominated)
        other_nodes = alive
        for info, _ in nominated:
            other_nodes &= ~info.bit
        passing, more = self.filter(cycle, other_nodes | passing)
        return passing, [*rejections, *more]

    def _filter_nominated_nodes(self, cycle: cyclestate.CycleState, nominated: _Nominated) -> plugin.Filtered:
        """Filter nodes as if the pods nominated for them were there."""
        has_rules = any(podaffinity.is_stated(each.pod) for _, nominees in nominated for each in nominees)
        question = self.local_question(cycle) if len(nominated) > 1 and not has_rules else None
        if question is None:
            return self._filter_occupied_nodes(cycle, nominated)
        answers = cycle.snapshot.trials.answers(question, _Occupied)
        passing, by_rejection = 0, dict[verdict.Rejection, int]()
        unanswered: list[tuple[nodeinfo.NodeInfo, list[podinfo.PodInfo]]] = []
        for info, nominees in nominated:
            answer = answers.find(info, nominees)
            if answer is None:
                unanswered.append((info, nominees))
            elif answer.rejection is None:
                passing |= info.bit
            else:
                by_rejection[answer.rejection] = by_rejection.get(answer.rejection, 0) | info.bit
        rejections = list(by_rejection.items())
        if unanswered:
            more_passing, more = self._filter_occupied_nodes(cycle, unanswered)
            for info, nominees in unanswered:
                rejection = next((each for each, nodes in more if nodes & info.bit), None)
                answers.keep(info, nominees, _Occupied(rejection))
            passing, rejections = passing | more_passing, [*rejections, *more]
        return passing, rejections

    def _filter_occupied_nodes(self, cycle: cyclestate.CycleState, nominated: _Nominated) -> plugin.Filtered:
        fork, nodes = cycle.snapshot.fork(), 0
        for info, nominees in nominated:
            nodes |= info.bit
            for nominee in nominees:
                fork.bind(assignment.Assignment(nominee.pod, info.name, nominee.demand))
        return self.filter(cycle.on(fork), nodes)

    def local_question(self, cycle: cyclestate.CycleState) -> Hashable | None:
        """Return a key of what the filters ask each node, or None if they read more than the node."""
        for name, is_local in self._local_filters:
            if name not in cycle.skipped and (is_local is None or not is_local(cycle)):
                return None
        return self, podinfo.shape(cycle.pod.pod)

    def post_filter(self, cycle: cyclestate.CycleState, unfit: diagnosis.Diagnosis) -> plugin.PostFilterResult:
        """Return what may help a pod that fits nowhere: from the first plugin that succeeds, or from all plugins."""
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
        """Return the feasible nodes with the highest total score."""
        if not passing & (passing - 1):
            return passing
        return scoring.best(passing, [(run(cycle, passing), weight) for run, weight in self._scores])

    def reserve(self, cycle: cyclestate.CycleState, node: str) -> assignment.Assignment:
        """Return the assignment of a pod to a node, with the additions of all plugins."""
        planned = assignment.Assignment(cycle.pod.pod, node, cycle.pod.demand)
        for each in self._reserves:
            planned = each.reserve(cycle, planned)
        return planned

    def still_fits(self, planned: assignment.Assignment, account: ledger.Ledger) -> bool:
        """Return True if no plugin objects to a pod on its node, where other schedulers placed pods meanwhile."""
        return all(each.still_fits(planned, account) for each in self._rechecks)

    def pre_bind(
        self, cycle: cyclestate.CycleState, planned: assignment.Assignment, *, handle: handle.Handle
    ) -> list[tuple[str, bindingwork.BindingWork]]:
        """Return the work before a pod is bound, each with the name of its plugin."""
        work: list[tuple[str, bindingwork.BindingWork]] = []
        for each in self._pre_binds:
            todo = each.pre_bind(cycle, planned, handle=handle)
            if todo is not None:
                work.append((each.name, todo))
        return work


_Nominated = Sequence[tuple[nodeinfo.NodeInfo, list[podinfo.PodInfo]]]
"""Nodes, each with the pods nominated for it."""


class _Occupied(NamedTuple):
    """Answer of a node on which the pods nominated for it count."""

    rejection: verdict.Rejection | None


def _nominated(cycle: cyclestate.CycleState, alive: int) -> _Nominated:
    """Return the nodes among these that are nominated for more important pods."""
    nodes, nominations = cycle.snapshot.nodes, cycle.snapshot.nominations
    if alive and not alive & (alive - 1):
        info = nodes.at(alive.bit_length() - 1)
        nominees = nominations.ahead_on(cycle.pod, info.name)
        return [(info, nominees)] if nominees else []
    candidates = ((nodes.find(name), nominees) for name, nominees in nominations.ahead_of(cycle.pod))
    return [(info, nominees) for info, nominees in candidates if info is not None and info.bit & alive]


def _unsatisfied_message(plugins: list[str], *, suffix: str = "") -> str:
    if suffix and len(plugins) == 1:
        return f"node(s) didn't satisfy plugin {plugins[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}]{suffix}"
