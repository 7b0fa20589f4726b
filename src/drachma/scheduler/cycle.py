"""The scheduling cycle: from a pod and the cluster to a decision. Nothing is written and nothing is changed here.

Filters narrow down one set of nodes, each asking its question of classes of nodes; then scores choose among those that
are left. Order and outcome of filters are upstream's, because they decide what people read about a pod that does not
fit. Differs from upstream: all nodes are considered, not a sample of them in large clusters.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple

from drachma.accounting import accountant, ledger
from drachma.api import gates
from drachma.scheduler import cluster, nominations, podinfo, podshape, scoring, verdict
from drachma.scheduler.decision import Aborted, Allocation, Decision, Diagnosis, Placed, Unfit
from drachma.scheduler.dynamicresources import claimplan, devicefilter, devicequestion, inventory, preference, sharedfit
from drachma.scheduler.plugins import nodeports, noderesources


class Tools(NamedTuple):
    """What a decision needs beside the cluster: passed in, so that tests can hold it fast."""

    enabled: gates.Gates
    filter_seconds: float | None
    binding_seconds: float
    monotonic: Callable[[], float]
    utc: Callable[[], datetime]
    chance: random.Random
    new_uid: Callable[[], str]
    observe: Callable[[str, float], None] = lambda point, seconds: None
    """Hears how long an extension point took."""


class Cycle:
    """Decides about pods, one after the other."""

    def __init__(
        self,
        nodes: cluster.Cluster,
        devices: inventory.Inventory,
        *,
        books: accountant.Accountant,
        nominated: nominations.Nominations,
        tools: Tools,
    ) -> None:
        self._books: Final = books
        self._cluster: Final = nodes
        self._devices: Final = devices
        self._nominated: Final = nominated
        self._tools: Final = tools
        self._device_filter: Final = devicefilter.DeviceFilter(nodes, devices, books)
        self._shapes: Final = podshape.PodShapes(nodes)
        self._with_extended: Final = tools.enabled.on(gates.Gate.EXTENDED_RESOURCE)
        seconds = tools.filter_seconds if tools.enabled.on(gates.Gate.SCHEDULER_FILTER_TIMEOUT) else None
        self._circumstances: Final = devicefilter.Circumstances(
            tools.enabled, devicequestion.Patience(seconds, tools.monotonic), tools.binding_seconds, tools.utc
        )

    def decide(self, info: podinfo.PodInfo) -> Decision:
        """Where a pod goes, why it goes nowhere, or what went wrong."""
        try:
            return self._decide(info)
        except verdict.AbortError as error:
            return Aborted(info, str(error))

    def _decide(self, info: podinfo.PodInfo) -> Decision:
        count = len(self._cluster)
        if not count:
            return Unfit(info, Diagnosis(0))
        began = self._tools.monotonic()
        shape = self._shapes.of(info)
        named = shape.named
        if isinstance(named, verdict.Rejection):
            return Unfit(info, Diagnosis(count, named))
        plan = claimplan.make(info, self._devices, self._tools.enabled, new_uid=self._tools.new_uid)
        if isinstance(plan, verdict.Rejection):
            return Unfit(info, Diagnosis(count, plan))
        self._tools.observe("PreFilter", self._tools.monotonic() - began)
        attempt = _Attempt(self, info, plan, shape=shape)
        favourite = self._cluster.find(self._nominated.node_of(info.uid) or info.pod.status.nominated_node_name)
        if favourite is not None:
            # The node that others were evicted from is tried alone first.
            passing = attempt.filter(favourite.bit)
            if passing:
                return attempt.place(passing)
            attempt = _Attempt(self, info, plan, shape=shape)
        alive, absent = self._cluster.everyone, None
        if named is not None:
            alive = sum(state.bit for state in map(self._cluster.find, named) if state is not None)
            reason = f"node(s) didn't satisfy plugin(s) [{verdict.NODE_AFFINITY}]"
            absent = (verdict.Rejection(verdict.NODE_AFFINITY, (reason,)), count - alive.bit_count())
        passing = attempt.filter(alive)
        if passing:
            return attempt.place(passing)
        diagnosis = Diagnosis(
            count, None, tuple(attempt.rejections), absent if absent is not None and absent[1] else None
        )
        return Unfit(info, diagnosis, plan, attempt.unavailable)

    def obstacle(
        self, info: podinfo.PodInfo, state: cluster.NodeState, *, account: ledger.Ledger
    ) -> verdict.Rejection | None:
        """Why a pod would not fit on a node if its ledger were another; labels and taints are taken for granted.

        Raises AbortError for what a decision would report as such.
        """
        plan = claimplan.make(info, self._devices, self._tools.enabled, new_uid=self._tools.new_uid)
        if isinstance(plan, verdict.Rejection):
            return plan
        if not nodeports.fits(info.demand.ports, account):
            return nodeports.REJECTION
        fit = self.fit_question(info, plan).ask(account)
        if fit.reasons:
            return fit.rejection
        if plan is None:
            return None
        imagined = cluster.NodeState(state.name, state.slot, account)
        imagined.node, imagined.place = state.node, state.place
        return self._device_filter.obstacle(plan, info, imagined, given=self._circumstances)

    def fit_question(self, info: podinfo.PodInfo, plan: claimplan.ClaimPlan | None) -> noderesources.FitQuestion:
        """What is asked of nodes' ledgers about a pod."""
        demand = info.demand
        if plan is not None and self._books.has_policies and claimplan.manages_node_resources(plan, self._devices):
            # What containers request may come out of pools: the device filter knows.
            left = tuple(entry for entry in demand.amounts if not sharedfit.is_shared(entry[0]))
            demand = demand._replace(amounts=left)
        if self._with_extended:
            return noderesources.FitQuestion(demand, claimplan.delegated(info, self._devices))
        return noderesources.FitQuestion(demand)


class _Attempt:
    """One pass over nodes for one pod."""

    def __init__(
        self, cycle: Cycle, info: podinfo.PodInfo, plan: claimplan.ClaimPlan | None, *, shape: podshape.PodShape
    ) -> None:
        self._cycle = cycle
        self._shape = shape
        self._cluster = cycle._cluster
        self._info = info
        self._plan = plan
        self._fit = cycle.fit_question(info, plan)
        self._fits: dict[noderesources.Fit, int] = {}
        self._filtered: devicefilter.Filtered | None = None
        self.rejections: list[tuple[verdict.Rejection, int]] = []

    @property
    def unavailable(self) -> tuple[int, ...]:
        return () if self._filtered is None else tuple(self._filtered.unavailable)

    def filter(self, alive: int) -> int:
        """The nodes that would do, of those given."""
        tools = self._cycle._tools
        began = tools.monotonic()
        passing = self._filter(alive)
        tools.observe("Filter", tools.monotonic() - began)
        return passing

    def _filter(self, alive: int) -> int:
        alive = self._give_way(self._shape.filter(alive, self.rejections))
        if self._info.demand.ports and alive & self._cluster.with_ports:
            in_use = alive & self._cluster.with_ports
            classes = self._cluster.by_account.of(
                ("ports", self._info.demand.ports),
                lambda state: nodeports.fits(self._info.demand.ports, state.ledger),
            )
            free = classes.settle(self._cluster.nodes, in_use).get(True, 0)
            alive = self._keep(alive, free | ~self._cluster.with_ports, nodeports.REJECTION)
        alive = self._fit_accounts(alive)
        if self._plan is None or not alive:
            return alive
        self._filtered = self._cycle._device_filter.filter(
            self._plan, self._info, alive=alive, given=self._cycle._circumstances
        )
        self.rejections += self._filtered.rejections
        return self._filtered.passing

    def place(self, passing: int) -> Placed:
        """The best of the nodes that would do, and what it takes to go there."""
        cycle = self._cycle
        tools = cycle._tools
        began = tools.monotonic()
        best = self._best(passing)
        tools.observe("Score", tools.monotonic() - began)
        state = self._cluster.nodes[scoring.pick(best, tools.chance.randrange(len(self._cluster.nodes)))]
        feasible = passing.bit_count()
        if self._plan is None or self._filtered is None:
            return Placed(self._info, state.name, feasible=feasible)
        group = self._filtered.group_of(state)
        allocations: tuple[Allocation, ...] = ()
        if group.question is not None:
            made = group.question.allocate(state)
            if isinstance(made, devicequestion.Answer):
                raise verdict.AbortError("claim allocation not found for node")
            allocations = tuple(map(Allocation, group.question.claims, made))
        account = accountant.NOTHING
        if cycle._devices.has_mappings and tools.enabled.on(gates.Gate.NODE_ALLOCATABLE_RESOURCES):
            account = cycle._device_filter.account(
                self._plan,
                self._info,
                group,
                state=state,
                allocations=tuple(entry.result for entry in allocations),
            )
        return Placed(
            self._info,
            state.name,
            plan=self._plan,
            allocations=allocations,
            mappings=group.mappings,
            statuses=account.statuses,
            settled=account.settled,
            feasible=feasible,
        )

    def _keep(self, alive: int, passing: int, rejection: verdict.Rejection) -> int:
        rejected = alive & ~passing
        if rejected:
            self.rejections.append((rejection, rejected))
        return alive & passing

    def _give_way(self, alive: int) -> int:
        """Leave nodes to pods that they are kept for, if they would not have room for both."""
        nominated = self._cycle._nominated
        for name in nominated.nodes():
            state = self._cluster.find(name)
            if state is None or not alive & state.bit:
                continue
            ahead = nominated.ahead_of(self._info, name)
            if not ahead:
                continue
            account = state.ledger.copy()
            for other in ahead:
                account.book(ledger.Booking(other.pod, other.demand))
            if not nodeports.fits(self._info.demand.ports, account):
                alive = self._keep(alive, ~state.bit, nodeports.REJECTION)
            else:
                fit = self._fit.ask(account)
                if fit.reasons:
                    alive = self._keep(alive, ~state.bit, fit.rejection)
        return alive

    def _fit_accounts(self, alive: int) -> int:
        if not alive:
            return 0
        ask = functools.partial(_ask_account, self._fit)
        classes = self._cluster.by_account.of(("fit", self._fit.key), ask)
        passing = 0
        for fit, mask in classes.settle(self._cluster.nodes, alive).items():
            same = mask & alive
            if not same:
                continue
            if fit.reasons:
                self.rejections.append((fit.rejection, same))
            else:
                self._fits[fit] = same
                passing |= same
        return passing

    def _best(self, passing: int) -> int:
        if not passing & (passing - 1):
            return passing
        classes = [(0, passing)]
        for preferred, found in self._shape.preferences():
            given = found.settle(self._cluster.nodes, passing)
            # Only differences count.
            if len(given) > 1:
                scores = scoring.normalized(given, among=passing, less_is_better=preferred.less_is_better)
                classes = scoring.split(classes, scores, weight=preferred.weight)
        if self._filtered is not None and len(self._filtered.scores) > 1:
            scores = scoring.normalized(self._filtered.scores, among=passing)
            classes = scoring.split(classes, scores, weight=preference.WEIGHT)
        classes = scoring.split(classes, {fit.score: nodes for fit, nodes in self._fits.items()})
        return scoring.best(classes)


def _ask_account(question: noderesources.FitQuestion, state: cluster.NodeState) -> noderesources.Fit:
    return question.ask(state.ledger)
