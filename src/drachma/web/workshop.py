"""The workshop: answers that need a simulation, on objects that the user may read, in a thread of its own.

It runs the code of ``drachma explain``, ``plan``, ``allocate``, ``whatif`` and ``when``. Objects that the view has are
taken from it; the others are read when a question comes, with the user's credentials. One question of a user runs at a
time.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from drachma.allocator import explanation
from drachma.allocator.explanation import amendment, report, survey
from drachma.api import codec, manifest, meta, pod, resourceclaim, typeinfo
from drachma.claims import podclaims
from drachma.queueing.explanation import WorkloadExplanation
from drachma.runtime import clock
from drachma.runtime.cache import Key
from drachma.simulate import ClusterState, Simulation, clusterstate, livecluster, podexplanation
from drachma.simulate.podexplanation import PodExplanation
from drachma.simulate.queueingstate import QueueingState
from drachma.simulate.timeline.future import ClusterNow

if TYPE_CHECKING:
    from drachma.web.userview import UserView

AnswerT = TypeVar("AnswerT")

_CHEAP_SECONDS: Final = 0.5
"""Time within which a simulation is built anew for every question."""

_KEPT_SECONDS: Final = 20.0
"""Time for which an expensive simulation serves further questions."""

_MOST_SORTS: Final = 5


class _Built(NamedTuple):
    simulation: Simulation
    version: tuple[int, int]
    at: float
    cost: float


class Fix(NamedTuple):
    """A change that would make a pod fit, in words, and the claims as YAML with the change."""

    text: str
    manifest: str


class PodAnswer(NamedTuple):
    """Explanation of a pod, and the fixes for each of its device reports."""

    explained: PodExplanation
    fixes: tuple[tuple[Fix, ...], ...]


class ClaimAnswer(NamedTuple):
    """Explanation of a claim: the sorts of nodes, and the fixes for each sort."""

    surveyed: survey.Survey
    fixes: tuple[tuple[Fix, ...], ...]


class Estimates(NamedTuple):
    """Estimated starts of waiting workloads, as the page of queues shows them until the next estimate."""

    assume: str
    """Mean running time of jobs that state none, as the user wrote it."""
    at: dt.datetime
    starts: dict[Key, str]


class Workshop:
    """Answers for one user."""

    def __init__(self, view: UserView, *, time: clock.Clock) -> None:
        self._view: Final = view
        self._time: Final = time
        self._lock: Final = asyncio.Lock()
        self._built: _Built | None = None
        typeinfo.build()
        self.estimates: Estimates | None = None
        """The last estimates that the user asked for."""

    async def ask(self, question: Callable[[Simulation], AnswerT]) -> AnswerT:
        """Return the answer to a question about a copy of the cluster.

        Raises:
            errors.ForbiddenError: the user may not read a kind that scheduling depends on.
        """
        async with self._lock:
            simulation = await self._simulation()
            return await asyncio.to_thread(lambda: question(simulation.fork()))

    async def ask_future(self, now: dt.datetime, question: Callable[[ClusterNow], AnswerT]) -> AnswerT:
        """Return the answer to a question about the cluster with its queues.

        Raises:
            errors.ForbiddenError: the user may not read a kind that scheduling or admission depends on.
            errors.ObjectNotFoundError: the server has no queues.
        """
        async with self._lock:
            state = ClusterState.of(await self._read())
            queueing = tuple(await livecluster.read_queueing(self._view.client))
            return await asyncio.to_thread(lambda: question(ClusterNow(state, queueing, now)))

    async def explain_pod(self, key: Key) -> PodAnswer | None:
        """Return the explanation of a pod, or None if the scheduler does not know it. Raises errors.ForbiddenError."""

        def question(simulation: Simulation) -> PodAnswer | None:
            subject = simulation.find(key.namespace, key.name)
            if subject is None:
                return None
            explained = podexplanation.explain(simulation, subject)
            claims = _pending_claims(simulation, subject)
            fixes = tuple(_fixes(each.explanation, claims) for each in explained.reports)
            return PodAnswer(explained, fixes)

        return await self.ask(question)

    async def explain_claim(self, key: Key) -> ClaimAnswer | None:
        """Return the nodes on which a claim could be allocated, or None for an allocated or unknown claim."""

        def question(simulation: Simulation) -> ClaimAnswer | None:
            claim = simulation.snapshot.claims.get(key.namespace, key.name)
            if claim is None or claim.status.allocation is not None:
                return None
            nodes = sorted((info.place for info in simulation.snapshot.nodes), key=lambda place: place.name)
            explainer = explanation.Explainer(simulation.snapshot.devices.allocator)
            surveyed = survey.survey(explainer, nodes, claims=[claim], most=_MOST_SORTS)
            return ClaimAnswer(surveyed, tuple(_fixes(each.explanation, (claim,)) for each in surveyed.groups))

        return await self.ask(question)

    async def explain_workload(self, key: Key, now: dt.datetime) -> list[WorkloadExplanation]:
        """Return the explanations of a workload. Raises errors.ForbiddenError."""
        async with self._lock:
            objects = await livecluster.read_queueing(self._view.client)
            return await asyncio.to_thread(lambda: QueueingState(objects, now).explain(key.namespace, key.name))

    async def _simulation(self) -> Simulation:
        version = self._view.generation, self._view.model.version
        now = self._time.monotonic()
        built = self._built
        if built is not None and built.version[0] == version[0]:
            is_recent = now - built.at < _KEPT_SECONDS and built.cost > _CHEAP_SECONDS
            if built.version == version or is_recent:
                return built.simulation
        objects = await self._read()
        simulation = await asyncio.to_thread(lambda: Simulation(ClusterState.of(objects)))
        self._built = _Built(simulation, version, now, self._time.monotonic() - now)
        return simulation

    async def _read(self) -> list[meta.Object]:
        """Return the objects that placing pods depends on, from the view if it has them all."""
        objects: list[meta.Object] = []
        for kind in clusterstate.KINDS:
            if self._view.reads_all(kind) and not self._view.is_loading:
                objects += self._view.objects(kind)
            else:
                objects += await livecluster.everything(self._view.client, kind)
        return objects


def _pending_claims(simulation: Simulation, subject: pod.Pod) -> tuple[resourceclaim.ResourceClaim, ...]:
    complete = simulation.with_claims(subject)
    if not isinstance(complete, pod.Pod):
        return ()
    try:
        resolved = podclaims.resolve(complete, simulation.snapshot.claims)
    except podclaims.MissingError:
        return ()
    return tuple(each.claim for each in resolved if each.claim.status.allocation is None)


def _fixes(explained: report.Explanation, claims: tuple[resourceclaim.ResourceClaim, ...]) -> tuple[Fix, ...]:
    """Return the changes that would help, the smallest first."""
    several = len(explained.claims) > 1
    fixes = []
    for change in explained.changes:
        amended = amendment.apply(change, claims)
        fixes.append(
            Fix(explanation.describe_change(change, name_claim=several), _manifest(amended) if amended else "")
        )
    return tuple(fixes)


def _manifest(claims: tuple[resourceclaim.ResourceClaim, ...]) -> str:
    """Return claims as YAML to create: names and specs, without the state of the objects."""
    documents = []
    for claim in claims:
        name = str(claim.metadata.name).removesuffix("-simulated").rstrip("-")
        metadata = meta.ObjectMeta(name=name, namespace=claim.metadata.namespace)
        documents.append(codec.encode(resourceclaim.ResourceClaim(metadata=metadata, spec=claim.spec)))
    return manifest.write_yaml(documents)
