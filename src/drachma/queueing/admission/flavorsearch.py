"""The flavor search: for each pod set and each resource group that it needs, the first flavor that is good enough.

Flavors are tried in the order in which the queue lists them. A flavor is as good as its worst resource: it fits, it is
available by preempting or reclaiming, preemption would find no candidates, or it is not available at all; and the
higher up in the cohorts its quota comes from, the worse. The queue's fungibility decides which of these ends the
search, and which of two flavors is preferred. Groups are searched in the order of :func:`amounts.walk`. A group that
does not fit ends the search for the pod set, so this order decides which group the message is about.

A workload that replaces another slice of its elastic job must get the same flavors, and needs only the requests beyond
those of the slice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import structs

from drachma import errors
from drachma.queueing import amounts
from drachma.queueing.admission import flavormatching, topologyrequests
from drachma.queueing.admission.flavorassignment import (
    Assignment,
    FlavorAssignment,
    FlavorAttempt,
    Mode,
    PodSetAssignment,
    Possibility,
    Reason,
    severity,
    worse,
)
from drachma.queueing.admission.flavorgrade import BEST, WORST, Grade, Rank, is_good_enough, is_preferred
from drachma.queueing.admission.snapshot import Group, QueueState
from drachma.queueing.admission.topologies import Topologies
from drachma.queueing.admission.topologyplacement import TopologyPlacement
from drachma.queueing.configuration.gates import Gate
from drachma.queueing.kinds import clusterqueue, resourceflavor
from drachma.queueing.topology import assignment as compact
from drachma.queueing.workloads.requests import FlavorResource, PodSetRequests
from drachma.queueing.workloads.settings import Settings
from drachma.queueing.workloads.workloadinfo import Attempt, WorkloadInfo

PODS: Final = "pods"

Oracle = Callable[[FlavorResource, int], tuple[Possibility, int]]
"""Returns the result that preemption could achieve for an amount of a flavor's resource, and the height of its quota.
"""

Nominated = Mapping[str, Mapping[str, str]]
"""Flavors by pod set and resource."""


class _Verdict(NamedTuple):
    """Availability of one resource of a flavor."""

    grade: Grade
    reasons: tuple[str, ...] = ()
    no_fit_reason: Reason = Reason.NONE


class _Choice(NamedTuple):
    """Flavor of a resource group, or None if none fits. Without reasons, the flavor fits."""

    flavors: dict[str, FlavorAssignment]
    reasons: tuple[str, ...]
    attempts: tuple[FlavorAttempt, ...]
    error: str = ""


class FlavorSearch:
    """Search for the flavors of one workload in its queue."""

    def __init__(
        self,
        info: WorkloadInfo,
        queue: QueueState,
        flavors: Mapping[str, resourceflavor.ResourceFlavor],
        *,
        oracle: Oracle,
        settings: Settings,
        cycle: int = 0,
        nominated: Nominated | None = None,
        topologies: Topologies,
        replaced: WorkloadInfo | None = None,
    ) -> None:
        """``nominated`` restricts the search to flavors that an earlier search in the same cycle chose.

        ``replaced`` is the workload that gives up its quota to this one.
        """
        self.placement: Final = TopologyPlacement(info, queue, topologies, gates=settings.gates, replaced=replaced)
        """Placement of the workload on the topologies of flavors."""
        self._topologies = topologies
        self._info = info
        self._queue = queue
        self._flavors = flavors
        self._oracle = oracle
        self._settings = settings
        self._cycle = cycle
        self._nominated = nominated
        self._replaced = replaced
        self._usage: dict[FlavorResource, int] = {}

    def run(self, counts: Sequence[int] | None = None) -> Assignment:
        """Return the flavors of all pod sets, for the requested counts or for other ``counts``."""
        self._usage = {}
        pod_sets = self._requests(counts)
        assignments: dict[int, PodSetAssignment] = {}
        has_failed = False
        for members in self._groups(pod_sets):
            self._assign(members, pod_sets, assignments)
            if any(self._failed(assignments[index]) for index in members):
                has_failed = True
                break
        assigned = tuple(assignments.values())
        tried = tuple({resource: each.tried for resource, each in pod_set.flavors.items()} for pod_set in assigned)
        assignment = Assignment(
            assigned,
            self._usage,
            Attempt(tried, self._queue.generation, self._cycle, self._info.shape),
        )
        if not has_failed and assignment.mode is not Mode.NO_FIT:
            assignment = self.placement.assign(assignment)
        if assignment.mode is Mode.NO_FIT and self._settings.gates.on(Gate.UNADMITTED_OBSERVABILITY):
            return structs.replace(assignment, no_fit_reason=self._no_fit_reason(assignment))
        return assignment

    def _requests(self, counts: Sequence[int] | None) -> list[PodSetRequests]:
        pod_sets = list(self._info.pod_sets)
        if counts is not None:
            pod_sets = [each.scaled(count) for each, count in zip(pod_sets, counts, strict=True)]
        if self._queue.group_of(PODS) is None:
            return pod_sets
        return [structs.replace(each, requests={**each.requests, PODS: each.count}) for each in pod_sets]

    def _groups(self, pod_sets: Sequence[PodSetRequests]) -> list[list[int]]:
        """Return groups of pod sets, by position, that must get the same flavors; mostly groups of one."""
        groups: dict[object, list[int]] = {}
        specs = self._info.workload.spec.pod_sets
        for index in range(len(pod_sets)):
            request = specs[index].topology_request
            name = request.pod_set_group_name if request is not None else None
            groups.setdefault(index if name is None else name, []).append(index)
        return list(groups.values())

    def _failed(self, assigned: PodSetAssignment) -> bool:
        return bool(assigned.error) or (bool(assigned.requests) and not assigned.flavors)

    def _assign(
        self, members: list[int], pod_sets: Sequence[PodSetRequests], assignments: dict[int, PodSetAssignment]
    ) -> None:
        """Search flavors for a group of pod sets."""
        totals: dict[str, int] = {}
        for index in members:
            for resource, amount in pod_sets[index].requests.items():
                totals[resource] = amounts.clamp(totals.get(resource, 0) + amount)
        flavors = {
            resource: FlavorAssignment(name, Mode.FIT)
            for index in members
            for resource, name in self._held(pod_sets[index])
        }
        reasons: tuple[str, ...] = ()
        error = ""
        attempts: dict[str, FlavorAttempt] = {}
        for resource in amounts.walk(totals):
            group = self._queue.group_of(resource)
            if group is None and (totals[resource] == 0 or self._settings.ignores_undeclared):
                continue
            if resource in flavors:
                continue
            choice = self._choose(members, totals, resource, group)
            _merge(attempts, choice.attempts, resource, group)
            if choice.error or not choice.flavors:
                flavors, reasons, error = {}, choice.reasons, choice.error
                break
            flavors.update(choice.flavors)
            reasons += choice.reasons
        considered = tuple(attempts[name] for name in sorted(attempts))
        for index in members:
            each = pod_sets[index]
            own = self._own_flavors(index, each, flavors)
            assignments[index] = PodSetAssignment(
                each.name,
                each.requests,
                each.count,
                own,
                reasons,
                error,
                considered,
                *self._first_pass_places(each.name),
            )
            for resource, flavor in own.items():
                key = FlavorResource(flavor.name, resource)
                self._usage[key] = amounts.plus(self._usage.get(key, 0), self._beyond_replaced(each, resource))

    def _held(self, pod_set: PodSetRequests) -> Iterable[tuple[str, str]]:
        """Return the flavors that a pod set keeps in the second pass of a workload that holds quota."""
        return pod_set.flavors.items() if self.placement.is_used else ()

    def _first_pass_places(self, pod_set: str) -> tuple[compact.Assignment | None, str | None]:
        """Return the places that a pod set has from its first pass, and the state of a delayed search."""
        admission = self._info.workload.status.admission
        if admission is None or not self.placement.is_used:
            return None, None
        current = next((each for each in admission.pod_set_assignments if each.name == pod_set), None)
        if current is None:
            return None, None
        places = None if current.topology_assignment is None else compact.decode(current.topology_assignment)
        return places, current.delayed_topology_request

    def _own_flavors(
        self, index: int, pod_set: PodSetRequests, flavors: Mapping[str, FlavorAssignment]
    ) -> dict[str, FlavorAssignment]:
        """Return the flavors of a pod set among those of its group.

        Pods without requests, such as some leaders, get the flavors of their group that have a topology.
        """
        if pod_set.requests:
            return {resource: flavors[resource] for resource in pod_set.requests if resource in flavors}
        request = self._info.workload.spec.pod_sets[index].topology_request
        if request is None or request.pod_set_group_name is None:
            return {}
        return {resource: each for resource, each in flavors.items() if each.name in self._topologies}

    def _beyond_replaced(self, pod_set: PodSetRequests, resource: str) -> int:
        """Return the requests of a pod set beyond those of the replaced workload's pod set."""
        amount = pod_set.requests.get(resource, 0)
        if self._replaced is None:
            return amount
        had = next((each.requests.get(resource, 0) for each in self._replaced.pod_sets if each.name == pod_set.name), 0)
        return amounts.minus(amount, had)

    def _choose(self, members: list[int], totals: Mapping[str, int], resource: str, group: Group | None) -> _Choice:
        """Return the best flavor of the group that a resource belongs to."""
        if group is None:
            return _Choice({}, (f"resource {resource} unavailable in ClusterQueue",), ())
        fungible = self._settings.gates.on(Gate.FLAVOR_FUNGIBILITY)
        policy = self._queue.fungibility
        needed = [name for name in amounts.walk(totals) if name in group.resources]
        pod_sets = [self._info.workload.spec.pod_sets[index] for index in members]
        topology_check = topologyrequests.check(self._queue, group, self._topologies, gates=self._settings.gates)
        best: dict[str, FlavorAssignment] = {}
        best_grade = WORST
        reasons: list[str] = []
        attempts: list[FlavorAttempt] = []
        position = -1
        for position in range(self._first(members[0], resource), len(group.flavors)):
            name = group.flavors[position]
            if self._is_passed_over(name, members, resource):
                reasons.append(
                    f"skipping flavor {name} as it is not found in the nomination mapping for resource {resource}"
                )
                continue
            flavor = self._flavors.get(name)
            try:
                problem = (
                    f"flavor {name} not found"
                    if flavor is None
                    else flavormatching.mismatch(flavor, pod_sets, topology_mismatch=topology_check)
                )
            except errors.InvalidValueError as error:
                attempts.append(FlavorAttempt(name, Mode.NO_FIT, no_fit_reason=Reason.NO_MATCHING_FLAVOR))
                return _Choice({}, tuple(reasons), tuple(attempts), str(error))
            if problem is not None:
                reasons.append(problem)
                attempts.append(
                    FlavorAttempt(name, Mode.NO_FIT, reasons=(problem,), no_fit_reason=Reason.NO_MATCHING_FLAVOR)
                )
                continue
            assigned, grade, attempt = self._grade(name, needed, totals, members)
            if attempt.reasons:
                reasons += attempt.reasons
                attempt = structs.replace(attempt, reasons=tuple(sorted({*attempt.reasons})))
            attempts.append(attempt)
            if fungible:
                if is_good_enough(grade, policy):
                    best, best_grade = assigned, grade
                    break
                if is_preferred(grade, best_grade, policy):
                    best, best_grade = assigned, grade
            elif grade.rank > best_grade.rank:
                best, best_grade = assigned, grade
                if grade.rank is Rank.FIT:
                    return _Choice(best, (), tuple(attempts))
        if fungible:
            tried = -1 if position == len(group.flavors) - 1 else position
            best = {name: structs.replace(each, tried=tried) for name, each in best.items()}
            if best_grade.rank is Rank.FIT:
                return _Choice(best, (), tuple(attempts))
        return _Choice(best, tuple(reasons), tuple(attempts))

    def _first(self, pod_set: int, resource: str) -> int:
        """Return the position at which to continue after the last attempt."""
        attempt = self._info.attempt
        if attempt is None or not self._settings.gates.on(Gate.FLAVOR_FUNGIBILITY):
            return 0
        return attempt.following(pod_set, resource)

    def _is_passed_over(self, flavor: str, members: list[int], resource: str) -> bool:
        if not self._nominated:
            return False
        names = (self._info.workload.spec.pod_sets[index].name for index in members)
        return all(self._nominated.get(name, {}).get(resource) != flavor for name in names)

    def _grade(
        self, flavor: str, needed: Sequence[str], totals: Mapping[str, int], members: Sequence[int]
    ) -> tuple[dict[str, FlavorAssignment], Grade, FlavorAttempt]:
        """Return the availability of a flavor for a group of resources: the availability of the worst one."""
        assigned: dict[str, FlavorAssignment] = {}
        grade = BEST
        borrow = 0
        reasons: tuple[str, ...] = ()
        no_fit_reason = Reason.NONE
        for resource in needed:
            amount, original = self._still_needed(flavor, resource, totals[resource], members)
            if original is not None:
                reasons += (f"could not assign {flavor} flavor since the original workload is assigned: {original}",)
                no_fit_reason, grade = worse(no_fit_reason, Reason.NO_MATCHING_FLAVOR), WORST
            verdict = self._judge(FlavorResource(flavor, resource), amount)
            reasons += verdict.reasons
            no_fit_reason = worse(no_fit_reason, verdict.no_fit_reason)
            borrow = max(borrow, verdict.grade.borrow)
            if is_preferred(grade, verdict.grade, self._queue.fungibility):
                grade = verdict.grade
            if grade.rank is not Rank.NO_FIT:
                assigned[resource] = FlavorAssignment(flavor, verdict.grade.rank.mode, verdict.grade.borrow)
        if not self._settings.gates.on(Gate.UNADMITTED_OBSERVABILITY):
            no_fit_reason = Reason.NONE
        attempt = FlavorAttempt(flavor, grade.rank.mode, borrow, grade.rank.possibility, reasons, no_fit_reason)
        return assigned, grade, attempt

    def _still_needed(self, flavor: str, resource: str, amount: int, members: Sequence[int]) -> tuple[int, str | None]:
        """Return the amount of a resource that is needed beyond that of the replaced workload.

        The second value is the flavor of the replaced workload, if it is another one.
        """
        if self._replaced is None:
            return amount, None
        for position in members:
            had = self._replaced.pod_sets[position]
            original = had.flavors.get(resource, "")
            if original != flavor:
                return amount, original
            amount = amounts.minus(amount, had.requests.get(resource, 0))
        return amount, None

    def _judge(self, key: FlavorResource, request: int) -> _Verdict:
        """Return the availability of an amount of a flavor's resource, in addition to that of earlier pod sets."""
        node = self._queue.node
        show = self._settings.show
        before = self._usage.get(key, 0)
        amount = amounts.plus(before, request)
        most = node.potential(key)
        if amount > most:
            request_text = amounts.to_quantity(key.resource, request, binary=self._settings.binary)
            reason = (
                f"insufficient quota for {key.resource} in flavor {key.flavor}, previously considered podsets requests "
                f"({show(key.resource, before)}) + current podset request ({request_text}) > "
                f"maximum capacity ({show(key.resource, most)})"
            )
            return _Verdict(Grade(Rank.NO_FIT, 0), (reason,), Reason.EXCEEDS_MAX_QUOTA)
        borrow, may_reclaim = node.borrowing_level(key, amount)
        available = max(0, node.available(key))
        if amount <= available:
            return _Verdict(Grade(Rank.FIT, borrow))
        shortage = show(key.resource, amounts.minus(amount, available))
        reason = f"insufficient unused quota for {key.resource} in flavor {key.flavor}, {shortage} more needed"
        if node.quota(key).nominal >= amount or may_reclaim or self._may_preempt_while_borrowing():
            possibility, borrow = self._oracle(key, amount)
            return _Verdict(Grade(Rank(possibility + 1), borrow), (reason,))
        return _Verdict(Grade(Rank.NO_FIT, borrow), (reason,), Reason.WAITING_FOR_QUOTA)

    def _may_preempt_while_borrowing(self) -> bool:
        preemption = self._queue.preemption
        borrowing = preemption.borrow_within_cohort
        if borrowing is not None and borrowing.policy != clusterqueue.NEVER:
            return True
        return self._settings.fair_sharing and preemption.reclaim_within_cohort != clusterqueue.NEVER

    def _no_fit_reason(self, assignment: Assignment) -> Reason:
        """Return the most severe reason over groups and pod sets, of the least severe reason among each group's
        flavors.
        """
        overall = Reason.NONE
        for each in assignment.pod_sets:
            if each.mode is not Mode.NO_FIT:
                continue
            if not each.attempts:
                overall = worse(overall, Reason.NO_MATCHING_FLAVOR)
                continue
            by_group: dict[int, Reason] = {}
            for number, attempt in enumerate(each.attempts):
                if attempt.mode is not Mode.NO_FIT:
                    continue
                groups = [
                    index for index, group in enumerate(self._queue.groups) if attempt.flavor in group.flavors
                ] or [-1 - number]
                for index in groups:
                    before = by_group.get(index)
                    if before is None or severity(attempt.no_fit_reason) < severity(before):
                        by_group[index] = attempt.no_fit_reason
            for reason in by_group.values():
                overall = worse(overall, reason)
        if overall is Reason.NONE and assignment.overall is Mode.NO_FIT:
            # Differs from Kueue, whose reason is empty if one pod set has no place now and another none at all.
            return Reason.TOPOLOGY_PLACEMENT_FAILED
        return overall


def _merge(
    attempts: dict[str, FlavorAttempt], more: Sequence[FlavorAttempt], resource: str, group: Group | None
) -> None:
    """Add the flavors that were considered for a resource. Flavors of its group that were not do not provide it."""
    for attempt in more:
        before = attempts.get(attempt.flavor)
        attempts[attempt.flavor] = attempt if before is None else before.merged(attempt)
    if not more or group is None:
        return
    considered = {attempt.flavor for attempt in more}
    for name, attempt in attempts.items():
        if name in group.flavors and name not in considered:
            reason = f"flavor {name} does not provide resource {resource}"
            attempts[name] = structs.replace(
                attempt,
                mode=Mode.NO_FIT,
                reasons=tuple(sorted({*attempt.reasons, reason})),
                no_fit_reason=Reason.NO_MATCHING_FLAVOR,
            )
