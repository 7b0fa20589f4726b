"""Units of scheduling: a pod by itself, or the waiting pods of a gang, which get nodes together or not at all.

The scheduler's loop and simulations collect the members of a unit, each in its own way, and leave the rest to
:class:`Units`: whether the unit can be tried, which nodes its members get, and what would help if there are none.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from drachma.api import gates as features
from drachma.api import pod
from drachma.scheduler.cycle import gangpreemption, gangsearch, groupsearch, podcycle
from drachma.scheduler.cycle.decision import Aborted, Placed, Unfit
from drachma.scheduler.framework import eviction, profile, remedy
from drachma.scheduler.snapshot import Snapshot, gangs, podinfo


class Unit(NamedTuple):
    """Pods that one decision is about."""

    members: Sequence[podinfo.PodInfo]
    gang: gangs.Gang | gangs.Undefined | None = None
    """Gang of the members; None for a pod that is scheduled by itself."""
    needed: int = 1
    """Number of members that must get a node now."""

    @property
    def preemptor(self) -> eviction.Preemptor:
        """Identity of the unit towards the pods that are evicted for it."""
        if not isinstance(self.gang, gangs.Gang):
            return eviction.Preemptor("pod", self.members[0].uid)
        if self.gang.group_uid:
            return eviction.Preemptor("podgroup", self.gang.group_uid)
        return eviction.Preemptor("gang", str(self.gang.key))


class Gated(NamedTuple):
    """Decision not to try a gang yet: it is not defined, or too few of its pods wait."""

    message: str
    is_brief: bool = False
    """True if the state usually lasts a moment, as while claims of other members are created."""
    is_silent: bool = False
    """True if the pods are not told, as upstream does for PodGroups."""


class Refused(NamedTuple):
    """Decision that pods contradict each other, so that they cannot be scheduled as one gang."""

    message: str


_CLAIMS_FREED: Final = "deallocation and deletion of ResourceClaims completed"

Decision = gangsearch.Outcome | Gated | Refused


class Relief(NamedTuple):
    """Outcome of looking for help for a unit that does not fit."""

    message: str
    nodes: Mapping[str, str] | None = None
    """Nodes to nominate for pods, by uid; other members lose their nomination. None leaves nominations as they are."""
    remedies: tuple[remedy.Remedy, ...] = ()

    @property
    def has_room(self) -> bool:
        """True if evictions make room for the unit."""
        return bool(self.nodes)


class Units:
    """Decides about units."""

    def __init__(
        self, cycle: podcycle.Cycle, profile: profile.Profile, *, gates: features.Gates, gang_steps: int
    ) -> None:
        """The search for nodes for a gang takes at most ``gang_steps`` decisions about pods after its first turn."""
        self._cycle: Final = cycle
        self._profile: Final = profile
        self._has_gangs: Final = gates.on(features.Gate.GENERIC_WORKLOAD)
        self._has_topology: Final = gates.on(features.Gate.TOPOLOGY_AWARE_WORKLOADS)
        self._gang_steps: Final = gang_steps

    def unit(self, member: podinfo.PodInfo, snapshot: Snapshot) -> Unit:
        """Return the unit of a pod with the pod as its only member. The caller adds the others that wait."""
        if not self._has_gangs:
            return Unit((member,))
        gang = snapshot.gangs.of(member.pod)
        if isinstance(gang, gangs.Undefined):
            return Unit((member,), gang)
        needed = 0 if gang is None else snapshot.missing(gang)
        is_unit = gang is not None and (gang.is_group or needed > 1)
        return Unit((member,), gang, needed) if is_unit else Unit((member,))

    def decide(self, unit: Unit, snapshot: Snapshot) -> Decision:
        """Return nodes for the members of a unit, or the reason why they get none."""
        match unit.gang:
            case None:
                return self._decide_pod(unit.members[0], snapshot)
            case gangs.Undefined(problem=problem, is_silent=is_silent):
                return Gated(problem, is_silent=is_silent)
            case gangs.Gang() as gang:
                return self._decide_gang(unit, gang, snapshot)

    def _decide_pod(self, member: podinfo.PodInfo, snapshot: Snapshot) -> Decision:
        decision = self._cycle.decide(member, snapshot)
        match decision:
            case Placed():
                return gangsearch.Together((decision,))
            case Unfit():
                return gangsearch.Short(decision, 0)
            case Aborted():
                return decision

    def _decide_gang(self, unit: Unit, gang: gangs.Gang, snapshot: Snapshot) -> Decision:
        missing_count = self._missing(gang, unit, snapshot)
        if missing_count > 0:
            message = (
                f"minCount ({gang.size}) cannot be satisfied: gang {gang.key}: "
                f"{missing_count} more {'groups' if gang.children else 'pods'} have to be schedulable"
            )
            return Gated(message, is_brief=True, is_silent=gang.is_group)
        for leaf in gang.leaves:
            if leaf.agreement.problem:
                return Refused(f"pod group {leaf.key}: {leaf.agreement.problem}")
            waiting_pods = (member.pod for member in unit.members if member.uid in leaf.members)
            problem = gangs.disagreement(leaf, (*waiting_pods, *_residents(leaf, snapshot)))
            if problem:
                return Refused(problem)
        outcome = self._search(unit)(snapshot)
        if isinstance(outcome, gangsearch.Together):
            # The search decides on forks. The binder carries the decision out on the snapshot itself.
            placements = tuple(each._replace(cycle=each.cycle.on(snapshot)) for each in outcome.placements)
            return outcome._replace(placements=placements)
        return outcome

    def search(self, members: Sequence[podinfo.PodInfo], snapshot: Snapshot, *, needed: int) -> gangsearch.Outcome:
        """Return the outcome for members of a gang of which so many must get nodes, whatever else the gang needs."""
        unit = self.unit(members[0], snapshot)._replace(members=members, needed=needed)
        return self._search(unit)(snapshot)

    def _missing(self, gang: gangs.Gang, unit: Unit, snapshot: Snapshot) -> int:
        """Return the number of pods, or of groups, that have to wait for nodes too before a gang can be tried."""
        if gang.children:
            return gang.size - sum(self._missing(child, unit, snapshot) <= 0 for child in gang.children)
        return snapshot.missing(gang) - sum(member.uid in gang.members for member in unit.members)

    def _search(self, unit: Unit) -> gangpreemption.Search:
        if isinstance(unit.gang, gangs.Gang) and unit.gang.is_group:
            return functools.partial(
                groupsearch.search,
                self._cycle,
                members=unit.members,
                gang=unit.gang,
                steps=self._gang_steps,
                has_topology=self._has_topology,
            )
        return functools.partial(
            gangsearch.search, self._cycle, members=unit.members, needed=unit.needed, steps=self._gang_steps
        )

    def relieve(self, unit: Unit, short: gangsearch.Short, snapshot: Snapshot, *, is_evicting: bool = False) -> Relief:
        """Return what may help a unit that does not fit.

        ``is_evicting`` says that pods are being evicted for the gang already.
        """
        if unit.gang is None:
            assert short.unfit is not None, "a pod by itself is tried"
            return self._relieve_pod(short.unfit)
        remedies = () if short.unfit is None else self._free_claims(short.unfit.info, snapshot)
        preemption = gangpreemption.ongoing() if is_evicting else self.preempt(unit, snapshot)
        if isinstance(preemption, gangpreemption.Room):
            remedies = (*remedies, preemption.eviction)
        message = preemption.message
        is_final = isinstance(preemption, gangpreemption.NoRoom) and preemption.is_final
        if short.report is not None and not is_final:
            # Upstream's plugin says so for every group, whether it has claims or not.
            message = f"{_CLAIMS_FREED}, {message}"
        return Relief(message, preemption.nodes, remedies)

    def _relieve_pod(self, unfit: Unfit) -> Relief:
        result = self._profile.post_filter(unfit.cycle, unfit.diagnosis)
        nodes: Mapping[str, str] | None = None
        if result.node:
            nodes = {unfit.info.uid: result.node}
        elif result.is_hopeless:
            nodes = {}
        return Relief(result.message, nodes, result.remedies)

    def _free_claims(self, member: podinfo.PodInfo, snapshot: Snapshot) -> tuple[remedy.Remedy, ...]:
        """Return remedies for one member that evict no pods: evictions are decided for the whole gang."""
        alone = self._cycle.decide(member, snapshot)
        if not isinstance(alone, Unfit):
            return ()
        result = self._profile.post_filter(alone.cycle, alone.diagnosis)
        return tuple(each for each in result.remedies if not each.victims)

    def preempt(self, unit: Unit, snapshot: Snapshot) -> gangpreemption.Room | gangpreemption.NoRoom:
        """Return the evictions that make room for a gang, or why there are none."""
        assert isinstance(unit.gang, gangs.Gang), "only gangs preempt together"
        return gangpreemption.preempt(
            self._cycle,
            snapshot,
            unit.members,
            gang=unit.gang,
            preemptor=unit.preemptor,
            search=self._search(unit),
            describe=lambda short: describe(unit, short) if short.report is None else short.report.message,
        )


def describe(unit: Unit, short: gangsearch.Short) -> str:
    """Return the message about a unit that does not fit."""
    if short.unfit is None:
        return "" if short.report is None else short.report.message
    reasons = short.unfit.diagnosis.message()
    if not isinstance(unit.gang, gangs.Gang):
        return reasons
    key = short.unfit.info.key
    text = (
        f"minCount ({unit.gang.size}) cannot be satisfied: {short.placed} scheduled, "
        f"{max(unit.needed - short.placed, 0)} missing; "
        f"gang {unit.gang.key}, pod {key.namespace}/{key.name}: {reasons}"
    )
    if short.report is not None and short.report.conflict:
        text += f" Constraints conflict: {short.report.conflict}."
    return f"{text} Not all ways to place the {len(unit.members)} pods were tried." if short.has_given_up else text


def _residents(gang: gangs.Gang, snapshot: Snapshot) -> Iterator[pod.Pod]:
    return filter(None, map(snapshot.nodes.resident, gang.members))
