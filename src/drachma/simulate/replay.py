"""Replaying: the decisions of a recording made once more, each on what the scheduler knew, and compared with it.

Which of equally good nodes a scheduler takes is chance. A decision is the same if the recorded node is among the best,
and the claims get the same devices there; or if the reasons against all nodes are the same; or if something goes wrong
both times, since which of several nodes is found out first is chance, too. IDs of shares, which are drawn, do not
count. What may help a pod that fits nowhere, such as preemption, is not part of the decision.

Every decision stands by itself: what follows from one that differs is still what was recorded.
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
from drachma.scheduler import cycle, gangsearch, profiles
from drachma.scheduler.decision import Aborted, Decision, Placed, Unfit
from drachma.scheduler.framework import cyclestate, profile, verdict
from drachma.scheduler.recording import recordlines
from drachma.scheduler.settings import Settings
from drachma.scheduler.snapshot import Snapshot, podinfo
from drachma.simulate import podexplanation, recordingcluster, simulation


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a pod."""

    node: str = ""
    allocations: tuple[recordlines.ClaimAllocation, ...] = ()
    """What its claims got, without what is drawn by chance."""
    reasons: str = ""
    """Why it fits nowhere."""
    error: str = ""
    """What went wrong."""


class Difference(NamedTuple):
    """A decision that comes out otherwise than it was recorded."""

    number: int
    time: datetime
    pod: str
    recorded: Outcome
    replayed: Outcome
    about_node: str
    """What speaks against the recorded node, if there is one."""
    explanation: podexplanation.PodExplanation
    """Of what came out now."""


class Replay(NamedTuple):
    """What came of a recording."""

    decisions: int
    """That were repeated."""
    missed: int
    """That were made and not recorded."""
    torn: int
    """The number of the last line where it has no end, or else 0."""
    difference: Difference | None
    """The first; nothing after it was repeated."""


def replay(lines: Iterable[recordlines.Line | recordlines.Torn], *, first: int = 1, only: str = "") -> Replay:
    """Repeat decisions from a number on, all or those about one pod (``namespace/name``), until one differs.

    Raises:
        errors.DecodeError: something in the recording cannot be read, or does not make sense.
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
    """A clock that shows the time of a decision."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC)

    def utc(self) -> datetime:
        return self.now


class _RecordedCycle(cycle.Cycle):
    """Chooses of equally good nodes the recorded one, where it is among them."""

    def __init__(
        self,
        plugins: profile.Profile,
        *,
        chance: random.Random,
        monotonic: Callable[[], float],
        cluster: simulation.Simulation,
    ) -> None:
        super().__init__(plugins, chance=chance, monotonic=monotonic, favoured=self._recorded)
        self._cluster: Final = cluster
        self._uid = ""
        self.nodes: dict[str, str] = {}
        """Of pods, by uid."""

    def decide(self, info: podinfo.PodInfo, snapshot: Snapshot, *, besides: int = 0) -> Decision:
        self._uid = info.uid
        return super().decide(info, snapshot, besides=besides)

    def _recorded(self, nodes: int) -> int:
        info = self._cluster.snapshot.nodes.find(self.nodes.get(self._uid, ""))
        return nodes if info is None else nodes & info.bit or nodes


class Scene:
    """A cluster, and the scheduler that decides in it, since one beginning."""

    def __init__(self, chosen: Settings) -> None:
        self._clock: Final = _Moment()
        chance = random.Random(0)
        self._profile: Final = profiles.default(chosen, time=self._clock, chance=chance)
        self.cluster: Final = recordingcluster.RecordingCluster(chosen, self._profile)
        self._steps: Final = chosen.gang_steps
        self._cycle: Final = _RecordedCycle(
            self._profile, chance=chance, monotonic=self._clock.monotonic, cluster=self.cluster.simulation
        )

    def repeat(self, waiting: pod.Pod, recorded: Outcome, *, number: int, time: datetime) -> Difference | None:
        """What is different now about a decision, if anything is."""
        self._clock.now = time
        self._cycle.nodes = {waiting.metadata.uid: recorded.node}
        snapshot = self.cluster.simulation.snapshot
        replayed = _replayed(self._cycle.decide(podinfo.PodInfo(waiting), snapshot))
        if recorded == replayed or (recorded.error and replayed.error) or _is_continued(recorded, replayed):
            return None
        return self._difference(waiting, recorded, replayed, number=number, time=time)

    def repeat_together(self, line: recordlines.Together, members: list[pod.Pod]) -> Difference | None:
        """The same for a gang: of the first pod about which something is different.

        Where too few find a node both times, which of them find one is chance.
        """
        self._clock.now = line.time
        recorded = {
            each.uid: Outcome(
                node=each.node, allocations=tuple(without_chance(one.claim, one.result) for one in each.allocations)
            )
            for each in line.members
        }
        self._cycle.nodes = {uid: outcome.node for uid, outcome in recorded.items()}
        infos = list(map(podinfo.PodInfo, members))
        snapshot = self.cluster.simulation.snapshot
        found = gangsearch.search(self._cycle, snapshot, infos, needed=line.needed, steps=self._steps)
        replayed: dict[str, Outcome] = {}
        otherwise = Outcome()
        match found:
            case gangsearch.Together():
                replayed = {each.info.uid: _replayed(each) for each in found.placements}
            case gangsearch.Short():
                otherwise = _replayed(found.unfit)
            case Aborted():
                otherwise = _replayed(found)
        before = Outcome(reasons=line.reasons, error=line.error)
        for each in members:
            uid = each.metadata.uid
            if recorded.get(uid) != replayed.get(uid):
                outcomes = recorded.get(uid, before), replayed.get(uid, otherwise)
                return self._difference(each, *outcomes, number=line.number, time=line.time)
        return None

    def _difference(
        self, waiting: pod.Pod, recorded: Outcome, replayed: Outcome, *, number: int, time: datetime
    ) -> Difference:
        return Difference(
            number=number,
            time=time,
            pod=simulation.title(waiting),
            recorded=recorded,
            replayed=replayed,
            about_node=self._against(recorded.node, waiting) if recorded.node not in ("", replayed.node) else "",
            explanation=podexplanation.explain(self.cluster.simulation, waiting),
        )

    def _against(self, node: str, waiting: pod.Pod) -> str:
        """What speaks against a node."""
        snapshot = self.cluster.simulation.snapshot
        info = snapshot.nodes.find(node)
        if info is None:
            return "there is no such node"
        state = cyclestate.CycleState(podinfo.PodInfo(waiting), snapshot)
        try:
            selected = self._profile.pre_filter(state)
            if isinstance(selected, verdict.Rejection):
                return ", ".join(selected.reasons)
            passing, rejections = self._profile.filter_with_nominated_pods(state, info.bit)
        except verdict.AbortError as error:
            return str(error)
        return "it would do, and others are better" if passing else ", ".join(rejections[0][0].reasons)


def _recorded(line: recordlines.Decision) -> Outcome:
    allocations = tuple(without_chance(each.claim, each.result) for each in line.allocations)
    return Outcome(node=line.node, allocations=allocations, reasons=line.reasons, error=line.error)


def _replayed(decision: Decision) -> Outcome:
    match decision:
        case Placed():
            allocations = decision.assignment.allocations
            return Outcome(
                node=decision.node,
                allocations=tuple(without_chance(str(each.claim.metadata.name), each.result) for each in allocations),
            )
        case Unfit():
            return Outcome(reasons=decision.diagnosis.message())
        case Aborted():
            return Outcome(error=decision.message)


def _is_continued(recorded: Outcome, replayed: Outcome) -> bool:
    """Whether what was recorded goes on with what was tried then, as pods' statuses do."""
    return bool(replayed.reasons) and recorded.reasons.startswith(f"{replayed.reasons} ")


def without_chance(claim: str, allocation: resourceclaim.AllocationResult) -> recordlines.ClaimAllocation:
    """An allocation without what is drawn, and without the time at which it was written."""
    results = tuple(structs.replace(each, share_id=None) for each in allocation.devices.results)
    devices = structs.replace(allocation.devices, results=results)
    result = structs.replace(allocation, devices=devices, allocation_timestamp=None)
    return recordlines.ClaimAllocation(claim, result)
