"""Replaying: the decisions of a recording made once more, each on what the scheduler knew, and compared with it.

Which of equally good nodes a scheduler takes is chance. A decision is the same if the recorded node is among the best,
and the claims get the same devices there; or if the reasons against all nodes are the same; or if something goes wrong
both times, since which of several nodes is found out first is chance, too. IDs of shares, which are drawn, do not
count. What may help a pod that fits nowhere, such as preemption, is not part of the decision.

Every decision stands by itself: what follows from one that differs is still what was recorded.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final, NamedTuple

import msgspec
from msgspec import structs

from drachma import errors
from drachma.api import pod, resourceclaim
from drachma.runtime import clock
from drachma.scheduler import cycle, profiles
from drachma.scheduler.decision import Aborted, Decision, Placed, Unfit
from drachma.scheduler.framework import cyclestate, verdict
from drachma.scheduler.recording import recordlines
from drachma.scheduler.settings import Settings
from drachma.scheduler.snapshot import podinfo
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
            case recordlines.Decision() if scene is not None:
                try:
                    scene.cluster.apply(between)
                    between = []
                    waiting = recordingcluster.decode_pod(line.pod)
                    if line.number < first or only not in ("", simulation.title(waiting)):
                        continue
                    decisions += 1
                    difference = scene.repeat(waiting, _recorded(line), number=line.number, time=line.time)
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


class Scene:
    """A cluster, and the scheduler that decides in it, since one beginning."""

    def __init__(self, chosen: Settings) -> None:
        self._clock: Final = _Moment()
        chance = random.Random(0)
        self._profile: Final = profiles.default(chosen, time=self._clock, chance=chance)
        self.cluster: Final = recordingcluster.RecordingCluster(chosen, self._profile)
        self._node = ""
        self._cycle: Final = cycle.Cycle(
            self._profile, chance=chance, monotonic=self._clock.monotonic, favoured=self._favoured
        )

    def _favoured(self, nodes: int) -> int:
        """Of equally good nodes the recorded one, where it is among them."""
        info = self.cluster.simulation.snapshot.nodes.find(self._node)
        return nodes & info.bit or nodes if info is not None else nodes

    def repeat(self, waiting: pod.Pod, recorded: Outcome, *, number: int, time: datetime) -> Difference | None:
        """What is different now about a decision, if anything is."""
        self._clock.now = time
        self._node = recorded.node
        snapshot = self.cluster.simulation.snapshot
        replayed = _replayed(self._cycle.decide(podinfo.PodInfo(waiting), snapshot))
        if recorded == replayed or (recorded.error and replayed.error) or _is_continued(recorded, replayed):
            return None
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
