"""The plugin, with its extension points and hints."""

from __future__ import annotations

import random
from typing import Final

import msgspec

from drachma.accounting import ledger
from drachma.api import pod, podgroup, resourceclaim
from drachma.claims import podclaims, reservation
from drachma.scheduler.framework import bindingwork, cyclestate, diagnosis, handle, hints, plugin, scoring, verdict
from drachma.scheduler.plugins.dynamicresources import (
    claimbinding,
    claimplan,
    claimwriter,
    devicefilter,
    devicequestion,
    noderating,
    options,
    verdicts,
)
from drachma.scheduler.snapshot import Snapshot, assignment

_PLAN: Final = cyclestate.Key[claimplan.ClaimPlan]("claims of the pod")
_PROMISED: Final = verdicts.rejection("node(s) had devices that are being freed for a more important pod")
_FILTER: Final = cyclestate.Key[devicefilter.DeviceFilter]("device filter")


class DynamicResources:
    """Allocates claims on the node of a pod."""

    name: Final = verdicts.NAME

    def __init__(self, options: options.Options) -> None:
        self._options: Final = options
        self._questions: Final = devicequestion.DeviceQuestions(options)

    def pre_enqueue(self, waiting_pod: pod.Pod, snapshot: Snapshot) -> verdict.Rejection | None:
        """Return a rejection if a claim of the pod does not exist."""
        return _missing_claim(waiting_pod, snapshot)

    def hints(self, snapshot: Snapshot) -> tuple[hints.Hint, ...]:
        """Return the changes that can help."""
        return QueueingHints(snapshot).all()

    def pre_filter(self, cycle: cyclestate.CycleState) -> plugin.PreFilterResult | verdict.Rejection:
        """Make the plan for the pod's claims."""
        plan = claimplan.make(cycle.pod, cycle.snapshot, self._options.enabled, new_uid=self._options.new_uid)
        if plan is None:
            return plugin.SKIP
        if isinstance(plan, verdict.Rejection):
            return plan
        cycle.write(_PLAN, plan)
        return plugin.ALL_NODES

    def filter(self, cycle: cyclestate.CycleState, alive: int) -> plugin.Filtered:
        """Return the nodes on which the claims are available or can be allocated."""
        promised = _promised_nodes(cycle) & alive if cycle.snapshot.frees_devices else 0
        devices = devicefilter.DeviceFilter(
            cycle.pod, cycle.snapshot, plan=cycle.read(_PLAN), questions=self._questions, options=self._options
        )
        devices.run(alive & ~promised)
        cycle.write(_FILTER, devices)
        rejections = [*devices.rejections, (_PROMISED, promised)] if promised else devices.rejections
        return devices.passing, rejections

    def post_filter(
        self, cycle: cyclestate.CycleState, _unfit: diagnosis.Diagnosis, *, filters: plugin.Filters
    ) -> plugin.PostFilterResult:
        """Propose to deallocate a claim that is in the way and not in use, or to delete one that was left behind."""
        plan, devices = cycle.find(_PLAN), cycle.find(_FILTER)
        if plan is None:
            return plugin.PostFilterResult()
        unavailable = [] if devices is None else devices.unavailable
        for number in self._options.chance.sample(unavailable, len(unavailable)):
            claim, consumer = plan.claims[number].claim, plan.claims[number].consumer
            users = claim.status.reserved_for
            is_shared = isinstance(consumer, podgroup.PodGroup)
            if not users or (len(users) == 1 and not is_shared and reservation.is_reserved_for(claim, consumer)):
                message = "deallocation of ResourceClaim completed"
                return plugin.PostFilterResult(message, remedies=(claimwriter.Deallocation(claim, cycle.pod.pod),))
        if plan.is_stale and plan.special is not None:
            message = "deletion of ResourceClaim completed"
            return plugin.PostFilterResult(message, remedies=(claimwriter.Deletion(plan.special),))
        return plugin.PostFilterResult()

    def score(self, cycle: cyclestate.CycleState, passing: int) -> plugin.Scores:
        """Score nodes higher for earlier alternatives."""
        devices = cycle.find(_FILTER)
        if devices is None or len(devices.scores) < 2:
            return {}
        return scoring.normalize(devices.scores, among=passing)

    def reserve(self, cycle: cyclestate.CycleState, planned: assignment.Assignment) -> assignment.Assignment:
        """Allocate the claims on the chosen node, and add the mapped resources of their devices."""
        plan = cycle.find(_PLAN)
        info = cycle.snapshot.nodes.find(planned.node)
        if plan is None or info is None:
            return planned
        devices = cycle.read(_FILTER)
        group = devices.group_of(info)
        allocations: tuple[assignment.Allocation, ...] = ()
        if group.question is not None:
            results = group.question.allocate(
                group.claims, cycle.snapshot.devices.at(info), room=devices.rooms.get(info.bit)
            )
            if isinstance(results, devicequestion.Answer):
                if results.outcome is devicequestion.Outcome.GAVE_UP:
                    raise devicequestion.gave_up(info.name)
                raise verdict.AbortError("claim allocation not found for node")
            allocations = tuple(map(assignment.Allocation, group.claims, results))
        account = devices.account_for(group, info, results=tuple(entry.result for entry in allocations))
        claimplan.write_assignment(
            cycle,
            claimplan.ClaimAssignment(plan, allocations, group.mappings, account.statuses, account.settled),
        )
        planned = planned._replace(
            allocations=(*planned.allocations, *allocations), delegated=planned.delegated | frozenset(plan.extended)
        )
        if not account.statuses and account.settled is None:
            return planned
        # Count the pod with its future status, which other pods with the same claims read.
        status = msgspec.structs.replace(planned.pod.status, node_allocatable_resource_claim_statuses=account.statuses)
        counted_pod = msgspec.structs.replace(planned.pod, status=status)
        demand = ledger.demand(planned.pod, claims=account.statuses, settled=account.settled)
        return planned._replace(pod=counted_pod, demand=demand)

    def pre_bind(
        self, cycle: cyclestate.CycleState, planned: assignment.Assignment, *, handle: handle.Handle
    ) -> bindingwork.BindingWork | None:
        """Return the work that writes the pod's claims, or None."""
        assigned = claimplan.read_assignment(cycle)
        if assigned.plan is None:
            return None
        return claimbinding.ClaimBinding(
            cycle.pod.pod,
            assigned.on(cycle.snapshot.claims),
            node=planned.node,
            tracker=cycle.snapshot.claims,
            handle=handle,
            options=self._options,
        )


def _promised_nodes(cycle: cyclestate.CycleState) -> int:
    """Return the nodes whose devices are being freed for more important pods."""
    nodes = 0
    for name, nominees in cycle.snapshot.nominations.ahead_of(cycle.pod):
        info = cycle.snapshot.nodes.find(name)
        if info is not None and any(each.priority > cycle.pod.priority and each.needs_devices for each in nominees):
            nodes |= info.bit
    return nodes


class DevicePolicy:
    """Prefers nodes by the rank of their devices under a policy."""

    name: Final = "DevicePolicy"

    def score(self, cycle: cyclestate.CycleState, passing: int) -> plugin.Scores:
        """Return the rank of the devices that DynamicResources found. Without claims no node is preferred.

        Nodes with only a later alternative of a prioritized list have the lowest rank: the pod's own preference comes
        before the policy.
        """
        devices = cycle.find(_FILTER)
        if devices is None or not devices.scores:
            return {}
        best = devices.scores[max(devices.scores)]
        ranks = {0: passing & ~best}
        for rank, nodes in devices.ranks.items():
            ranks[rank] = ranks.get(rank, 0) | nodes & best
        return ranks


class PackingPolicy:
    """Prefers nodes by a packing policy: by their free CPU and devices, and the requests that are typical here."""

    name: Final = "PackingPolicy"

    def __init__(self, policy: str, rng: random.Random) -> None:
        self._rater: Final = noderating.NodeRater(policy, rng)

    def score(self, cycle: cyclestate.CycleState, passing: int) -> plugin.Scores:
        """Return nodes by the order of their ratings, the best with the highest score."""
        return self._rater.score(cycle.pod, cycle.snapshot, cycle.find(_FILTER), passing)


Claim = resourceclaim.ResourceClaim


def _missing_claim(waiting_pod: pod.Pod, snapshot: Snapshot) -> verdict.Rejection | None:
    """Return a rejection that names a claim of the pod that does not exist, if any."""
    if not waiting_pod.spec.resource_claims:
        return None
    try:
        podclaims.resolve(waiting_pod, snapshot.claims)
    except podclaims.MissingError as error:
        return verdicts.rejection(str(error))
    return None


class QueueingHints:
    """Tests of changes."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot: Final = snapshot

    def all(self) -> tuple[hints.Hint, ...]:
        """Return all hints of the plugin."""
        action, resource = hints.Action, hints.Resource
        node_actions = action.ADD | action.UPDATE_NODE_LABEL | action.UPDATE_NODE_ALLOCATABLE
        return (
            hints.Hint(resource.NODE, node_actions, hints.always),
            hints.Hint(resource.RESOURCE_CLAIM, action.ADD | action.UPDATE | action.DELETE, self._claim_helps),
            hints.Hint(resource.TARGET_POD, action.UPDATE_POD_GENERATED_CLAIM, self._own_update_helps),
            hints.Hint(resource.DEVICE_CLASS, action.ADD | action.UPDATE, hints.always),
            hints.Hint(resource.RESOURCE_SLICE, action.ADD | action.UPDATE, hints.always),
            # Differs from upstream, where such a pod waits for minutes: devices that are mapped to cpu or memory can
            # have been too much for a node together with its pods.
            hints.Hint(resource.ASSIGNED_POD, action.DELETE | action.UPDATE_POD_SCALE_DOWN, self._room_helps),
        )

    def _room_helps(self, _waiting: pod.Pod, _old: pod.Pod, _new: pod.Pod | None) -> bool:
        return self._snapshot.devices.has_mappings

    def _claim_helps(self, waiting_pod: pod.Pod, old: Claim | None, new: Claim | None) -> bool:
        if new is None:
            return old is not None and old.status.allocation is not None
        try:
            used = podclaims.resolve(waiting_pod, self._snapshot.claims)
        except podclaims.MissingError:
            return False
        if reservation.frees_devices(old, new):
            return True
        if all(entry.claim.metadata.uid != new.metadata.uid for entry in used):
            return False
        if reservation.is_full(new) and not reservation.is_reserved_for(new, waiting_pod):
            return False
        return old is None or old.status != new.status

    def _own_update_helps(self, _waiting: pod.Pod, _old: pod.Pod, new: pod.Pod) -> bool:
        return _missing_claim(new, self._snapshot) is None
