"""Flavor assignments: the flavor of each resource of each pod set, whether it fits now, and if not, the reasons."""

from __future__ import annotations

import enum
from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec import structs

from drachma.queueing import amounts
from drachma.queueing.kinds import workload
from drachma.queueing.topology import assignment as compact
from drachma.queueing.workloads.requests import FlavorResource, PodSetRequests, Usage
from drachma.queueing.workloads.workloadinfo import Attempt

_FirstT = TypeVar("_FirstT")
_SecondT = TypeVar("_SecondT")


class Mode(enum.IntEnum):
    """Availability of a flavor; better modes are greater."""

    NO_FIT = 0
    """There is not enough quota, even with preemption."""
    PREEMPT = 1
    """There is enough quota if other workloads are preempted; whether that is possible is not known yet."""
    DEFERRED_FIT = 2
    """There is enough quota once preemptions that are under way are done."""
    FIT = 3

    def __str__(self) -> str:
        return _MODE_NAMES[self]


_MODE_NAMES = {Mode.NO_FIT: "NoFit", Mode.PREEMPT: "Preempt", Mode.DEFERRED_FIT: "DeferredFit", Mode.FIT: "Fit"}


class Possibility(enum.IntEnum):
    """Result that preemption could achieve for one resource of a flavor."""

    NO_CANDIDATES = 0
    PREEMPT = 1
    RECLAIM = 2
    """Only other queues would have to give up quota."""

    def __str__(self) -> str:
        return _POSSIBILITY_NAMES[self]


_POSSIBILITY_NAMES = {
    Possibility.NO_CANDIDATES: "NoCandidates",
    Possibility.PREEMPT: "Preempt",
    Possibility.RECLAIM: "Reclaim",
}


class Reason(enum.StrEnum):
    """Reason of a QuotaReserved condition that is false; ordered by severity below."""

    NONE = ""
    TOPOLOGY_PLACEMENT_FAILED = "TopologyPlacementFailed"
    WAITING_FOR_QUOTA = "WaitingForQuota"
    EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"
    NO_MATCHING_FLAVOR = "NoMatchingFlavor"


_SEVERITY = {reason: severity for severity, reason in enumerate(Reason)}


def severity(reason: Reason) -> int:
    """Rank of the reason; worse reasons are greater."""
    return _SEVERITY[reason]


def worse(one: Reason, other: Reason) -> Reason:
    """Return the more severe of two reasons."""
    return one if _SEVERITY[one] >= _SEVERITY[other] else other


class FlavorAssignment(msgspec.Struct, frozen=True):
    """Flavor of one resource."""

    name: str
    mode: Mode
    borrow: int = 0
    """Height of the cohort that the quota comes from; zero for the queue itself."""
    tried: int = 0
    """Position of the last flavor that was tried, or -1 if all were."""


class FlavorAttempt(msgspec.Struct, frozen=True):
    """A flavor that was considered, and its worst result."""

    flavor: str
    mode: Mode
    borrow: int = 0
    possibility: Possibility | None = None
    reasons: tuple[str, ...] = ()
    no_fit_reason: Reason = Reason.NONE

    def merged(self, other: FlavorAttempt) -> FlavorAttempt:
        """Return this attempt merged with that of the same flavor for another resource group."""
        possibilities = [each for each in (self.possibility, other.possibility) if each is not None]
        return FlavorAttempt(
            self.flavor,
            min(self.mode, other.mode),
            max(self.borrow, other.borrow),
            min(possibilities, default=None),
            tuple(sorted({*self.reasons, *other.reasons})),
            worse(self.no_fit_reason, other.no_fit_reason),
        )

    def __str__(self) -> str:
        text = str(self.mode) if self.possibility is None else f"preemptionMode={self.possibility}"
        if self.borrow:
            text += f";borrow={self.borrow}"
        return f"{self.flavor}({';'.join((text, *self.reasons))})"


class PodSetAssignment(msgspec.Struct, frozen=True):
    """Flavors of a pod set. Without reasons, all flavors fit; without flavors, none does."""

    name: str
    requests: amounts.Requests
    count: int
    flavors: Mapping[str, FlavorAssignment] = {}
    reasons: tuple[str, ...] = ()
    error: str = ""
    attempts: tuple[FlavorAttempt, ...] = ()
    topology: compact.Assignment | None = None
    """Places of the pods on the topology of a flavor."""
    delayed: str | None = None
    """State of a search for places that waits for nodes: Pending, then Ready."""

    @property
    def mode(self) -> Mode:
        if self.error:
            return Mode.NO_FIT
        if not self.reasons:
            return Mode.FIT
        return min((each.mode for each in self.flavors.values()), default=Mode.NO_FIT)

    @property
    def message(self) -> str:
        """Reasons why flavors are not available now, sorted by their text."""
        return self.error or ", ".join(sorted(self.reasons))

    def with_mode(self, mode: Mode) -> PodSetAssignment:
        """Return the assignment with all flavors in another mode."""
        flavors = {name: structs.replace(each, mode=mode) for name, each in self.flavors.items()}
        return structs.replace(self, flavors=flavors)

    def admitted(self, *, binary: Container[str], by_hostname_prefix: bool = True) -> workload.PodSetAssignment:
        """Return the assignment for a workload's admission. Resources without a flavor are left out.

        ``by_hostname_prefix`` is the form of places with hostnames, see ``topology.assignment.encode``.
        """
        return workload.PodSetAssignment(
            name=self.name,
            flavors={resource: each.name for resource, each in self.flavors.items()},
            resource_usage={
                resource: amounts.to_quantity(resource, self.requests.get(resource, 0), binary=binary)
                for resource in self.flavors
            },
            count=self.count,
            topology_assignment=(
                None if self.topology is None else compact.encode(self.topology, by_hostname_prefix=by_hostname_prefix)
            ),
            delayed_topology_request=self.delayed,
        )


class Assignment(msgspec.Struct, frozen=True):
    """Flavors of a workload."""

    pod_sets: tuple[PodSetAssignment, ...]
    usage: Usage = {}
    attempt: Attempt = Attempt(())
    no_fit_reason: Reason = Reason.NONE
    overall: Mode | None = None
    """Mode that placement or other entries of a cycle decided, instead of the worst mode of all pod sets."""

    @property
    def mode(self) -> Mode:
        """Worst mode of all pod sets, unless another one was decided."""
        if self.overall is not None and self.pod_sets:
            return self.overall
        worst = Mode.FIT if self.pod_sets else Mode.NO_FIT
        for each in self.pod_sets:
            if each.mode < worst:
                worst = each.mode
        return worst

    @property
    def borrowing(self) -> int:
        """Height of the highest cohort that quota comes from."""
        return max((each.borrow for pod_set in self.pod_sets for each in pod_set.flavors.values()), default=0)

    @property
    def message(self) -> str:
        """Reasons why the workload does not fit now."""
        texts = []
        for each in self.pod_sets:
            if each.error:
                return f"failed to assign flavors to pod set {each.name}: {each.error}"
            if each.reasons:
                texts.append(f"couldn't assign flavors to pod set {each.name}: {each.message}")
        return "; ".join(texts)

    @property
    def considered(self) -> str:
        """Flavors that were considered and do not fit at once, for events."""
        texts = []
        for each in self.pod_sets:
            attempts = [str(attempt) for attempt in each.attempts if attempt.mode is not Mode.FIT or attempt.borrow]
            if attempts:
                texts.append(f"{each.name}: {', '.join(attempts)}")
        return " | ".join(texts)

    @property
    def resources_to_preempt(self) -> frozenset[FlavorResource]:
        """Resources of flavors for which other workloads would be preempted."""
        return frozenset(
            FlavorResource(each.name, resource)
            for pod_set in self.pod_sets
            for resource, each in pod_set.flavors.items()
            if each.mode is Mode.PREEMPT
        )

    @property
    def nominated(self) -> Mapping[str, Mapping[str, str]]:
        """Flavors by pod set and resource."""
        return {
            pod_set.name: {resource: each.name for resource, each in pod_set.flavors.items()}
            for pod_set in self.pod_sets
        }

    def deferred(self) -> Assignment:
        """Flavors that are available once preemptions that are under way are done."""
        pod_sets = tuple(each.with_mode(Mode.DEFERRED_FIT) for each in self.pod_sets)
        return structs.replace(self, pod_sets=pod_sets, overall=Mode.DEFERRED_FIT)

    def total(
        self, requested: Iterable[PodSetRequests], replaced: Sequence[PodSetRequests] = ()
    ) -> dict[FlavorResource, int]:
        """Return the usage of the flavors by pod sets with the assigned counts, without zeros.

        ``replaced`` are the pod sets of a workload that this one replaces: only pods beyond those count.
        """
        usage: dict[FlavorResource, int] = {}
        for position, (each, assigned) in enumerate(zip(requested, self.pod_sets, strict=False)):
            count = each.count - replaced[position].count if replaced else assigned.count
            for resource, amount in each.scaled(count).requests.items():
                flavor = assigned.flavors.get(resource)
                if amount and flavor is not None:
                    key = FlavorResource(flavor.name, resource)
                    usage[key] = amounts.plus(usage.get(key, 0), amount)
        return usage


def reduce_counts(
    pod_sets: Sequence[workload.PodSet], attempt: Callable[[list[int]], tuple[_FirstT, _SecondT | None]]
) -> tuple[_FirstT, _SecondT] | None:
    """Return the result of the attempt that succeeds with the most pods, or None if none succeeds.

    This is partial admission: all pod sets shrink together, from their counts to their minimum counts. Like upstream,
    the search bisects, and assumes that every smaller number fits if a number fits.
    """
    counts = [int(each.count) for each in pod_sets]
    slack = [each.count - (each.count if each.min_count is None else each.min_count) for each in pod_sets]
    total = sum(slack)
    if total == 0:
        return None
    last: tuple[int, _FirstT, _SecondT] | None = None

    def fits(step: int) -> bool:
        nonlocal last
        first, second = attempt([count - spare * step // total for count, spare in zip(counts, slack, strict=True)])
        if second is None:
            return False
        last = (step, first, second)
        return True

    step = bisect_left(range(total + 1), x=True, key=fits)
    if last is None or last[0] != step:
        return None
    return last[1], last[2]
