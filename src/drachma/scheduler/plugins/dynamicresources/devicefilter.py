"""The device filter: on which nodes a pod's claims are available or can be allocated, for all nodes at once.

Run with the nodes that passed all other filters. Sets of nodes are integers; nodes that look alike are decided
together. The outcome also says what PostFilter needs (claims that were in the way), what Score does, and what it takes
to commit to one of the nodes (Reserve).
"""

from __future__ import annotations

import functools
from typing import Final, NamedTuple

from drachma.accounting import accountant, footprint, podbudget
from drachma.api import resourceclaim
from drachma.scheduler.framework import verdict
from drachma.scheduler.plugins.dynamicresources import (
    allocatedclaims,
    claimplan,
    devicequestion,
    extendedclaim,
    options,
    preference,
    sharedfit,
    verdicts,
)
from drachma.scheduler.plugins.dynamicresources.devicequestion import Answer, Outcome
from drachma.scheduler.snapshot import Snapshot, delegation, nodeinfo, podinfo

_FITS: Final = Answer(Outcome.FITS)


class Group(NamedTuple):
    """Nodes on which the same claims have to be allocated."""

    nodes: int
    claims: tuple[resourceclaim.ResourceClaim, ...] = ()
    """The special one last."""
    question: devicequestion.DeviceQuestion | None = None
    """None where nothing has to be allocated."""
    special: resourceclaim.ResourceClaim | None = None
    mappings: extendedclaim.Mappings = ()


class DeviceFilter:
    """One pass over nodes for one pod; run once."""

    def __init__(
        self,
        info: podinfo.PodInfo,
        snapshot: Snapshot,
        *,
        plan: claimplan.ClaimPlan,
        questions: devicequestion.DeviceQuestions,
        chosen: options.Options,
    ) -> None:
        self._pod: Final = info
        self._snapshot: Final = snapshot
        self._plan: Final = plan
        self._questions: Final = questions
        self._options: Final = chosen
        self.passing = 0
        self.rejections: list[tuple[verdict.Rejection, int]] = []
        self.groups: list[Group] = []
        """The nodes by what has to be allocated there; also of nodes that do not pass."""
        self.scores: dict[int, int] = {}
        """The passing nodes by how good their alternatives are."""
        self.ranks: dict[int, int] = {}
        """The same by how well the policy for devices likes what they give."""
        self.unavailable: list[int] = []
        """Claims (their numbers in the plan) that are allocated and were not to be had on some node."""

    def run(self, alive: int) -> None:
        """Find out what becomes of nodes; AbortError for what makes scheduling the pod pointless."""
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
            preference.score(entry.claim, entry.claim.status.allocation)
            for entry in plan.claims
            if entry.claim.status.allocation is not None
        )
        for group in groups:
            nodes = group.nodes & alive
            if not nodes:
                continue
            passing = 0
            for answer, same in self._answers(group, nodes):
                fitting = self._check_account(group, answer, nodes=same)
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

    def group_of(self, info: nodeinfo.NodeInfo) -> Group:
        """The group of a passing node."""
        return next(group for group in self.groups if group.nodes & info.bit)

    def account_for(
        self, group: Group, info: nodeinfo.NodeInfo, *, results: tuple[resourceclaim.AllocationResult, ...]
    ) -> accountant.Account:
        """What the claims of the pod come to on the node that was chosen."""
        if not self._has_mappings:
            return accountant.NOTHING
        find = self._snapshot.devices.view(info).find
        with verdicts.aborting():
            footprints = tuple(
                self._snapshot.accountant.meaning(claim, result, find=find)
                for claim, result in zip(group.claims, results, strict=True)
            )
        return self._account(group, footprints)

    @property
    def _has_mappings(self) -> bool:
        return self._snapshot.devices.has_mappings and self._options.has_node_allocatable

    def _reject(self, nodes: int, reason: str) -> None:
        if nodes:
            self.rejections.append((verdicts.rejection(reason), nodes))

    def _split(self, alive: int) -> list[Group]:
        """The nodes by what has to be allocated on them; only extended resources make a difference there."""
        plan, devices = self._plan, self._snapshot.devices
        claims = plan.unallocated
        if plan.special is None:
            return [self._group(alive, claims)]
        groups: list[Group] = []
        backed = tuple(name for name in plan.extended if devices.names.get(name) is not None)
        classes = self._snapshot.nodes.resources.classes(
            ("extended", plan.extended, backed), functools.partial(_by_devices, plan.extended, backed), among=alive
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
                requested = extendedclaim.requested(self._pod.pod, by_devices, devices.names)
                special = extendedclaim.named(plan.special, requested)
                group = self._group(nodes, (*claims, special))
                groups.append(group._replace(special=special, mappings=requested.mappings))
        return groups

    def _group(self, nodes: int, claims: tuple[resourceclaim.ResourceClaim, ...]) -> Group:
        return Group(nodes, claims, self._questions.of(claims, self._snapshot.devices) if claims else None)

    def _check_allocated(self, alive: int, blocked: dict[int, int]) -> int:
        """The nodes that no allocated claim rules out at once.

        ``blocked`` gets, by the number of a claim, the nodes on which it is not to be had.
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
            if here and self._is_unshareable(claim, allocation):
                self._reject(
                    here,
                    f"node allocatable resource claim {claim.metadata.name} has a mapped device "
                    "and cannot be shared across pods",
                )
                alive &= ~here
        return alive

    def _is_unshareable(self, claim: resourceclaim.ResourceClaim, allocation: resourceclaim.AllocationResult) -> bool:
        return self._options.has_node_allocatable and allocatedclaims.is_unshareable(
            claim, allocation, user=self._pod.pod, snapshot=self._snapshot
        )

    def _answers(self, group: Group, nodes: int) -> list[tuple[Answer, int]]:
        """The nodes on which the claims can be allocated, by what comes out."""
        if group.question is None:
            return [(_FITS, nodes)]
        fitting: list[tuple[Answer, int]] = []
        for answer, nodes_alike in group.question.classes(group.claims, self._snapshot, among=nodes).items():
            same = nodes_alike & nodes
            if not same:
                continue
            if answer.outcome is Outcome.FITS:
                fitting.append((answer, same))
            elif answer.outcome is Outcome.DOES_NOT_FIT:
                self._reject(same, "cannot allocate all claims")
            else:
                self._reject(same, "invalid resource pools were encountered")
        return fitting

    def _check_account(self, group: Group, answer: Answer, *, nodes: int) -> int:
        """The nodes that have enough left for what the devices mean, beside the pod's own requests."""
        if not self._has_mappings:
            return nodes
        account = self._account(group, answer.footprints)
        problem = account.problem or podbudget.problem(self._pod.pod, account.statuses)
        if problem:
            self._reject(nodes, problem)
            return 0
        if not account.statuses and not self._manages_node_resources():
            return nodes
        ask = sharedfit.question(self._pod, account)
        passing = 0
        for fit, nodes_alike in self._snapshot.nodes.resources.classes(("shared", ask.args), ask, among=nodes).items():
            same = nodes_alike & nodes
            if not fit.reasons:
                passing |= same
            elif same:
                self.rejections.append((verdicts.rejection(*fit.reasons, is_resolvable=fit.is_resolvable), same))
        return passing

    def _manages_node_resources(self) -> bool:
        """Whether the node's own resources were left to this filter."""
        if not self._snapshot.accountant.has_policies:
            return False
        return delegation.manages_node_resources([entry.claim for entry in self._plan.claims], self._snapshot.devices)

    def _account(self, group: Group, footprints: tuple[footprint.Footprint, ...]) -> accountant.Account:
        """What the claims of the pod come to, with these footprints of those that are to be allocated."""
        books = self._snapshot.accountant
        meanings: dict[str, tuple[str, footprint.Footprint]] = {}
        remaining = iter(footprints)
        for entry in self._plan.claims:
            allocation = entry.claim.status.allocation
            if allocation is not None:
                with verdicts.aborting():
                    mark = books.meaning(entry.claim, allocation)
            else:
                mark = next(remaining, footprint.NOTHING)
            meanings[entry.claim.metadata.name] = (entry.name, mark)
        if group.special is not None:
            meanings[group.special.metadata.name] = ("", next(remaining, footprint.NOTHING))
        return books.account(self._pod.pod, meanings)


def _by_devices(extended: tuple[str, ...], backed: tuple[str, ...], info: nodeinfo.NodeInfo) -> tuple[str, ...] | str:
    """Which of the extended resources devices have to stand for on a node; a text says why it will not do."""
    by_devices: list[str] = []
    for name in extended:
        if name in backed and not info.ledger.allocatable.get(name, 0):
            by_devices.append(name)
        elif name not in info.ledger.allocatable:
            return "cannot fit resource"
    return tuple(by_devices)
