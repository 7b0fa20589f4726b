"""Flavor assignments: which flavor each resource of each pod set would get, whether now, and if not, why."""

from __future__ import annotations

import enum
from collections.abc import Container, Iterable, Mapping, Sequence

import msgspec
from msgspec import structs

from drachma.queueing import amounts
from drachma.queueing.kinds import workload
from drachma.queueing.workloads.requests import FlavorResource, PodSetRequests, Usage
from drachma.queueing.workloads.workloadinfo import Attempt


class Mode(enum.IntEnum):
    """Whether a flavor can be assigned; better modes are greater."""

    NO_FIT = 0
    """There is not enough quota, whatever is preempted."""
    PREEMPT = 1
    """There is enough if others give up some; whether they can be made to is not said."""
    DEFERRED_FIT = 2
    """There is enough once preemptions that are under way are done."""
    FIT = 3

    def __str__(self) -> str:
        return _MODE_NAMES[self]


_MODE_NAMES = {Mode.NO_FIT: "NoFit", Mode.PREEMPT: "Preempt", Mode.DEFERRED_FIT: "DeferredFit", Mode.FIT: "Fit"}


class Possibility(enum.IntEnum):
    """What preemption could achieve for one resource of a flavor."""

    NO_CANDIDATES = 0
    PREEMPT = 1
    RECLAIM = 2
    """Only other queues would have to give something up."""

    def __str__(self) -> str:
        return _POSSIBILITY_NAMES[self]


_POSSIBILITY_NAMES = {
    Possibility.NO_CANDIDATES: "NoCandidates",
    Possibility.PREEMPT: "Preempt",
    Possibility.RECLAIM: "Reclaim",
}


class Reason(enum.StrEnum):
    """Why nothing fits, as the QuotaReserved condition says; ordered by severity below."""

    NONE = ""
    TOPOLOGY_PLACEMENT_FAILED = "TopologyPlacementFailed"
    WAITING_FOR_QUOTA = "WaitingForQuota"
    EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"
    NO_MATCHING_FLAVOR = "NoMatchingFlavor"


_SEVERITY = {reason: severity for severity, reason in enumerate(Reason)}


def severity(reason: Reason) -> int:
    """How bad a reason is."""
    return _SEVERITY[reason]


def worse(one: Reason, other: Reason) -> Reason:
    """The more severe of two reasons."""
    return one if _SEVERITY[one] >= _SEVERITY[other] else other


class FlavorAssignment(msgspec.Struct, frozen=True):
    """The flavor of one resource."""

    name: str
    mode: Mode
    borrow: int = 0
    """How far up the cohorts quota has to be had from; zero: from the queue itself."""
    tried: int = 0
    """The position of the last flavor that was tried, -1 if all were."""


class FlavorAttempt(msgspec.Struct, frozen=True):
    """One flavor that was considered, and the worst that came of it."""

    flavor: str
    mode: Mode
    borrow: int = 0
    possibility: Possibility | None = None
    reasons: tuple[str, ...] = ()
    no_fit_reason: Reason = Reason.NONE

    def merged(self, other: FlavorAttempt) -> FlavorAttempt:
        """The same flavor considered for two resource groups."""
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
    """The flavors of a pod set. Without reasons all is well; without flavors nothing fits."""

    name: str
    requests: amounts.Requests
    count: int
    flavors: Mapping[str, FlavorAssignment] = {}
    reasons: tuple[str, ...] = ()
    error: str = ""
    attempts: tuple[FlavorAttempt, ...] = ()

    @property
    def mode(self) -> Mode:
        if self.error:
            return Mode.NO_FIT
        if not self.reasons:
            return Mode.FIT
        return min((each.mode for each in self.flavors.values()), default=Mode.NO_FIT)

    @property
    def message(self) -> str:
        """Why not all flavors can be had now; reasons are in the order of their texts."""
        return self.error or ", ".join(sorted(self.reasons))

    def with_mode(self, mode: Mode) -> PodSetAssignment:
        """The same, all flavors in another mode."""
        flavors = {name: structs.replace(each, mode=mode) for name, each in self.flavors.items()}
        return structs.replace(self, flavors=flavors)

    def admitted(self, *, binary: Container[str]) -> workload.PodSetAssignment:
        """As a workload's admission has it; resources that got no flavor are left out."""
        return workload.PodSetAssignment(
            name=self.name,
            flavors={resource: each.name for resource, each in self.flavors.items()},
            resource_usage={
                resource: amounts.as_quantity(resource, self.requests.get(resource, 0), binary=binary)
                for resource in self.flavors
            },
            count=self.count,
        )


class Assignment(msgspec.Struct, frozen=True):
    """The flavors of a workload."""

    pod_sets: tuple[PodSetAssignment, ...]
    usage: Usage = {}
    attempt: Attempt = Attempt(())
    no_fit_reason: Reason = Reason.NONE
    is_deferred: bool = False

    @property
    def mode(self) -> Mode:
        """The worst mode of all pod sets."""
        if self.is_deferred:
            return Mode.DEFERRED_FIT
        worst = Mode.FIT if self.pod_sets else Mode.NO_FIT
        for each in self.pod_sets:
            if each.mode < worst:
                worst = each.mode
        return worst

    @property
    def borrowing(self) -> int:
        """How far up the cohorts quota has to be had from."""
        return max((each.borrow for of in self.pod_sets for each in of.flavors.values()), default=0)

    @property
    def message(self) -> str:
        """Why it cannot be had now."""
        texts = []
        for each in self.pod_sets:
            if each.error:
                return f"failed to assign flavors to pod set {each.name}: {each.error}"
            if each.reasons:
                texts.append(f"couldn't assign flavors to pod set {each.name}: {each.message}")
        return "; ".join(texts)

    @property
    def considered(self) -> str:
        """What was considered beside what fits at once, as events tell it."""
        texts = []
        for each in self.pod_sets:
            attempts = [str(attempt) for attempt in each.attempts if attempt.mode is not Mode.FIT or attempt.borrow]
            if attempts:
                texts.append(f"{each.name}: {', '.join(attempts)}")
        return " | ".join(texts)

    @property
    def to_preempt(self) -> frozenset[FlavorResource]:
        """What others would have to give up some of."""
        return frozenset(
            FlavorResource(each.name, resource)
            for of in self.pod_sets
            for resource, each in of.flavors.items()
            if each.mode is Mode.PREEMPT
        )

    @property
    def nominated(self) -> Mapping[str, Mapping[str, str]]:
        """The flavors by pod set and resource."""
        return {of.name: {resource: each.name for resource, each in of.flavors.items()} for of in self.pod_sets}

    def deferred(self) -> Assignment:
        """The same, to be had only once preemptions that are under way are done."""
        pod_sets = tuple(each.with_mode(Mode.DEFERRED_FIT) for each in self.pod_sets)
        return structs.replace(self, pod_sets=pod_sets, is_deferred=True)

    def total(
        self, requested: Iterable[PodSetRequests], replaced: Sequence[PodSetRequests] = ()
    ) -> dict[FlavorResource, int]:
        """What pod sets need of the flavors, in the numbers that are assigned; nothing is left out but zeros.

        ``replaced`` are those of a workload that is replaced: then only pods beyond those need anything.
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
