"""Preemption: which less important pods to evict so that a pod fits, and from which node, as DefaultPreemption does.

Pure: it reads the cluster and answers with a :class:`Candidate` or with the words for the pod's condition; evicting is
up to the scheduler. Devices are not freed by evicting pods here, as upstream: what a claim holds, it holds until it is
deallocated. Differs from upstream: disruption budgets are not looked at.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Final, NamedTuple

from drachma.api import pod
from drachma.claims import wellknown
from drachma.scheduler import cluster, cycle, decision, messages, nodeclass, nominations, podinfo, verdict

_NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
_NO_VICTIMS: Final = "No preemption victims found for incoming pod"
_LEAST_CANDIDATES: Final = 100
_CANDIDATES_PERCENT: Final = 10
_FAR_FUTURE: Final = datetime.max.replace(tzinfo=UTC)
_PRIORITY_OFFSET: Final = 2**31


class Candidate(NamedTuple):
    """A node, and the pods that have to go from it, most important first."""

    node: str
    victims: tuple[pod.Pod, ...]

    @property
    def message(self) -> str:
        """What the pod's condition says."""
        return f"found a potential placement for pod on node {self.node}, preempting {len(self.victims)} victims"


class Preemption:
    """Finds candidates."""

    def __init__(
        self,
        nodes: cluster.Cluster,
        decisions: cycle.Cycle,
        *,
        nominated: nominations.Nominations,
        chance: random.Random,
    ) -> None:
        self._cluster: Final = nodes
        self._cycle: Final = decisions
        self._nominated: Final = nominated
        self._chance: Final = chance

    def find(self, info: podinfo.PodInfo, diagnosis: decision.Diagnosis) -> Candidate | str:
        """The best candidate, or why there is none; AbortError as for a decision."""
        problem = self._ineligible(info, diagnosis)
        if problem:
            return problem
        potential = list(nodeclass.slots(diagnosis.resolvable))
        rejections: list[tuple[verdict.Rejection, int]] = []
        candidates: list[Candidate] = []
        start = self._chance.randrange(len(potential)) if potential else 0
        enough = min(max(len(potential) * _CANDIDATES_PERCENT // 100, _LEAST_CANDIDATES), len(potential))
        for slot in potential[start:] + potential[:start]:
            found = self._on_node(info, self._cluster.nodes[slot])
            if isinstance(found, Candidate):
                candidates.append(found)
                if len(candidates) >= enough:
                    break
            else:
                rejections.append((found, 1 << slot))
        if candidates:
            return min(candidates, key=_rank)
        count = diagnosis.node_count
        absent = (verdict.Rejection(verdict.PREEMPTION, (_NOT_HELPFUL,)), count - len(rejections))
        return messages.unfit(decision.Diagnosis(count, None, tuple(rejections), absent if absent[1] else None))

    def _ineligible(self, info: podinfo.PodInfo, diagnosis: decision.Diagnosis) -> str:
        if info.pod.spec.preemption_policy == "Never":
            return "not eligible due to preemptionPolicy=Never."
        state = self._cluster.find(self._nominated.node_of(info.uid) or info.pod.status.nominated_node_name)
        if state is None or any(
            nodes & state.bit and not rejection.is_resolvable for rejection, nodes in diagnosis.rejections
        ):
            return ""
        for booking in state.ledger.bookings.values():
            if _priority(booking.pod) < info.priority and _is_being_preempted(booking.pod):
                return "not eligible due to a terminating pod on the nominated node."
        return ""

    def _on_node(self, info: podinfo.PodInfo, state: cluster.NodeState) -> Candidate | verdict.Rejection:
        account = state.ledger.copy()
        lesser = [booking for booking in account.bookings.values() if _priority(booking.pod) < info.priority]
        if not lesser:
            return verdict.Rejection(verdict.PREEMPTION, (_NO_VICTIMS,))
        for booking in lesser:
            account.cancel(booking.pod.metadata.uid)
        obstacle = self._cycle.obstacle(info, state, account=account)
        if obstacle is not None:
            return obstacle
        # As many as possible may stay, the most important first.
        victims: list[pod.Pod] = []
        for booking in sorted(lesser, key=lambda each: _importance(each.pod)):
            account.book(booking)
            if self._cycle.obstacle(info, state, account=account) is not None:
                account.cancel(booking.pod.metadata.uid)
                victims.append(booking.pod)
        if not victims:
            raise verdict.AbortError(f'expected at least one victim pod on node "{state.name}"')
        return Candidate(state.name, tuple(victims))


def _rank(candidate: Candidate) -> tuple[int, int, int, float]:
    """Candidates in order, best first: by the highest priority that has to go, their sum, their number, their age."""
    priorities = [_priority(victim) for victim in candidate.victims]
    highest = max(priorities)
    earliest = min(_started(victim) for victim in candidate.victims if _priority(victim) == highest)
    return (
        priorities[0],
        sum(priority + _PRIORITY_OFFSET for priority in priorities),
        len(priorities),
        -earliest.timestamp(),
    )


def _importance(victim: pod.Pod) -> tuple[int, datetime]:
    return (-_priority(victim), _started(victim))


def _started(victim: pod.Pod) -> datetime:
    return victim.status.start_time or _FAR_FUTURE


def _priority(of: pod.Pod) -> int:
    return of.spec.priority or 0


def _is_being_preempted(of: pod.Pod) -> bool:
    return of.metadata.deletion_timestamp is not None and any(
        condition.type == wellknown.DISRUPTION_TARGET
        and condition.status == "True"
        and condition.reason == wellknown.PREEMPTION_BY_SCHEDULER
        for condition in of.status.conditions
    )
