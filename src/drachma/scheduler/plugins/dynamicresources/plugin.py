"""The plugin: extension point by extension point, each with its own module behind it."""

from __future__ import annotations

from typing import Final

import msgspec

from drachma.accounting import ledger
from drachma.api import pod
from drachma.claims import reservation
from drachma.scheduler.framework import bindingwork, cyclestate, diagnosis, hints, plugin, remedy, scoring, verdict
from drachma.scheduler.plugins.dynamicresources import (
    claimassignment,
    claimbinding,
    claimplan,
    devicefilter,
    devicequestion,
    options,
    queueinghints,
    verdicts,
)
from drachma.scheduler.snapshot import Snapshot, assignment

_PLAN: Final = cyclestate.Key[claimplan.ClaimPlan]("claims of the pod")
_FILTER: Final = cyclestate.Key[devicefilter.DeviceFilter]("device filter")


class DynamicResources:
    """Has claims allocated where a pod goes."""

    name: Final = verdicts.NAME

    def __init__(self, chosen: options.Options) -> None:
        self._options: Final = chosen
        self._questions: Final = devicequestion.DeviceQuestions(chosen)

    def pre_enqueue(self, waiting: pod.Pod, snapshot: Snapshot) -> verdict.Rejection | None:
        """Why the pod is not even tried: a claim of it is not there."""
        return queueinghints.pre_enqueue(waiting, snapshot)

    def hints(self, snapshot: Snapshot) -> tuple[hints.Hint, ...]:
        """The changes that can help."""
        return queueinghints.QueueingHints(snapshot).all()

    def pre_filter(self, cycle: cyclestate.CycleState) -> plugin.PreFilterResult | verdict.Rejection:
        """Works out what the pod's claims mean."""
        plan = claimplan.make(cycle.pod, cycle.snapshot.devices, self._options.enabled, new_uid=self._options.new_uid)
        if plan is None:
            return plugin.SKIP
        if isinstance(plan, verdict.Rejection):
            return plan
        cycle.write(_PLAN, plan)
        return plugin.ALL_NODES

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> plugin.Filtered:
        """The nodes on which the claims are available or can be allocated."""
        devices = devicefilter.DeviceFilter(
            cycle.pod, cycle.snapshot, plan=cycle.read(_PLAN), questions=self._questions, chosen=self._options
        )
        devices.run(alive)
        cycle.write(_FILTER, devices)
        return devices.passing, devices.rejections

    def post_filter(
        self, cycle: cyclestate.CycleState, _unfit: diagnosis.Diagnosis, *, filters: plugin.Filters
    ) -> plugin.PostFilterResult:
        """Has a claim that is in the way and not in use deallocated, or one that is left over deleted."""
        plan, devices = cycle.find(_PLAN), cycle.find(_FILTER)
        if plan is None:
            return plugin.PostFilterResult()
        unavailable = [] if devices is None else devices.unavailable
        for number in self._options.chance.sample(unavailable, len(unavailable)):
            claim = plan.claims[number].claim
            users = claim.status.reserved_for
            if not users or (len(users) == 1 and reservation.is_reserved_for(claim, cycle.pod.pod)):
                message = "deallocation of ResourceClaim completed"
                return plugin.PostFilterResult(message, remedies=(remedy.Deallocation(claim),))
        if plan.is_stale and plan.special is not None:
            message = "deletion of ResourceClaim completed"
            return plugin.PostFilterResult(message, remedies=(remedy.ClaimDeletion(plan.special),))
        return plugin.PostFilterResult()

    def score(self, cycle: cyclestate.CycleState, passing: int) -> plugin.Scores:
        """The earlier the alternatives that a node gives, the better."""
        devices = cycle.find(_FILTER)
        if devices is None or len(devices.scores) < 2:
            return {}
        return scoring.normalized(devices.scores, among=passing)

    def reserve(self, cycle: cyclestate.CycleState, planned: assignment.Assignment) -> assignment.Assignment:
        """Allocates the claims on the node that was chosen, and adds what their devices mean for it."""
        plan = cycle.find(_PLAN)
        info = cycle.snapshot.nodes.find(planned.node)
        if plan is None or info is None:
            return planned
        devices = cycle.read(_FILTER)
        group = devices.group_of(info)
        allocations: tuple[assignment.Allocation, ...] = ()
        if group.question is not None:
            results = group.question.allocate(group.claims, cycle.snapshot.devices.at(info))
            if isinstance(results, devicequestion.Answer):
                raise verdict.AbortError("claim allocation not found for node")
            allocations = tuple(map(assignment.Allocation, group.claims, results))
        account = devices.account_for(group, info, results=tuple(entry.result for entry in allocations))
        claimassignment.leave(
            cycle,
            claimassignment.ClaimAssignment(plan, allocations, group.mappings, account.statuses, account.settled),
        )
        planned = planned._replace(
            allocations=(*planned.allocations, *allocations), delegated=planned.delegated | frozenset(plan.extended)
        )
        if not account.statuses and account.settled is None:
            return planned
        # Counted with what its status will say: others who want the same claims can tell from it what these mean.
        status = msgspec.structs.replace(planned.pod.status, node_allocatable_resource_claim_statuses=account.statuses)
        counted = msgspec.structs.replace(planned.pod, status=status)
        demand = ledger.demand(planned.pod, claims=account.statuses, settled=account.settled)
        return planned._replace(pod=counted, demand=demand)

    def pre_bind(
        self, cycle: cyclestate.CycleState, planned: assignment.Assignment, *, handle: bindingwork.Handle
    ) -> bindingwork.BindingWork | None:
        """Writes the pod's claims; nothing where it has none."""
        assigned = claimassignment.of(cycle)
        if assigned.plan is None:
            return None
        return claimbinding.ClaimBinding(
            cycle.pod.pod,
            assigned.on(cycle.snapshot.claims),
            node=planned.node,
            tracker=cycle.snapshot.claims,
            handle=handle,
            chosen=self._options,
        )


class DevicePolicy:
    """Prefers nodes by what a policy for devices thinks of the devices that they would give."""

    name: Final = "DevicePolicy"

    def score(self, cycle: cyclestate.CycleState, passing: int) -> plugin.Scores:
        """The rank of the devices that DynamicResources found; without claims no node is preferred.

        Nodes that only have a later alternative of a prioritized list have the lowest: what a pod likes best by itself
        comes before what a policy does.
        """
        devices = cycle.find(_FILTER)
        if devices is None or not devices.scores:
            return {}
        best = devices.scores[max(devices.scores)]
        ranks = {0: passing & ~best}
        for rank, nodes in devices.ranks.items():
            ranks[rank] = ranks.get(rank, 0) | nodes & best
        return ranks
