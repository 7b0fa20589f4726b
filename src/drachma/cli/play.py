"""``drachma play``: what becomes of manifests on a control plane of their own: nodes and devices, or why none."""

import asyncio
import collections
import functools
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

import msgspec
import typer

from drachma import errors
from drachma.api import codec, gates, meta, pod, resourceclaim, scheme
from drachma.claims import conditions, identity, podclaims, podstate, wellknown
from drachma.cli import options
from drachma.client import Client, access, http, patches, target
from drachma.offline import claimallocation, clusterdump, manifestfiles
from drachma.process import embedded, hosting, queueingchoice
from drachma.queueing import conditions as queueconditions
from drachma.queueing.component import resources
from drachma.queueing.kinds import workload
from drachma.runtime import Informers, clock, informer
from drachma.server.wire import serving

_ORDER: Final = ("Namespace", "ConfigMap", "PriorityClass", "DeviceClass", "Node", "DeviceTaintRule", "ResourceSlice")
"""What others refer to is created before them; pods come last, in the order in which they are given."""

_WORKLOADS: Final = frozenset(
    {"CronJob", "DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}
)

_QUIET_SECONDS: Final = 0.5
_SILENT_SECONDS: Final = 3.0
"""How long nothing must change once every pod has its answer, and where one may never get any."""

_LOOKS: Final = 50
"""How often it is looked meanwhile."""

Claim = resourceclaim.ResourceClaim


class _Wish(NamedTuple):
    """What a run is to do: for how long at most, and what is shown beside."""

    seconds: float
    explains: bool
    shows_logs: bool
    has_machines: bool
    has_queues: bool


def play(
    file: options.Filename,
    seconds: Annotated[float, typer.Option(help="How long to wait at most until nothing changes any more.")] = 30.0,
    nodes: options.Nodes = 0,
    profile: options.Profile = "gpu-server",
    pretend_nodes: options.PretendNodes = False,
    logs: Annotated[
        bool, typer.Option("--logs", help="Show what pods wrote; takes --nodes or --pretend-nodes.")
    ] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say why the claims of waiting pods fit nowhere.")] = False,
    with_queueing: options.Queueing = False,
    queueing_config: options.QueueingConfig = None,
) -> None:
    """Start a control plane, apply manifests to it, and show where the pods go and which devices they get.

    Everything is in memory and on a free port of this machine, and gone in the end. Jobs, Deployments and other
    workloads are shown by the pods that are made for them. Nodes of the manifests are objects only, unless
    --pretend-nodes; with --nodes there are simulated machines, and pods run on them. With --queueing jobs wait for
    quota, and it is shown who got it.

    Exit code 0: all pods have a node. 1: some have not. 2: the manifests are bad.
    """
    logging.basicConfig(level=logging.ERROR, format="%(levelname)s %(name)s: %(message)s")
    sources = manifestfiles.read_all(file)
    queues = queueingchoice.chosen(queueing_config, is_on=with_queueing)
    hosted = hosting.Options(address=serving.Address("127.0.0.1", 0), additions=queues.additions)
    beside = functools.partial(
        embedded.beside,
        simulated=options.machines(profile, nodes),
        pretends_nodes=pretend_nodes,
        more=queues.components,
    )
    wish = _Wish(
        seconds,
        explains=explain,
        shows_logs=logs,
        has_machines=bool(nodes) or pretend_nodes,
        has_queues=queues.is_on,
    )
    shown: list[str] = []
    waiting: list[pod.Pod] = []
    try:
        hosting.run(hosted, beside, functools.partial(_play, sources, shown, waiting, wish=wish))
    finally:
        # Not before everything has ended: a reader who has seen enough must not take the control plane down.
        for line in shown:
            typer.echo(line)
    if waiting:
        raise typer.Exit(1)


async def _play(
    sources: Sequence[manifestfiles.Source],
    shown: list[str],
    waiting: list[pod.Pod],
    host: hosting.Host,
    *,
    wish: _Wish,
) -> None:
    host.ready()
    await host.listening.wait()
    reached = access.Access(
        server=host.url,
        source="the control plane of drachma play",
        certificate_authority=host.authority,
        token=host.token,
    )
    async with (
        http.HttpClient(reached, time=clock.SystemClock(), manager="drachma-play", is_strict=True) as client,
        Informers(client) as informers,
    ):
        watched = _Watched(
            informers,
            has_workloads=any(map(_is_workload, sources)),
            has_machines=wish.has_machines,
            has_queues=wish.has_queues,
        )
        await informers.wait_synced()
        served = {(each.group, each.kind): each for each in await client.resources()}
        for source in sorted(sources, key=_rank):
            await _create(client, served, source)
        is_settled = await watched.settle(wish.seconds)
        waiting.extend(each for each in watched.pods if not each.spec.node_name)
        logs = {each.metadata.uid: await _log(client, each) for each in watched.pods} if wish.shows_logs else {}
        reasons = await _reasons(client, watched, waiting) if wish.explains else {}
        shown.extend(_lines(watched, logs, reasons))
        if not is_settled:
            raise errors.UnreachableError(f"things still change after {wish.seconds:g} seconds; see --seconds")


# Applying


def _rank(source: manifestfiles.Source) -> int:
    kind = source.content.get("kind") if isinstance(source.content, dict) else None
    return _ORDER.index(kind) if kind in _ORDER else len(_ORDER) + (kind == "Pod")


async def _create(
    client: Client, served: dict[tuple[str, str], target.Target[meta.Object]], source: manifestfiles.Source
) -> None:
    content = source.content
    if not isinstance(content, dict) or not isinstance(content.get("metadata"), dict):
        raise errors.DecodeError(f"{source.place}: expected an object with metadata")
    group, _, version = str(content.get("apiVersion", "")).rpartition("/")
    found = served.get((group, str(content.get("kind"))))
    if found is None:
        raise errors.DecodeError(
            f"{source.place}: kind {content.get('kind')} in {content.get('apiVersion')}: not served"
        )
    found = msgspec.structs.replace(found, versions=(version,))
    metadata = {"namespace": "default", **content["metadata"]} if found.namespaced else content["metadata"]
    place = str(metadata.get("namespace", ""))
    try:
        made = await client.create_document(found, {**content, "metadata": metadata})
        if "status" in content:
            patch = patches.merge({"status": content["status"]})
            await client.patch(found, made["metadata"]["name"], patch=patch, namespace=place, subresource="status")
    except errors.RefusedError as error:
        raise errors.DecodeError(f"{source.place}: {error}") from error


def _is_workload(source: manifestfiles.Source) -> bool:
    """Whether pods are made for an object that come after it."""
    return isinstance(source.content, dict) and source.content.get("kind") in _WORKLOADS


# Watching


class _Watched:
    """The pods and claims as they are, and whether they have come to rest."""

    def __init__(self, informers: Informers, *, has_workloads: bool, has_machines: bool, has_queues: bool) -> None:
        self._has_workloads: Final = has_workloads
        self._has_machines: Final = has_machines
        self._pods: Final = informers.of(pod.Pod)
        self._claims: Final = informers.of(Claim)
        self._queued: Final = informers.of(resources.WORKLOADS) if has_queues else None
        self._changed: Final = asyncio.Event()
        for each in (self._pods, self._claims, self._queued):
            if each is not None:
                self._hear(each)

    def _hear(self, of: informer.Informer[Any]) -> None:
        heard = self._changed.set
        of.add_handler(informer.Handler(added=lambda _: heard(), updated=lambda *_: heard(), deleted=lambda _: heard()))

    @property
    def pods(self) -> list[pod.Pod]:
        return sorted(self._pods.cache, key=lambda each: (each.metadata.namespace, each.metadata.name))

    @property
    def queued(self) -> list[workload.Workload]:
        """What waits for quota or has it."""
        found = self._queued.cache if self._queued is not None else ()
        return sorted(found, key=lambda each: (each.metadata.namespace, each.metadata.name))

    def claim(self, name: str, *, namespace: str) -> Claim | None:
        return self._claims.cache.get(name, namespace=namespace)

    async def settle(self, seconds: float) -> bool:
        """Returns when nothing changes any more; False if that takes too long."""
        try:
            async with asyncio.timeout(seconds):
                while not await self._is_quiet():
                    pass
        except TimeoutError:
            return False
        return True

    async def _is_quiet(self) -> bool:
        """Whether nothing changes for a while.

        That is looked at many times: whoever might change something runs in this process too, and gets a turn with
        every look, so that a machine that lets this process stand still is not taken for silence.
        """
        self._changed.clear()
        is_answered = self._is_answered() and not self.queued
        quiet = _QUIET_SECONDS if is_answered else _SILENT_SECONDS
        for _ in range(_LOOKS):
            await asyncio.sleep(quiet / _LOOKS)
            if self._changed.is_set():
                return False
        return True

    def _is_answered(self) -> bool:
        """Whether all pods have come as far as they will, and those of workloads are there."""
        pods = self.pods
        if self._has_workloads and not pods:
            return False
        return all(_has_answer(each, runs=self._has_machines) for each in pods)


def _scheduled(of: pod.Pod) -> pod.PodCondition | None:
    return conditions.find(of.status.conditions, wellknown.POD_SCHEDULED)


def _has_answer(of: pod.Pod, *, runs: bool) -> bool:
    """Whether a pod is where it will be, or will not be; where it ``runs``, it has begun, or ended if it ever does."""
    if of.spec.node_name:
        lasts = of.spec.restart_policy in ("", "Always") and of.status.phase == "Running"
        return not runs or lasts or podstate.has_ended(of)
    return _scheduled(of) is not None


# Showing


def _lines(watched: _Watched, logs: Mapping[str, str], reasons: Mapping[str, str]) -> Iterable[str]:
    for queued in watched.queued:
        yield from _queued_lines(queued)
    pods = watched.pods
    for each in pods:
        # Where jobs wait for quota, it is of interest whose pods these are; their names are drawn by chance.
        drawn = each.metadata.generate_name if watched.queued else ""
        name = f"pod {each.metadata.namespace}/{f'{drawn}*' if drawn else each.metadata.name}"
        if each.spec.node_name:
            yield f"{name}: on node {each.spec.node_name}"
        else:
            condition = _scheduled(each)
            yield f"{name}: waits: {condition.message if condition is not None else 'for its claims'}"
        yield from _devices(each, watched)
        yield from (f"  | {line}" for line in logs.get(each.metadata.uid, "").splitlines())
        yield from (f"  {line}" for line in reasons.get(each.metadata.uid, "").splitlines())
    bound = sum(bool(each.spec.node_name) for each in pods)
    yield f"{bound} of {len(pods)} pods have a node"


async def _log(client: http.HttpClient, of: pod.Pod) -> str:
    """What the containers of a pod wrote; nothing where it has not begun."""
    if of.status.phase in ("", "Pending"):
        return ""
    try:
        pieces = [
            piece
            for each in of.spec.containers
            async for piece in client.read_log(of.metadata.namespace, of.metadata.name, query={"container": each.name})
        ]
        return b"".join(pieces).decode(errors="replace")
    except errors.RefusedError as error:
        return str(error)


async def _reasons(client: Client, watched: _Watched, waiting: Iterable[pod.Pod]) -> dict[str, str]:
    """Why the claims of pods fit nowhere, by the pods' uids."""
    dump = clusterdump.ClusterDump()
    for kind in clusterdump.KINDS:
        for each in (await client.list(kind)).items:
            document = codec.encode(each, api_version=scheme.of(kind).api_versions[0])
            dump.add(manifestfiles.Source("the control plane", document))
    allocator = claimallocation.ClaimAllocator(dump, gates.ALL, node=None)
    reasons = {}
    for each in waiting:
        texts = []
        for _, reference in podclaims.named(each):
            claim = watched.claim(reference.name, namespace=each.metadata.namespace)
            if claim is not None and claim.status.allocation is None:
                explained = allocator.allocate(identity.label(claim.metadata), explain=True).explanations
                texts += [one.text for one in explained]
        reasons[each.metadata.uid] = "".join(texts)
    return reasons


def _queued_lines(of: workload.Workload) -> Iterable[str]:
    owner = next(iter(of.metadata.owner_references), None)
    place = of.metadata.namespace
    name = f"{owner.kind.lower()} {place}/{owner.name}" if owner is not None else f"workload {place}/{of.metadata.name}"
    admission = of.status.admission
    if admission is None:
        reserved = queueconditions.find(of.status.conditions, queueconditions.QUOTA_RESERVED)
        yield f"{name}: waits: {f'{reserved.reason}: {reserved.message}' if reserved is not None else 'for its turn'}"
        return
    yield f"{name}: admitted by {admission.cluster_queue}"
    for each in admission.pod_set_assignments:
        for resource, amount in sorted(each.resource_usage.items()):
            yield f"  {each.name}, {resource}: {amount} of {each.flavors.get(resource, 'no flavor')}"


def _devices(of: pod.Pod, watched: _Watched) -> Iterable[str]:
    names = {entry.name: reference.name for entry, reference in podclaims.named(of)}
    extended = of.status.extended_resource_claim_status
    if extended is not None:
        names["extended resources"] = extended.resource_claim_name
    for entry, name in names.items():
        claim = watched.claim(name, namespace=of.metadata.namespace)
        if claim is None or claim.status.allocation is None:
            continue
        by_request = collections.defaultdict(list)
        for result in claim.status.allocation.devices.results:
            amounts = "".join(f" {key}={amount}" for key, amount in result.consumed_capacity.items())
            by_request[result.request].append(f"{identity.device_of(result)}{amounts}")
        for request, devices in by_request.items():
            yield f"  {entry}, {request}: {', '.join(devices)}"
