"""Replays: the decisions of a recording repeated, each in the state that the scheduler knew, and compared.

The scheduler chooses at random among equally good nodes. A decision is the same if the recorded node is among the best
and the claims get the same devices there; or if the reasons against all nodes are the same; or if there is an error
both times, since the first of several errors is random too. Random IDs of shares do not count. Preemption and other
remedies are not part of the decision.

Every decision is repeated on the recorded state, even after an earlier one differs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final, NamedTuple

import msgspec
from msgspec import structs

from drachma import errors
from drachma.api import pod, resourceclaim
from drachma.runtime import clock
from drachma.scheduler import cycle, profiles
from drachma.scheduler.cycle import gangsearch, units
from drachma.scheduler.cycle.decision import Aborted, Decision, Placed, Unfit
from drachma.scheduler.framework import cyclestate, profile, verdict
from drachma.scheduler.recording import recordlines
from drachma.scheduler.settings import Settings
from drachma.scheduler.snapshot import Snapshot, podinfo
from drachma.simulate import podexplanation, recordingcluster, simulation


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a decision about a pod."""

    node: str = ""
    allocations: tuple[recordlines.ClaimAllocation, ...] = ()
    """Allocations of its claims, without random values."""
    reasons: str = ""
    """Reasons why it fits nowhere."""
    error: str = ""
    """Error of the decision."""


class Difference(NamedTuple):
    """Decision with another outcome than the recorded one."""

    number: int
    time: datetime
    pod: str
    recorded: Outcome
    replayed: Outcome
    about_node: str
    """Reason against the recorded node, if there is one."""
    explanation: podexplanation.PodExplanation
    """Explanation of the new outcome."""


class Replay(NamedTuple):
    """Result of replaying a recording."""

    decisions: int
    """Number of repeated decisions."""
    missed: int
    """Number of decisions that were not recorded."""
    torn: int
    """Number of the last line if it is incomplete, or 0."""
    difference: Difference | None
    """First difference. No later decision was repeated."""


def replay(lines: Iterable[recordlines.Line | recordlines.Torn], *, first: int = 1, only: str = "") -> Replay:
    """Repeat decisions from a number on, all or those about one pod (``namespace/name``), until one differs.

    Raises:
        errors.DecodeError: the recording is malformed.
    """
    scene: Scene | None = None
    between: list[recordlines.Line] = []
    decisions = missed = torn = 0
    for line in lines:
        match line:
            case recordlines.Torn(place):
                torn = place
            case recordlines.Beginning():
                scene, between = Scene(line.settings), []
                missed += line.missed
            case recordlines.Decision() | recordlines.Together() if scene is not None:
                try:
                    scene.cluster.apply(between)
                    between = []
                    texts = line.pods if isinstance(line, recordlines.Together) else (line.pod,)
                    pods = [recordingcluster.decode_pod(each) for each in texts]
                    if line.number < first or only not in ("", *map(simulation.title, pods)):
                        continue
                    decisions += 1
                    if isinstance(line, recordlines.Together):
                        difference = scene.repeat_together(line, pods)
                    else:
                        difference = scene.repeat(pods[0], _recorded(line), number=line.number, time=line.time)
                except errors.DecodeError as error:
                    raise errors.DecodeError(f"decision {line.number}: {error}") from None
                if difference is not None:
                    return Replay(decisions, missed, torn, difference)
            case _:
                between.append(line)
    return Replay(decisions, missed, torn, None)


class _Moment(clock.SystemClock):
    """Clock that shows the time of a decision."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def utc(self) -> datetime:
        return self.now


class _RecordedCycle(cycle.Cycle):
    """Cycle that chooses the recorded node among equally good ones."""

    def __init__(
        self,
        plugins: profile.Profile,
        *,
        rng: random.Random,
        monotonic: Callable[[], float],
        cluster: simulation.Simulation,
    ) -> None:
        super().__init__(plugins, rng=rng, monotonic=monotonic, prefer=self._recorded)
        self._cluster: Final = cluster
        self._uid = ""
        self.nodes: dict[str, str] = {}
        """Recorded nodes of pods, by uid."""

    def decide(
        self, info: podinfo.PodInfo, snapshot: Snapshot, *, excluded: int = 0, domain: int | None = None
    ) -> Decision:
        self._uid = info.uid
        return super().decide(info, snapshot, excluded=excluded, domain=domain)

    def _recorded(self, nodes: int) -> int:
        info = self._cluster.snapshot.nodes.find(self.nodes.get(self._uid, ""))
        return nodes if info is None else nodes & info.bit or nodes


class Scene:
    """Cluster and scheduler since one beginning."""

    def __init__(self, settings: Settings) -> None:
        self._clock: Final = _Moment()
        rng = random.Random(0)
        self._profile: Final = profiles.default(settings, clock=self._clock, rng=rng)
        self.cluster: Final = recordingcluster.RecordingCluster(settings, self._profile)
        self._cycle: Final = _RecordedCycle(
            self._profile, rng=rng, monotonic=self._clock.monotonic, cluster=self.cluster.simulation
        )
        self._units: Final = units.Units(
            self._cycle, self._profile, gates=settings.gates, gang_steps=settings.gang_steps
        )

    def repeat(self, waiting_pod: pod.Pod, recorded: Outcome, *, number: int, time: datetime) -> Difference | None:
        """Return the difference to a recorded decision, or None."""
        self._clock.now = time
        self._cycle.nodes = {waiting_pod.metadata.uid: recorded.node}
        snapshot = self.cluster.simulation.snapshot
        replayed = _new_outcome(self._cycle.decide(podinfo.PodInfo(waiting_pod), snapshot))
        if recorded == replayed or (recorded.error and replayed.error) or _is_continued(recorded, replayed):
            return None
        return self._difference(waiting_pod, recorded, replayed, number=number, time=time)

    def repeat_together(self, line: recordlines.Together, members: list[pod.Pod]) -> Difference | None:
        """Return the difference to a recorded decision about a gang, for the first pod that differs, or None.

        If too few pods find a node both times, it is random which of them do.
        """
        self._clock.now = line.time
        recorded = {
            each.uid: Outcome(
                node=each.node,
                allocations=tuple(strip_random_values(one.claim, one.result) for one in each.allocations),
            )
            for each in line.members
        }
        self._cycle.nodes = {uid: outcome.node for uid, outcome in recorded.items()}
        infos = list(map(podinfo.PodInfo, members))
        snapshot = self.cluster.simulation.snapshot
        new_outcome = self._units.search(infos, snapshot, needed=line.needed)
        replayed: dict[str, Outcome] = {}
        otherwise = Outcome()
        match new_outcome:
            case gangsearch.Together():
                replayed = {each.info.uid: _new_outcome(each) for each in new_outcome.placements}
            case gangsearch.Short():
                if new_outcome.unfit is not None:
                    otherwise = _new_outcome(new_outcome.unfit)
            case Aborted():
                otherwise = _new_outcome(new_outcome)
        before = Outcome(reasons=line.reasons, error=line.error)
        for each in members:
            uid = each.metadata.uid
            if recorded.get(uid) != replayed.get(uid):
                outcomes = recorded.get(uid, before), replayed.get(uid, otherwise)
                return self._difference(each, *outcomes, number=line.number, time=line.time)
        return None

    def _difference(
        self, waiting_pod: pod.Pod, recorded: Outcome, replayed: Outcome, *, number: int, time: datetime
    ) -> Difference:
        return Difference(
            number=number,
            time=time,
            pod=simulation.title(waiting_pod),
            recorded=recorded,
            replayed=replayed,
            about_node=self._against(recorded.node, waiting_pod) if recorded.node not in ("", replayed.node) else "",
            explanation=podexplanation.explain(self.cluster.simulation, waiting_pod),
        )

    def _against(self, node: str, waiting_pod: pod.Pod) -> str:
        """Return the reason against a node."""
        snapshot = self.cluster.simulation.snapshot
        info = snapshot.nodes.find(node)
        if info is None:
            return "there is no such node"
        state = cyclestate.CycleState(podinfo.PodInfo(waiting_pod), snapshot)
        try:
            selected = self._profile.pre_filter(state)
            if isinstance(selected, verdict.Rejection):
                return ", ".join(selected.reasons)
            passing, rejections = self._profile.filter_with_nominated_pods(state, info.bit)
        except verdict.AbortError as error:
            return str(error)
        return "it would do, and others are better" if passing else ", ".join(rejections[0][0].reasons)


def _recorded(line: recordlines.Decision) -> Outcome:
    allocations = tuple(strip_random_values(each.claim, each.result) for each in line.allocations)
    return Outcome(node=line.node, allocations=allocations, reasons=line.reasons, error=line.error)


def _new_outcome(decision: Decision) -> Outcome:
    match decision:
        case Placed():
            allocations = decision.assignment.allocations
            return Outcome(
                node=decision.node,
                allocations=tuple(
                    strip_random_values(str(each.claim.metadata.name), each.result) for each in allocations
                ),
            )
        case Unfit():
            return Outcome(reasons=decision.diagnosis.message())
        case Aborted():
            return Outcome(error=decision.message)


def _is_continued(recorded: Outcome, replayed: Outcome) -> bool:
    """Return True if the recorded message continues the new one with what was tried to help, as statuses of pods do."""
    return bool(replayed.reasons) and recorded.reasons.startswith(f"{replayed.reasons} ")


def strip_random_values(claim: str, allocation: resourceclaim.AllocationResult) -> recordlines.ClaimAllocation:
    """Return an allocation without random values and without the time of the write."""
    results = tuple(structs.replace(each, share_id=None) for each in allocation.devices.results)
    devices = structs.replace(allocation.devices, results=results)
    result = structs.replace(allocation, devices=devices, allocation_timestamp=None)
    return recordlines.ClaimAllocation(claim, result)
