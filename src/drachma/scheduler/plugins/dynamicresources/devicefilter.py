"""The device filter: on which nodes a pod's claims are available or can be allocated, for all nodes at once.

Called by a decision with the nodes that passed all other filters. Sets of nodes are integers; nodes that look alike
are decided together. The result also says what PostFilter needs (claims that were in the way) and what it takes to
commit to one of the nodes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from datetime import datetime
from typing import Final, NamedTuple

from drachma.accounting import accountant, footprint, podbudget
from drachma.api import gates, resourceclaim
from drachma.claims import reservation
from drachma.scheduler import cluster, podinfo, selectors, verdict
from drachma.scheduler.dynamicresources import (
    bindingconditions,
    claimplan,
    devicequestion,
    extendedclaim,
    inventory,
    preference,
    sharedfit,
)
from drachma.scheduler.dynamicresources.devicequestion import Answer, Outcome

_QUESTIONS_REMEMBERED: Final = 256


class Group(NamedTuple):
    """Nodes on which the same claims have to be allocated."""

    nodes: int
    question: devicequestion.DeviceQuestion | None
    """None where nothing has to be allocated."""
    special: resourceclaim.ResourceClaim | None = None
    mappings: extendedclaim.Mappings = ()


class Filtered:
    """What became of the nodes."""

    __slots__ = ("groups", "passing", "rejections", "scores", "unavailable")

    def __init__(self) -> None:
        self.passing = 0
        self.scores: dict[int, int] = {}
        """The passing nodes by how good their alternatives are."""
        self.rejections: list[tuple[verdict.Rejection, int]] = []
        self.groups: list[Group] = []
        self.unavailable: list[int] = []
        """Claims (their numbers in the plan) that are allocated and were not to be had on some node."""

    def reject(self, nodes: int, reason: str) -> None:
        if nodes:
            self.rejections.append((_rejection(reason), nodes))

    def group_of(self, state: cluster.NodeState) -> Group:
        """The group of a passing node."""
        return next(group for group in self.groups if group.nodes & state.bit)


class Circumstances(NamedTuple):
    """What the filter goes by beside the cluster."""

    enabled: gates.Gates
    patience: devicequestion.Patience
    binding_seconds: float
    now: Callable[[], datetime]


class DeviceFilter:
    """Filters nodes by their devices."""

    def __init__(self, nodes: cluster.Cluster, devices: inventory.Inventory, books: accountant.Accountant) -> None:
        self._cluster: Final = nodes
        self._devices: Final = devices
        self._books: Final = books
        self._questions: Final[dict[Hashable, devicequestion.DeviceQuestion]] = {}
        self._class_changes = -1

    def filter(self, plan: claimplan.ClaimPlan, info: podinfo.PodInfo, *, alive: int, given: Circumstances) -> Filtered:
        """What becomes of the nodes of ``alive``; AbortError for what makes scheduling the pod pointless."""
        found = Filtered()
        if plan.is_stale:
            found.reject(alive, "cannot schedule extended resource claim")
            return found
        groups = self._groups(plan, info, alive=alive, found=found, given=given)
        alive = sum(group.nodes for group in groups)
        blocked: dict[int, int] = {}
        alive = self._check_claims(plan, info, alive=alive, found=found, blocked=blocked, given=given)
        unavailable = functools.reduce(int.__or__, blocked.values(), 0) if blocked else 0
        base = sum(
            preference.score(entry.claim, entry.claim.status.allocation)
            for entry in plan.claims
            if entry.claim.status.allocation is not None
        )
        for group in groups:
            nodes = group.nodes & alive
            if not nodes:
                continue
            passing = 0
            for answer, same in self._answers(group, nodes, found=found):
                left = self._check_account(plan, info, group, answer, nodes=same, found=found, given=given)
                passing |= left
                left &= ~unavailable
                if left:
                    found.scores[base + answer.score] = found.scores.get(base + answer.score, 0) | left
            for number, nodes_blocked in blocked.items():
                if nodes_blocked & passing and number not in found.unavailable:
                    found.unavailable.append(number)
            found.reject(passing & unavailable, "resourceclaim not available on the node")
            found.groups.append(group._replace(nodes=passing & ~unavailable))
            found.passing |= passing & ~unavailable
        return found

    def obstacle(
        self, plan: claimplan.ClaimPlan, info: podinfo.PodInfo, state: cluster.NodeState, *, given: Circumstances
    ) -> verdict.Rejection | None:
        """Why a node with another ledger than its own would not do: for what-if questions, one node at a time."""
        found = Filtered()
        if plan.is_stale:
            return _rejection("cannot schedule extended resource claim")
        groups = self._groups(plan, info, alive=state.bit, found=found, given=given)
        blocked: dict[int, int] = {}
        alive = state.bit if groups else 0
        alive = self._check_claims(plan, info, alive=alive, found=found, blocked=blocked, given=given)
        answers = self._answers(groups[0], alive, found=found) if alive else []
        if found.rejections:
            return found.rejections[0][0]
        if blocked:
            return _rejection("resourceclaim not available on the node")
        account = self._account(plan, info, groups[0], answers[0][0].footprints)
        problem = account.problem or podbudget.problem(info.pod, account.statuses)
        if problem:
            return _rejection(problem)
        fit = sharedfit.question(info, account)(state)
        if fit.reasons:
            return verdict.Rejection(verdict.DYNAMIC_RESOURCES, fit.reasons, fit.is_resolvable)
        return None

    def _groups(
        self,
        plan: claimplan.ClaimPlan,
        info: podinfo.PodInfo,
        *,
        alive: int,
        found: Filtered,
        given: Circumstances,
    ) -> list[Group]:
        """The nodes by what has to be allocated on them; only extended resources make a difference there."""
        claims = plan.unallocated
        if plan.special is None:
            return [Group(alive, self._question(claims, given) if claims else None)]
        groups: list[Group] = []
        ask = functools.partial(_by_devices, plan.extended, self._devices)
        classes = self._cluster.by_account.of(("extended", plan.extended, self._devices.class_changes), ask)
        for by_devices, mask in classes.settle(self._cluster.nodes, alive).items():
            nodes = mask & alive
            if not nodes:
                continue
            if isinstance(by_devices, str):
                found.reject(nodes, by_devices)
            elif not by_devices:
                groups.append(Group(nodes, self._question(claims, given) if claims else None))
            else:
                wanted = extendedclaim.requested(info.pod, by_devices, self._devices.names)
                special = extendedclaim.named(plan.special, wanted)
                question = self._question([*claims, special], given)
                groups.append(Group(nodes, question, special, wanted.mappings))
        return groups

    def _check_claims(
        self,
        plan: claimplan.ClaimPlan,
        info: podinfo.PodInfo,
        *,
        alive: int,
        found: Filtered,
        blocked: dict[int, int],
        given: Circumstances,
    ) -> int:
        """The nodes that no allocated claim rules out at once.

        ``blocked`` gets, by the number of a claim, the nodes on which it is not to be had.
        """
        for number, entry in enumerate(plan.claims):
            allocation = entry.claim.status.allocation
            if allocation is None or not alive:
                continue
            here = self._usable(allocation, alive)
            away = alive & ~here
            if here and self._is_hopeless(entry.claim, given):
                away = alive
            if away:
                blocked[number] = away
            if here and self._is_unshareable(entry.claim, allocation, info, given=given):
                found.reject(
                    here,
                    f"node allocatable resource claim {entry.claim.metadata.name} has a mapped device "
                    "and cannot be shared across pods",
                )
                alive &= ~here
        return alive

    def _usable(self, allocation: resourceclaim.AllocationResult, alive: int) -> int:
        """The nodes on which an allocated claim can be used."""
        here = alive & self._available_on(allocation, alive)
        if any(result.skip_node_operations for result in allocation.devices.results):
            here &= self._declaring(gates.Gate.OPTIONAL_NODE_OPERATIONS, here)
        return here

    def _is_hopeless(self, claim: resourceclaim.ResourceClaim, given: Circumstances) -> bool:
        """Whether the devices of an allocated claim will not become ready any more."""
        if not given.enabled.binding_conditions:
            return False
        readiness = bindingconditions.judge(claim).readiness
        if readiness is bindingconditions.Readiness.WAITING:
            return bindingconditions.is_late(claim, now=given.now(), timeout=given.binding_seconds)
        return readiness is bindingconditions.Readiness.FAILED

    def _is_unshareable(
        self,
        claim: resourceclaim.ResourceClaim,
        allocation: resourceclaim.AllocationResult,
        info: podinfo.PodInfo,
        *,
        given: Circumstances,
    ) -> bool:
        """Whether a claim is in use by another pod and its devices are a node's own resources."""
        return (
            self._devices.has_mappings
            and given.enabled.on(gates.Gate.NODE_ALLOCATABLE_RESOURCES)
            and bool(claim.status.reserved_for)
            and not reservation.is_reserved_for(claim, info.pod)
            and footprint.has_mapping(allocation, self._devices.find)
            and not self._may_be_shared(claim, allocation)
        )

    def _may_be_shared(self, claim: resourceclaim.ResourceClaim, allocation: resourceclaim.AllocationResult) -> bool:
        with devicequestion.aborting():
            return self._books.may_be_shared(claim, allocation)

    def _available_on(self, allocation: resourceclaim.AllocationResult, among: int) -> int:
        """The nodes on which an allocation can be used."""
        selector = allocation.node_selector
        if selector is None:
            return among
        name = selectors.only_name(selector)
        if name is not None:
            state = self._cluster.find(name)
            return 0 if state is None else state.bit
        matcher = selectors.strict(selector)
        classes = self._cluster.by_shape.of(
            ("selector", selector), lambda state: matcher.matches(state.node.metadata.labels, state.name)
        )
        return classes.settle(self._cluster.nodes, among).get(True, 0)

    def _declaring(self, feature: str, among: int) -> int:
        classes = self._cluster.by_shape.of(
            ("declares", feature), lambda state: feature in state.place.declared_features
        )
        return classes.settle(self._cluster.nodes, among).get(True, 0)

    def _answers(self, group: Group, nodes: int, *, found: Filtered) -> list[tuple[Answer, int]]:
        """The nodes on which the claims can be allocated, by what comes out."""
        if group.question is None:
            return [(Answer(Outcome.FITS), nodes)]
        fitting: list[tuple[Answer, int]] = []
        for answer, mask in group.question.classes.settle(self._cluster.nodes, nodes).items():
            same = mask & nodes
            if not same:
                continue
            if answer.outcome is Outcome.FITS:
                fitting.append((answer, same))
            elif answer.outcome is Outcome.DOES_NOT_FIT:
                found.reject(same, "cannot allocate all claims")
            else:
                found.reject(same, "invalid resource pools were encountered")
        return fitting

    def _check_account(
        self,
        plan: claimplan.ClaimPlan,
        info: podinfo.PodInfo,
        group: Group,
        answer: Answer,
        *,
        nodes: int,
        found: Filtered,
        given: Circumstances,
    ) -> int:
        """The nodes that have enough left for what the devices mean, beside the pod's own requests."""
        if not self._devices.has_mappings or not given.enabled.on(gates.Gate.NODE_ALLOCATABLE_RESOURCES):
            return nodes
        account = self._account(plan, info, group, answer.footprints)
        problem = account.problem or podbudget.problem(info.pod, account.statuses)
        if problem:
            found.reject(nodes, problem)
            return 0
        if not account.statuses and not self._is_delegated(plan):
            return nodes
        ask = sharedfit.question(info, account)
        classes = self._cluster.by_account.of(("claims", ask.args), ask)
        passing = 0
        for fit, mask in classes.settle(self._cluster.nodes, nodes).items():
            same = mask & nodes
            if not fit.reasons:
                passing |= same
            elif same:
                found.rejections.append(
                    (verdict.Rejection(verdict.DYNAMIC_RESOURCES, fit.reasons, fit.is_resolvable), same)
                )
        return passing

    def _account(
        self,
        plan: claimplan.ClaimPlan,
        info: podinfo.PodInfo,
        group: Group,
        footprints: tuple[footprint.Footprint, ...],
    ) -> accountant.Account:
        """What the claims of a pod come to, with these footprints of those that are to be allocated."""
        meant: dict[str, tuple[str, footprint.Footprint]] = {}
        remaining = iter(footprints)
        for entry in plan.claims:
            allocation = entry.claim.status.allocation
            if allocation is not None:
                with devicequestion.aborting():
                    mark = self._books.meaning(entry.claim, allocation)
            else:
                mark = next(remaining, footprint.NOTHING)
            meant[entry.claim.metadata.name] = (entry.name, mark)
        if group.special is not None:
            meant[group.special.metadata.name] = ("", next(remaining, footprint.NOTHING))
        return self._books.account(info.pod, meant)

    def account(
        self,
        plan: claimplan.ClaimPlan,
        info: podinfo.PodInfo,
        group: Group,
        *,
        state: cluster.NodeState,
        allocations: tuple[resourceclaim.AllocationResult, ...],
    ) -> accountant.Account:
        """What the claims of a pod come to on the node that was chosen."""
        if not self._devices.has_mappings:
            return accountant.NOTHING
        claims = [*plan.unallocated, *(() if group.special is None else (group.special,))]
        find = self._devices.view(state).find
        with devicequestion.aborting():
            footprints = tuple(
                self._books.meaning(claim, result, find=find) for claim, result in zip(claims, allocations, strict=True)
            )
        return self._account(plan, info, group, footprints)

    def _is_delegated(self, plan: claimplan.ClaimPlan) -> bool:
        """Whether the node's own resources were left to this filter."""
        return self._books.has_policies and claimplan.manages_node_resources(plan, self._devices)

    def _question(
        self, claims: list[resourceclaim.ResourceClaim], given: Circumstances
    ) -> devicequestion.DeviceQuestion:
        if self._class_changes != self._devices.class_changes:
            self._questions.clear()
            self._class_changes = self._devices.class_changes
        with_books = self._devices.has_mappings and given.enabled.on(gates.Gate.NODE_ALLOCATABLE_RESOURCES)
        key = (with_books, *map(devicequestion.spec_key, claims))
        found = self._questions.pop(key, None)
        if found is None:
            if len(self._questions) >= _QUESTIONS_REMEMBERED:
                del self._questions[next(iter(self._questions))]
            found = devicequestion.DeviceQuestion(
                self._devices, given.patience, claims=claims, books=self._books if with_books else None
            )
        found.claims = claims
        self._questions[key] = found
        return found


def _by_devices(
    extended: tuple[str, ...], devices: inventory.Inventory, state: cluster.NodeState
) -> tuple[str, ...] | str:
    """Which of the extended resources devices have to stand for on a node; a text says why it will not do."""
    found: list[str] = []
    for name in extended:
        if devices.names.get(name) is not None and not state.ledger.allocatable.get(name, 0):
            found.append(name)
        elif name not in state.ledger.allocatable:
            return "cannot fit resource"
    return tuple(found)


def _rejection(reason: str) -> verdict.Rejection:
    return verdict.Rejection(verdict.DYNAMIC_RESOURCES, (reason,))
