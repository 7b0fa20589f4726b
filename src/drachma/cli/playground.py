"""A run of ``drachma play``: manifests applied to a control plane, and the nodes and devices that pods get."""

import asyncio
import collections
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from drachma import errors
from drachma.api import meta, pod, resourceclaim
from drachma.claims import conditions, identity, ownership, podclaims, podstate, wellknown
from drachma.cli.options import PlayGoal
from drachma.client import Client, access, http, patches, target
from drachma.offline import manifestfiles
from drachma.process import hosting
from drachma.queueing import conditions as queueconditions
from drachma.queueing.component import resources
from drachma.queueing.jobs.settings import QUEUE_LABEL
from drachma.queueing.kinds import workload
from drachma.runtime import Informers, clock, informer
from drachma.scheduler import messages
from drachma.simulate import Simulation, explanationlines, livecluster, podexplanation

_DEFINITION: Final = "CustomResourceDefinition"
_ORDER: Final = (
    _DEFINITION,
    "Namespace",
    "ConfigMap",
    "PriorityClass",
    "DeviceClass",
    "Node",
    "DeviceTaintRule",
    "ResourceSlice",
)
"""Kinds that other objects refer to, created first in this order. Pods come last, in the order of the manifests."""

_POLL_SECONDS: Final = 0.05
"""Time between two checks for the kinds of definitions."""

_WORKLOADS: Final = frozenset(
    {"CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}
)

_QUIET_SECONDS: Final = 0.5
_SILENT_SECONDS: Final = 3.0
_BACKOFF_SECONDS: Final = 12.0
"""Time without changes after which the control plane counts as settled: if every pod has an answer, if not, and if the
scheduler tries a pod again after its longest backoff."""

_WORKLOAD_SECONDS: Final = 40.0
"""Limit for the time until queueing sees objects of a kind that the manifests define. It looks for new kinds every 30
seconds or more often."""

_CHECKS: Final = 50
"""Number of checks for changes in that time."""

Claim = resourceclaim.ResourceClaim


class Settings(NamedTuple):
    """Settings of a run: the time limit in seconds, and the output in addition to nodes and devices."""

    seconds: float
    goal: PlayGoal | None
    explains: bool
    shows_logs: bool
    runs_pods: bool
    has_queues: bool
    declared_features: Sequence[str]
    """Features of nodes in the manifests that declare none."""


class Result:
    """Result of a run: lines to show, and the pods without a node, or not in the state of the goal."""

    def __init__(self) -> None:
        self.lines: Final[list[str]] = []
        self.unfinished: Final[list[pod.Pod]] = []
        self.is_complete = False
        """False if the run was interrupted."""


async def run(
    sources: Sequence[manifestfiles.Source],
    result: Result,
    host: hosting.Host,
    *,
    settings: Settings,
) -> None:
    """Apply manifests to a control plane, and wait until it settles.

    Raises errors.UnreachableError if the control plane does not settle in time and there is no goal.
    """
    host.ready()
    await host.listening.wait()
    admin = access.Access(
        server=host.url,
        source="the control plane of drachma play",
        certificate_authority=host.authority,
        token=host.token,
    )
    async with (
        http.HttpClient(admin, clock=clock.SystemClock(), manager="drachma-play", is_strict=True) as client,
        Informers(client) as informers,
    ):
        watched = _Watched(
            informers,
            has_workloads=any(map(_is_workload, sources)),
            runs_pods=settings.runs_pods,
            has_queues=settings.has_queues,
            goal=settings.goal,
        )
        await informers.wait_synced()
        await _apply(client, sources, settings)
        if settings.has_queues:
            await watched.await_workloads(_queued_objects(sources), min(settings.seconds, _WORKLOAD_SECONDS))
        is_settled = await watched.settle(settings.seconds)
        pending_pods = [each for each in watched.pods if not each.spec.node_name]
        result.unfinished.extend(each for each in watched.pods if not _has_reached(each, settings.goal))
        logs = {each.metadata.uid: await _log(client, each) for each in watched.pods} if settings.shows_logs else {}
        reasons = await _reasons(client, pending_pods) if settings.explains else {}
        result.lines.extend(_lines(watched, logs, reasons))
        if settings.goal is not None:
            count = len(watched.pods) - len(result.unfinished)
            result.lines.append(f"{count} of {len(watched.pods)} pods are {settings.goal}")
        result.is_complete = True
        if not is_settled and settings.goal is None:
            raise errors.UnreachableError(
                f"the control plane still changes after {settings.seconds:g} seconds; see --timeout"
            )


# Applying


async def _apply(client: http.HttpClient, sources: Sequence[manifestfiles.Source], settings: Settings) -> None:
    """Create all objects. Kinds of definitions among them are served before the first custom resource is created."""
    definitions = [each for each in sources if _kind(each) == _DEFINITION]
    served = await _served(client)
    for source in definitions:
        await _create(client, served, source)
    if definitions:
        served = await _await_definitions(client, definitions, settings.seconds)
    for source in sorted(sources, key=_rank):
        if _kind(source) == "Node":
            await _create(client, served, _declare_features(source, settings.declared_features))
        elif _kind(source) != _DEFINITION:
            await _create(client, served, source)


_Served = dict[tuple[str, str], target.Target[meta.Object]]


async def _served(client: http.HttpClient) -> _Served:
    """Return the served resources by group and kind."""
    return {(each.group, each.kind): each for each in await client.resources()}


async def _await_definitions(
    client: http.HttpClient, definitions: Iterable[manifestfiles.Source], seconds: float
) -> _Served:
    """Return the served resources once the kinds of all definitions are among them.

    Raises:
        errors.DecodeError: a kind is not served in time, as when its names are taken.
    """
    kinds = {
        (str(spec.get("group")), str((spec.get("names") or {}).get("kind"))): source.place
        for source in definitions
        for spec in (source.content["spec"],)
    }
    served = await _served(client)
    try:
        async with asyncio.timeout(seconds):
            while kinds.keys() - served.keys():
                await asyncio.sleep(_POLL_SECONDS)
                served = await _served(client)
    except TimeoutError:
        (_, kind), place = next((key, place) for key, place in kinds.items() if key not in served)
        raise errors.DecodeError(f"{place}: kind {kind} is not served after {seconds:g} seconds") from None
    return served


def _kind(source: manifestfiles.Source) -> str:
    return str(source.content.get("kind")) if isinstance(source.content, dict) else ""


def _declare_features(source: manifestfiles.Source, features: Sequence[str]) -> manifestfiles.Source:
    """Return a node that declares features, as an agent would do; a node that declares any stays as it is."""
    status = source.content.get("status") or {}
    if not features or not isinstance(status, dict) or "declaredFeatures" in status:
        return source
    return source.replace_content({**source.content, "status": {**status, "declaredFeatures": list(features)}})


def _rank(source: manifestfiles.Source) -> int:
    kind = source.content.get("kind") if isinstance(source.content, dict) else None
    return _ORDER.index(kind) if kind in _ORDER else len(_ORDER) + (kind == "Pod")


async def _create(client: Client, served: _Served, source: manifestfiles.Source) -> None:
    content = source.content
    if not isinstance(content, dict) or not isinstance(content.get("metadata"), dict):
        raise errors.DecodeError(f"{source.place}: expected an object with metadata")
    group, _, version = str(content.get("apiVersion", "")).rpartition("/")
    resource = served.get((group, str(content.get("kind"))))
    if resource is None:
        raise errors.DecodeError(
            f"{source.place}: kind {content.get('kind')} in {content.get('apiVersion')}: not served"
        )
    resource = msgspec.structs.replace(resource, versions=(version,))
    metadata = {"namespace": "default", **content["metadata"]} if resource.namespaced else content["metadata"]
    namespace = str(metadata.get("namespace", ""))
    try:
        created = await client.create_document(resource, {**content, "metadata": metadata})
        if "status" in content:
            patch = patches.merge({"status": content["status"]})
            name = created["metadata"]["name"]
            await client.patch(resource, name, patch=patch, namespace=namespace, subresource="status")
    except errors.RefusedError as error:
        raise errors.DecodeError(f"{source.place}: {error}") from error


def _is_workload(source: manifestfiles.Source) -> bool:
    """Return True if a controller creates pods for an object."""
    return isinstance(source.content, dict) and source.content.get("kind") in _WORKLOADS


def _queued_objects(sources: Sequence[manifestfiles.Source]) -> set[tuple[str, str, str]]:
    """Return kind, namespace and name of the objects that are in a queue and of a kind that the manifests define."""
    kinds = {each.content["spec"]["names"]["kind"] for each in sources if _kind(each) == _DEFINITION}
    metadata = [(_kind(each), each.content["metadata"]) for each in sources if _kind(each) in kinds]
    return {
        (kind, each.get("namespace") or "default", each["name"])
        for kind, each in metadata
        if QUEUE_LABEL in (each.get("labels") or {})
    }


# Watching


class _Watched:
    """Pods, claims and workloads of the control plane, and a check that they no longer change."""

    def __init__(
        self, informers: Informers, *, has_workloads: bool, runs_pods: bool, has_queues: bool, goal: PlayGoal | None
    ) -> None:
        self._has_workloads: Final = has_workloads
        self._goal: Final = goal
        self._runs_pods: Final = runs_pods
        self._pods: Final = informers.of(pod.Pod)
        self._claims: Final = informers.of(Claim)
        self._queued: Final = informers.of(resources.WORKLOADS) if has_queues else None
        self._changed: Final = asyncio.Event()
        for each in (self._pods, self._claims, self._queued):
            if each is not None:
                self._note_changes(each)

    def _note_changes(self, source: informer.Informer[Any]) -> None:
        note = self._changed.set
        source.add_handler(
            informer.Handler(added=lambda _: note(), updated=lambda *_: note(), deleted=lambda _: note())
        )

    @property
    def pods(self) -> list[pod.Pod]:
        return sorted(self._pods.cache, key=lambda each: (each.metadata.namespace, each.metadata.name))

    @property
    def queued(self) -> list[workload.Workload]:
        """Workloads of queues, admitted or not."""
        workloads = self._queued.cache if self._queued is not None else ()
        return sorted(workloads, key=lambda each: (each.metadata.namespace, each.metadata.name))

    def claim(self, name: str, *, namespace: str) -> Claim | None:
        return self._claims.cache.get(name, namespace=namespace)

    async def await_workloads(self, objects: set[tuple[str, str, str]], seconds: float) -> None:
        """Wait until objects, by kind, namespace and name, have workloads, but not longer than so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                while objects - self._owners():
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            return

    def _owners(self) -> set[tuple[str, str, str]]:
        """Return kind, namespace and name of the owners of workloads."""
        return {
            (owner.kind, each.metadata.namespace, owner.name)
            for each in self.queued
            for owner in each.metadata.owner_references
        }

    async def settle(self, seconds: float) -> bool:
        """Wait until nothing changes any more. Return False if that takes too long."""
        try:
            async with asyncio.timeout(seconds):
                while not await self._is_quiet() or (self._goal is not None and not self._is_answered()):
                    pass
        except TimeoutError:
            return False
        return True

    async def _is_quiet(self) -> bool:
        """Return True if nothing changes for a while.

        Changes are checked many times. All components run in this process and get a turn between two checks, so a
        machine that suspends this process does not make it look settled.
        """
        self._changed.clear()
        is_answered = self._is_answered() and not self.queued
        quiet = _QUIET_SECONDS if is_answered else _SILENT_SECONDS
        if any(map(_is_backing_off, self.pods)):
            quiet = _BACKOFF_SECONDS
        for _ in range(_CHECKS):
            await asyncio.sleep(quiet / _CHECKS)
            if self._changed.is_set():
                return False
        return True

    def _is_answered(self) -> bool:
        """Return True if every pod has an answer, and workloads have their pods; or if the goal is out of reach."""
        pods = self.pods
        if self._has_workloads and not pods:
            return False
        if self._goal is not None:
            has_failed = any(_cannot_reach(each, self._goal) for each in pods)
            return has_failed or all(_has_reached(each, self._goal) for each in pods)
        return all(_has_answer(each, runs=self._runs_pods) for each in pods)


def _scheduled_condition(candidate: pod.Pod) -> pod.PodCondition | None:
    return conditions.find(candidate.status.conditions, wellknown.POD_SCHEDULED)


def _has_reached(candidate: pod.Pod, goal: PlayGoal | None) -> bool:
    """Return True if a pod is in the state of the goal, or beyond it; without a goal, if it has a node."""
    match goal:
        case PlayGoal.RUNNING:
            return candidate.status.phase in ("Running", "Succeeded")
        case PlayGoal.COMPLETE:
            return candidate.status.phase == "Succeeded"
        case _:
            return bool(candidate.spec.node_name)


def _cannot_reach(candidate: pod.Pod, goal: PlayGoal) -> bool:
    """Return True if a pod has failed, will not be replaced, and the goal is that it runs."""
    is_final = ownership.controller_of(candidate) is None
    return is_final and goal is not PlayGoal.SCHEDULED and candidate.status.phase == "Failed"


def _is_backing_off(candidate: pod.Pod) -> bool:
    """Return True if an attempt to schedule a pod failed with an error, after which the scheduler tries again."""
    condition = _scheduled_condition(candidate)
    return not candidate.spec.node_name and condition is not None and condition.reason == messages.SCHEDULER_ERROR


def _has_answer(candidate: pod.Pod, *, runs: bool) -> bool:
    """Return True if a pod is bound or unschedulable. If pods run, a bound pod must have ended, or run for ever."""
    if candidate.spec.node_name:
        lasts = candidate.spec.restart_policy in ("", "Always") and candidate.status.phase == "Running"
        return not runs or lasts or podstate.has_ended(candidate)
    return _scheduled_condition(candidate) is not None


# Showing


def _lines(watched: _Watched, logs: Mapping[str, str], reasons: Mapping[str, str]) -> Iterable[str]:
    for queued in watched.queued:
        yield from _queued_lines(queued)
    pods = watched.pods
    for each in pods:
        # With queues, the prefix tells the job of a pod; the rest of a generated name is random.
        prefix = each.metadata.generate_name if watched.queued else ""
        name = f"pod {each.metadata.namespace}/{f'{prefix}*' if prefix else each.metadata.name}"
        if each.spec.node_name:
            failure = podstate.failure(each)
            yield f"{name}: on node {each.spec.node_name}{f', failed: {failure}' if failure else ''}"
        else:
            condition = _scheduled_condition(each)
            yield f"{name}: waits: {condition.message if condition is not None else 'for its claims'}"
        yield from _devices(each, watched)
        yield from (f"  | {line}" for line in logs.get(each.metadata.uid, "").splitlines())
        yield from (f"  {line}" for line in reasons.get(each.metadata.uid, "").splitlines())
    bound = sum(bool(each.spec.node_name) for each in pods)
    yield f"{bound} of {len(pods)} pods have a node"


async def _log(client: http.HttpClient, running: pod.Pod) -> str:
    """Return the logs of a pod's containers; nothing for a pod that has not started."""
    if running.status.phase in ("", "Pending"):
        return ""
    namespace, name = running.metadata.namespace, running.metadata.name
    try:
        pieces = [
            piece
            for each in running.spec.containers
            async for piece in client.read_log(namespace, name, query={"container": each.name})
        ]
        return b"".join(pieces).decode(errors="replace")
    except errors.RefusedError as error:
        return str(error)


async def _reasons(client: Client, pending: Iterable[pod.Pod]) -> dict[str, str]:
    """Return the reasons why the claims of pods fit nowhere, by the pods' UIDs, as ``drachma explain`` gives them."""
    cluster = Simulation(await livecluster.read(client))
    explanations = {each.metadata.uid: podexplanation.explain(cluster, each) for each in pending}
    return {uid: "\n".join(explanationlines.device_lines(each)) for uid, each in explanations.items()}


def _queued_lines(queued: workload.Workload) -> Iterable[str]:
    owner = next(iter(queued.metadata.owner_references), None)
    namespace = queued.metadata.namespace
    name = (
        f"{owner.kind.lower()} {namespace}/{owner.name}"
        if owner is not None
        else f"workload {namespace}/{queued.metadata.name}"
    )
    admission = queued.status.admission
    if admission is None:
        reserved = queueconditions.find(queued.status.conditions, queueconditions.QUOTA_RESERVED)
        yield f"{name}: waits: {f'{reserved.reason}: {reserved.message}' if reserved is not None else 'for its turn'}"
        return
    yield f"{name}: admitted by {admission.cluster_queue}"
    for each in admission.pod_set_assignments:
        for resource, amount in sorted(each.resource_usage.items()):
            yield f"  {each.name}, {resource}: {amount} of {each.flavors.get(resource, 'no flavor')}"


def _devices(consumer: pod.Pod, watched: _Watched) -> Iterable[str]:
    names = {entry.name: reference.name for entry, reference in podclaims.named(consumer)}
    extended = consumer.status.extended_resource_claim_status
    if extended is not None:
        names["extended resources"] = extended.resource_claim_name
    for entry, name in names.items():
        claim = watched.claim(name, namespace=consumer.metadata.namespace)
        if claim is None or claim.status.allocation is None:
            continue
        by_request = collections.defaultdict(list)
        for result in claim.status.allocation.devices.results:
            amounts = "".join(f" {key}={amount}" for key, amount in result.consumed_capacity.items())
            by_request[result.request].append(f"{identity.device_of(result)}{amounts}")
        for request, devices in by_request.items():
            yield f"  {entry}, {request}: {', '.join(devices)}"
