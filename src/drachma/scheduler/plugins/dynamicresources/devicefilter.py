"""The device filter: finds the nodes on which a pod's claims are available or can be allocated, for all nodes at once.

It runs on the nodes that passed all other filters. Sets of nodes are integers, and nodes that look alike are decided
together. The result also serves PostFilter (claims in the way), Score, and Reserve (claims to allocate on a node).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from drachma.accounting import (
    accountant,
    footprint,
    ledger,
    noderesources,
    policies,
    requests,
    resourcenames,
)
from drachma.allocator import noderoom
from drachma.api import resourceclaim, resourceslice
from drachma.claims import podclaims
from drachma.scheduler.framework import verdict
from drachma.scheduler.plugins.dynamicresources import (
    allocatedclaims,
    claimplan,
    devicequestion,
    extendedclaim,
    options,
    verdicts,
)
from drachma.scheduler.plugins.dynamicresources.devicequestion import Answer, Outcome
from drachma.scheduler.snapshot import Snapshot, delegation, nodeclass, nodeinfo, podinfo
from drachma.values import quantity

_FITS: Final = Answer(Outcome.FITS)


class Group(NamedTuple):
    """Nodes on which the same claims must be allocated."""

    nodes: int
    claims: tuple[resourceclaim.ResourceClaim, ...] = ()
    """Claims to allocate, the special one last."""
    question: devicequestion.DeviceQuestion | None = None
    """Question about the claims; None if there are none to allocate."""
    special: resourceclaim.ResourceClaim | None = None
    mappings: extendedclaim.Mappings = ()


class DeviceFilter:
    """One pass over nodes for one pod. Run once."""

    def __init__(
        self,
        info: podinfo.PodInfo,
        snapshot: Snapshot,
        *,
        plan: claimplan.ClaimPlan,
        questions: devicequestion.DeviceQuestions,
        options: options.Options,
    ) -> None:
        self._pod: Final = info
        self._snapshot: Final = snapshot
        self._plan: Final = plan
        self._questions: Final = questions
        self._options: Final = options
        self.passing = 0
        self.rejections: list[tuple[verdict.Rejection, int]] = []
        self.groups: list[Group] = []
        """Nodes by the claims to allocate, including nodes that do not pass."""
        self.scores: dict[int, int] = {}
        """Passing nodes by the score of their alternatives."""
        self.ranks: dict[int, int] = {}
        """Passing nodes by the rank of their devices under the policy."""
        self.rooms: dict[int, noderoom.NodeRoom] = {}
        """Room for devices on nodes that have too little for the devices that come first, by the node's bit."""
        self._late = 0
        """Nodes on which the search for devices took too long."""
        self.unavailable: list[int] = []
        """Numbers (in the plan) of allocated claims that are not available on some node."""

    def run(self, alive: int) -> None:
        """Filter nodes. Raises AbortError if the pod cannot be scheduled for other reasons."""
        plan = self._plan
        if plan.is_stale:
            self._reject(alive, "cannot schedule extended resource claim")
            return
        groups = self._split(alive)
        self.groups = groups
        alive = sum([group.nodes for group in groups])
        blocked: dict[int, int] = {}
        alive = self._check_allocated(alive, blocked)
        unavailable = functools.reduce(int.__or__, blocked.values(), 0) if blocked else 0
        base = sum(
            devicequestion.preference_score(entry.claim, entry.claim.status.allocation)
            for entry in plan.claims
            if entry.claim.status.allocation is not None
        )
        for group in groups:
            nodes = group.nodes & alive
            if not nodes:
                continue
            passing = 0
            for answer, fitting in self._accounted_answers(group, nodes):
                passing |= fitting
                fitting &= ~unavailable
                if fitting:
                    self.scores[base + answer.score] = self.scores.get(base + answer.score, 0) | fitting
                    self.ranks[answer.rank] = self.ranks.get(answer.rank, 0) | fitting
            for number, nodes_blocked in blocked.items():
                if nodes_blocked & passing and number not in self.unavailable:
                    self.unavailable.append(number)
            if unavailable:
                self._reject(passing & unavailable, "resourceclaim not available on the node")
                passing &= ~unavailable
            self.passing |= passing
        if self._late:
            self._settle_late_nodes()

    def _settle_late_nodes(self) -> None:
        """Reject the nodes on which the search took too long, or end the attempt if no other node is left.

        Differs from upstream, where one slow node ends the attempt although another node fits (KEP-4381).
        """
        if not self.passing:
            slot = (self._late & -self._late).bit_length() - 1
            raise devicequestion.gave_up(self._snapshot.nodes.at(slot).name)
        self._reject(self._late, "timed out trying to allocate devices")

    def group_of(self, info: nodeinfo.NodeInfo) -> Group:
        """Return the group of a passing node."""
        return next(group for group in self.groups if group.nodes & info.bit)

    def account_for(
        self, group: Group, info: nodeinfo.NodeInfo, *, results: tuple[resourceclaim.AllocationResult, ...]
    ) -> accountant.Account:
        """Return the account of the pod's claims on its node."""
        if not self._has_mappings:
            return accountant.NOTHING
        find = self._snapshot.devices.view(info).find
        with verdicts.abort_on_allocation_error():
            footprints = tuple(
                self._snapshot.accountant.claim_footprint(claim, result, find=find)
                for claim, result in zip(group.claims, results, strict=True)
            )
        return self._account(group, footprints)

    @property
    def _has_mappings(self) -> bool:
        return self._snapshot.devices.has_mappings and self._options.has_node_allocatable

    def _reject(self, nodes: int, reason: str, *, is_resolvable: bool = False) -> None:
        if nodes:
            self.rejections.append((verdicts.rejection(reason, is_resolvable=is_resolvable), nodes))

    def _split(self, alive: int) -> list[Group]:
        """Return nodes by the claims to allocate on them. Only extended resources make a difference."""
        plan, devices = self._plan, self._snapshot.devices
        claims = plan.unallocated
        if plan.special is None:
            return [self._group(alive, claims)]
        groups: list[Group] = []
        backed = tuple(name for name in plan.extended if devices.names.get(name) is not None)
        classes = self._snapshot.nodes.resources.classes(
            ("extended", plan.extended, backed), functools.partial(_device_backed, plan.extended, backed), among=alive
        )
        for by_devices, nodes_alike in classes.items():
            nodes = nodes_alike & alive
            if not nodes:
                continue
            if isinstance(by_devices, str):
                self._reject(nodes, by_devices)
            elif not by_devices:
                groups.append(self._group(nodes, claims))
            else:
                requested = extendedclaim.build_requests(self._pod.pod, by_devices, devices.names)
                special = extendedclaim.add_requests(plan.special, requested)
                group = self._group(nodes, (*claims, special))
                groups.append(group._replace(special=special, mappings=requested.mappings))
        return groups

    def _group(self, nodes: int, claims: tuple[resourceclaim.ResourceClaim, ...]) -> Group:
        return Group(nodes, claims, self._questions.of(claims, self._snapshot.devices) if claims else None)

    def _check_allocated(self, alive: int, blocked: dict[int, int]) -> int:
        """Return the nodes that no allocated claim rules out at once.

        ``blocked`` gets the nodes on which a claim is not available, by the number of the claim.
        """
        for number, entry in enumerate(self._plan.claims):
            claim = entry.claim
            allocation = claim.status.allocation
            if allocation is None or not alive:
                continue
            here = allocatedclaims.usable_on(allocation, self._snapshot.nodes, among=alive)
            away = alive & ~here
            if here and allocatedclaims.is_hopeless(claim, self._options):
                away = alive
            if away:
                blocked[number] = away
            if here and self._is_unshareable(entry, allocation):
                self._reject(
                    here,
                    f"node allocatable resource claim {claim.metadata.name} has a mapped device "
                    "and cannot be shared across pods",
                )
                alive &= ~here
        return alive

    def _is_unshareable(self, entry: podclaims.PodClaim, allocation: resourceclaim.AllocationResult) -> bool:
        return self._options.has_node_allocatable and allocatedclaims.is_unshareable(
            entry.claim, allocation, user=self._pod.pod, consumer=entry.consumer, snapshot=self._snapshot
        )

    def _answers(self, group: Group, nodes: int) -> list[tuple[Answer, int]]:
        """Return the nodes on which the claims can be allocated, by answer."""
        if group.question is None:
            return [(_FITS, nodes)]
        fitting: list[tuple[Answer, int]] = []
        for answer, nodes_alike in group.question.classes(group.claims, self._snapshot, among=nodes).items():
            same = nodes_alike & nodes
            if not same:
                continue
            if answer.outcome is Outcome.FITS:
                fitting.append((answer, same))
            elif answer.outcome is Outcome.GAVE_UP:
                self._late |= same
            elif answer.outcome is Outcome.DOES_NOT_FIT:
                self._reject(same, "cannot allocate all claims", is_resolvable=self._snapshot.frees_devices)
            else:
                self._reject(same, "invalid resource pools were encountered")
        return fitting

    def _accounted_answers(self, group: Group, nodes: int) -> Iterator[tuple[Answer, int]]:
        """Yield the nodes on which claims can be allocated and that have enough left, by answer. Reject the others."""
        for answer, same in self._answers(group, nodes):
            fitting, rejections = self._check_account(group, answer, nodes=same)
            if fitting:
                yield answer, fitting
            for rejection, rejected in rejections:
                fitting_bits = 0
                if group.question is not None and self._snapshot.accountant.searches and answer.footprints:
                    for other, bit in self._search_within_rooms(group, group.question, rejected):
                        fitting_bits |= bit
                        yield other, bit
                if rejected & ~fitting_bits:
                    self.rejections.append((rejection, rejected & ~fitting_bits))

    def _search_within_rooms(
        self, group: Group, question: devicequestion.DeviceQuestion, nodes: int
    ) -> Iterator[tuple[Answer, int]]:
        """Yield nodes with other devices or alternatives for which they have enough left (KEP-5517, story 4)."""
        books = self._snapshot.accountant
        if books.has_policies:
            # Amounts under policies depend on each other, and cannot be subtracted one by one.
            return
        for slot in nodeclass.slots(nodes):
            info = self._snapshot.nodes.at(slot)
            room = self._room(group, info)
            answer = question.within(group.claims, books, self._snapshot.devices.at(info), room)
            if answer.outcome is Outcome.FITS and self._check_account(group, answer, nodes=info.bit)[0]:
                self.rooms[info.bit] = room
                yield answer, info.bit

    def _room(self, group: Group, info: nodeinfo.NodeInfo) -> noderoom.NodeRoom:
        """Return what devices of the group's claims may use of a node."""
        allocated_claims = self._account(group, ()).statuses
        amounts = noderesources.claimable_amounts(self._pod.pod, info.ledger, claims=allocated_claims)
        entries = {entry.claim.metadata.uid: entry.name for entry in self._plan.claims}
        users = [
            len(footprint.users(self._pod.pod, entries[claim.metadata.uid])) if claim.metadata.uid in entries else 0
            for claim in group.claims
        ]

        def needs(
            claim: int, device: resourceslice.Device, consumed: Mapping[str, quantity.Quantity]
        ) -> dict[str, int]:
            return footprint.device_needs(device, consumed, containers=users[claim])

        return noderoom.NodeRoom(amounts, needs)

    def _check_account(
        self, group: Group, answer: Answer, *, nodes: int
    ) -> tuple[int, list[tuple[verdict.Rejection, int]]]:
        """Return the nodes with enough left for the mapped resources of devices and the pod's own requests.

        The rejections are those of the other nodes.
        """
        if not self._has_mappings:
            return nodes, []
        account = self._account(group, answer.footprints)
        problem = account.problem or requests.budget_problem(self._pod.pod, account.statuses)
        if problem:
            return 0, [(verdicts.rejection(problem), nodes)]
        if not account.statuses and not self._manages_node_resources():
            return nodes, []
        ask = _shared_fit_question(self._pod, account)
        passing = 0
        rejections: list[tuple[verdict.Rejection, int]] = []
        for fit, nodes_alike in self._snapshot.nodes.resources.classes(("shared", ask.args), ask, among=nodes).items():
            same = nodes_alike & nodes
            if not fit.reasons:
                passing |= same
            elif same:
                rejections.append((verdicts.rejection(*fit.reasons, is_resolvable=fit.is_resolvable), same))
        return passing, rejections

    def _manages_node_resources(self) -> bool:
        """Return True if the node's own resources were left to this filter."""
        if not self._snapshot.accountant.has_policies:
            return False
        return delegation.manages_node_resources([entry.claim for entry in self._plan.claims], self._snapshot.devices)

    def _account(self, group: Group, footprints: tuple[footprint.Footprint, ...]) -> accountant.Account:
        """Return the account of the pod's claims, with these footprints for the claims to allocate."""
        books = self._snapshot.accountant
        claim_footprints: dict[str, tuple[str, footprint.Footprint]] = {}
        footprints_left = iter(footprints)
        for entry in self._plan.claims:
            allocation = entry.claim.status.allocation
            if allocation is not None:
                with verdicts.abort_on_allocation_error():
                    claim_footprint = books.claim_footprint(entry.claim, allocation)
            else:
                claim_footprint = next(footprints_left, footprint.NOTHING)
            claim_footprints[entry.claim.metadata.name] = (entry.name, claim_footprint)
        if group.special is not None:
            claim_footprints[group.special.metadata.name] = ("", next(footprints_left, footprint.NOTHING))
        return books.account(self._pod.pod, claim_footprints)


def _device_backed(
    extended: tuple[str, ...], backed: tuple[str, ...], info: nodeinfo.NodeInfo
) -> tuple[str, ...] | str:
    """Return the extended resources that devices must provide on a node, or a text that rejects the node."""
    by_devices: list[str] = []
    for name in extended:
        if name in backed and not info.ledger.allocatable.get(name, 0):
            by_devices.append(name)
        elif name not in info.ledger.allocatable:
            return "cannot fit resource"
    return tuple(by_devices)


class SharedFit(NamedTuple):
    """Resources that a node has too little of; none if it has enough."""

    reasons: tuple[str, ...]
    is_resolvable: bool


def _shared_fit_question(info: podinfo.PodInfo, account: accountant.Account) -> functools.partial[SharedFit]:
    """Return the question for nodes, whether they have enough left. Its arguments identify it."""
    exact = ledger.without(requests.total(info.pod, claims=account.statuses), account.settled)
    requested = tuple((name, amount) for name, amount in resourcenames.amounts(exact) if delegation.is_shared(name))
    return functools.partial(_fit, requested, () if account.settled is None else account.settled.pools)


def _fit(requested: resourcenames.Amounts, pools: tuple[policies.PoolUse, ...], info: nodeinfo.NodeInfo) -> SharedFit:
    account = info.ledger
    reasons: list[str] = []
    needed = dict(requested)
    for use in pools:
        pool = account.pools.get(use.claim)
        if pool is None:
            for name, amount in use.held:
                needed[name] = needed.get(name, 0) + amount
        amounts_left = dict(use.held) if pool is None else pool.left()
        reasons += (
            f"Insufficient {name} in the pool of claim {use.claim}"
            for name, amount in use.taken
            if amount > amounts_left.get(name, 0)
        )
    amounts = tuple(sorted(needed.items()))
    short = ledger.lacking_resources(amounts, account)
    reasons += (f"Insufficient {name}" for name in short)
    return SharedFit(tuple(reasons), bool(reasons) and ledger.could_fit_empty(short, amounts, account=account))
