"""NodeResourcesFit: filters nodes by the resources left, and prefers the nodes with most or least left."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Final, NamedTuple

from drachma.accounting import ledger, requests, resourcenames
from drachma.api import deviceclass, gates, pod
from drachma.api import node as nodes
from drachma.scheduler.framework import cyclestate, hints, plugin, resourcescoring, scoring, verdict
from drachma.scheduler.framework.plugin import Filtered, PreFilterResult, Scores
from drachma.scheduler.snapshot import Snapshot, assignment, delegation, nodeinfo, podinfo

_NAME: Final = "NodeResourcesFit"
_TOO_MANY: Final = "Too many pods"


class Fit(NamedTuple):
    """Fit of a demand on a node: a score, or reasons."""

    score: int
    reasons: tuple[str, ...] = ()
    is_resolvable: bool = False

    @property
    def rejection(self) -> verdict.Rejection:
        return verdict.Rejection(_NAME, self.reasons, self.is_resolvable)


class FitQuestion:
    """Question to a node's ledger. ``delegated`` are resources that devices may provide."""

    __slots__ = ("_amounts", "_delegated", "_scored_cpu", "_scored_memory", "demand", "key")

    def __init__(self, demand: ledger.Demand, delegated: frozenset[str] = frozenset()) -> None:
        self._amounts = demand.amounts
        self._delegated = delegated
        self._scored_cpu, self._scored_memory = demand.scored_cpu, demand.scored_memory
        self.demand = demand
        self.key: Hashable = (_NAME, demand.amounts, demand.scored_cpu, demand.scored_memory, delegated)
        """Key of the question: equal only if every node gives the same answers."""

    def ask(self, account: ledger.Ledger) -> Fit:
        """Return the answer of one ledger."""
        short = ledger.lacking_resources(self._amounts, account, delegated=self._delegated)
        is_full = len(account.bookings) + 1 > account.allowed_pods
        if not short and not is_full:
            return Fit(self._least_allocated(account))
        reasons = tuple(f"Insufficient {name}" for name in short)
        if is_full:
            reasons = (_TOO_MANY, *reasons)
        return Fit(0, reasons, ledger.could_fit_empty(short, self._amounts, account=account))

    def ask_node(self, info: nodeinfo.NodeInfo) -> Fit:
        """Return the answer of a node of a snapshot."""
        return self.ask(info.ledger)

    def _least_allocated(self, account: ledger.Ledger) -> int:
        """Return the score of the default strategy, which nodes give with their fit."""
        all_cpu = account.allocatable.get(resourcenames.CPU, 0)
        all_memory = account.allocatable.get(resourcenames.MEMORY, 0)
        score = 0
        if all_cpu:
            score += max(all_cpu - account.scored_cpu - self._scored_cpu, 0) * scoring.MAX // all_cpu
        if all_memory:
            score += max(all_memory - account.scored_memory - self._scored_memory, 0) * scoring.MAX // all_memory
        return score // 2 if all_cpu and all_memory else score


_DEFAULT: Final = resourcescoring.Strategy()
_QUESTION: Final = cyclestate.Key[FitQuestion]("what nodes are asked")
_SCORES: Final = cyclestate.Key[Scores]("scores of the nodes that fit")


class NodeResourcesFit:
    """The plugin."""

    name: Final = _NAME

    def __init__(self, enabled: gates.Gates, *, strategy: resourcescoring.Strategy = _DEFAULT) -> None:
        self._strategy: Final = strategy
        self._has_extended: Final = enabled.on(gates.Gate.EXTENDED_RESOURCE)

    def pre_filter(self, cycle: cyclestate.CycleState) -> PreFilterResult:
        """Prepare the question to nodes."""
        demand = delegation.demand(cycle.pod, cycle.snapshot)
        delegated = delegation.extended(cycle.pod, cycle.snapshot.devices) if self._has_extended else frozenset()
        cycle.write(_QUESTION, FitQuestion(demand, delegated))
        return plugin.ALL_NODES

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> Filtered:
        """Return the nodes with enough left."""
        question = cycle.read(_QUESTION)
        classes = cycle.snapshot.nodes.resources.classes(question.key, question.ask_node, among=alive)
        passing = 0
        rejections: list[tuple[verdict.Rejection, int]] = []
        scores: dict[int, int] = {}
        for fit, nodes_alike in classes.items():
            same = nodes_alike & alive
            if not same:
                continue
            if fit.reasons:
                rejections.append((fit.rejection, same))
            else:
                passing |= same
                scores[fit.score] = same
        cycle.write(_SCORES, scores)
        return passing, rejections

    def is_local(self, cycle: cyclestate.CycleState) -> bool:
        """Return True if no devices provide resources of the pod."""
        return not cycle.pod.needs_devices

    def score(self, cycle: cyclestate.CycleState, passing: int) -> Scores:
        """Score nodes by the resources left, more or less being better by strategy."""
        strategy = self._strategy
        if strategy == _DEFAULT:
            return cycle.read(_SCORES)
        demand = cycle.read(_QUESTION).demand
        question = resourcescoring.ScoreQuestion(
            (_NAME, strategy),
            strategy.resources,
            resourcescoring.requests_of(demand, strategy.resources, is_defaulted=True),
            strategy.score,
            is_defaulted=True,
        )
        return resourcescoring.score_nodes(cycle, question, passing=passing, has_devices=self._has_extended)

    def score_placement(self, pods: Sequence[podinfo.PodInfo], nodes: Sequence[nodeinfo.NodeInfo]) -> int:
        """Score a topology domain by how full it is with the pods, whatever the strategy for single nodes is."""
        resources = self._strategy.resources
        of_pods = [resourcescoring.requests_of(info.demand, resources, is_defaulted=True) for info in pods]
        total = tuple(map(sum, zip(*of_pods, strict=True))) if of_pods else (0,) * len(resources)
        packed = resourcescoring.Strategy(resourcescoring.StrategyType.MOST_ALLOCATED, resources)
        question = resourcescoring.ScoreQuestion(None, resources, total, packed.score, is_defaulted=True)
        of_nodes = list(zip(*(question.usages(info) for info in nodes), strict=True))
        return packed.score(
            [
                resourcescoring.Usage(
                    amount + sum(each.allocated for each in usages),
                    sum(each.allocated for each in usages),
                    sum(each.allocatable for each in usages),
                )
                for amount, usages in zip(total, of_nodes, strict=True)
            ]
        )

    def still_fits(self, planned: assignment.Assignment, account: ledger.Ledger) -> bool:
        """Return True if the node has enough left for the pod."""
        return not FitQuestion(planned.demand, planned.delegated).ask(account).reasons

    def hints(self, _snapshot: Snapshot) -> tuple[hints.Hint, ...]:
        """Return the changes that can help."""
        return _HINTS


def _node_helps(waiting_pod: pod.Pod, old: nodes.Node | None, new: nodes.Node) -> bool:
    requested = resourcenames.amounts(requests.total(waiting_pod))
    account = ledger.Ledger()
    account.measure(new)
    if account.allowed_pods < 1 or ledger.lacking_resources(tuple(_node_amounts(requested)), account):
        return False
    if old is None:
        return True
    before = ledger.Ledger()
    before.measure(old)
    if account.allowed_pods > before.allowed_pods:
        return True
    return any(account.allocatable.get(name, 0) > before.allocatable.get(name, 0) for name, _ in requested)


def _node_amounts(requested: resourcenames.Amounts) -> Iterable[tuple[str, int]]:
    """Yield the amounts that the node must have. A device class may back the others, which is not known here."""
    return (entry for entry in requested if not resourcenames.may_be_devices(entry[0]))


def _class_helps(waiting_pod: pod.Pod, old: deviceclass.DeviceClass | None, new: deviceclass.DeviceClass) -> bool:
    requested = dict(resourcenames.amounts(requests.total(waiting_pod)))
    explicit = new.spec.extended_resource_name
    if old is None and resourcenames.DEVICE_CLASS_PREFIX + new.metadata.name in requested:
        return True
    return (
        explicit is not None and explicit in requested and (old is None or old.spec.extended_resource_name != explicit)
    )


_HINTS: Final = (
    hints.Hint(hints.Resource.ASSIGNED_POD, hints.Action.DELETE, hints.always),
    hints.Hint(hints.Resource.ASSIGNED_POD, hints.Action.UPDATE_POD_SCALE_DOWN, hints.always),
    hints.Hint(hints.Resource.TARGET_POD, hints.Action.UPDATE_POD_SCALE_DOWN, hints.always),
    hints.Hint(hints.Resource.NODE, hints.Action.ADD | hints.Action.UPDATE_NODE_ALLOCATABLE, _node_helps),
    hints.Hint(hints.Resource.DEVICE_CLASS, hints.Action.ADD | hints.Action.UPDATE, _class_helps),
)
