"""``drachma play``: what becomes of manifests on a control plane of their own: nodes and devices, or why none."""

import asyncio
import collections
import functools
import logging
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final

import typer

from drachma import errors
from drachma.api import meta, pod, resourceclaim
from drachma.claims import conditions, identity, podclaims, wellknown
from drachma.cli import options
from drachma.client import Client, access, http, patches, target
from drachma.offline import manifestfiles
from drachma.process import embedded, hosting
from drachma.runtime import Informers, clock, informer
from drachma.server.wire import serving

_ORDER: Final = ("Namespace", "PriorityClass", "DeviceClass", "Node", "DeviceTaintRule", "ResourceSlice")
"""What others refer to is created before them; pods come last, in the order in which they are given."""

_QUIET_SECONDS: Final = 0.5
_SILENT_SECONDS: Final = 3.0
"""How long nothing must change once every pod has its answer, and where one may never get any."""

Claim = resourceclaim.ResourceClaim


def play(
    file: options.Filename,
    seconds: Annotated[float, typer.Option(help="How long to wait at most until nothing changes any more.")] = 30.0,
) -> None:
    """Start a control plane, apply manifests to it, and show where the pods go and which devices they get.

    Everything is in memory and on a free port of this machine, and gone in the end.
    """
    logging.basicConfig(level=logging.ERROR, format="%(levelname)s %(name)s: %(message)s")
    sources = manifestfiles.read_all(file)
    hosted = hosting.Options(address=serving.Address("127.0.0.1", 0))
    shown: list[str] = []
    try:
        hosting.run(hosted, embedded.beside, functools.partial(_play, sources, shown, seconds=seconds))
    finally:
        # Not before everything has ended: a reader who has seen enough must not take the control plane down.
        for line in shown:
            typer.echo(line)


async def _play(
    sources: Sequence[manifestfiles.Source], shown: list[str], host: hosting.Host, *, seconds: float
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
        http.HttpClient(reached, time=clock.SystemClock(), manager="drachma-play") as client,
        Informers(client) as informers,
    ):
        watched = _Watched(informers)
        await informers.wait_synced()
        resources = {(each.group, each.kind): each for each in await client.resources()}
        for source in sorted(sources, key=_rank):
            await _create(client, resources, source)
        is_settled = await watched.settle(seconds)
        shown.extend(_lines(watched))
        if not is_settled:
            raise errors.UnreachableError(f"things still change after {seconds:g} seconds; see --seconds")


# Applying


def _rank(source: manifestfiles.Source) -> int:
    kind = source.content.get("kind") if isinstance(source.content, dict) else None
    return _ORDER.index(kind) if kind in _ORDER else len(_ORDER) + (kind == "Pod")


async def _create(
    client: Client, resources: dict[tuple[str, str], target.Target[meta.Object]], source: manifestfiles.Source
) -> None:
    content = source.content
    if not isinstance(content, dict) or not isinstance(content.get("metadata"), dict):
        raise errors.DecodeError(f"{source.place}: expected an object with metadata")
    group = str(content.get("apiVersion", "")).rpartition("/")[0]
    found = resources.get((group, str(content.get("kind"))))
    if found is None:
        raise errors.DecodeError(
            f"{source.place}: kind {content.get('kind')} in {content.get('apiVersion')}: not served"
        )
    metadata = {"namespace": "default", **content["metadata"]} if found.namespaced else content["metadata"]
    place = str(metadata.get("namespace", ""))
    try:
        made = await client.create_document(found, {**content, "metadata": metadata})
        if "status" in content:
            patch = patches.merge({"status": content["status"]})
            await client.patch(found, made["metadata"]["name"], patch=patch, namespace=place, subresource="status")
    except errors.RefusedError as error:
        raise errors.DecodeError(f"{source.place}: {error}") from error


# Watching


class _Watched:
    """The pods and claims as they are, and whether they have come to rest."""

    def __init__(self, informers: Informers) -> None:
        self._pods: Final = informers.of(pod.Pod)
        self._claims: Final = informers.of(Claim)
        self._changed: Final = asyncio.Event()
        for each in (self._pods, self._claims):
            self._hear(each)

    def _hear(self, of: informer.Informer[Any]) -> None:
        heard = self._changed.set
        of.add_handler(informer.Handler(added=lambda _: heard(), updated=lambda *_: heard(), deleted=lambda _: heard()))

    @property
    def pods(self) -> list[pod.Pod]:
        return sorted(self._pods.cache, key=lambda each: (each.metadata.namespace, each.metadata.name))

    def claim(self, name: str, *, namespace: str) -> Claim | None:
        return self._claims.cache.get(name, namespace=namespace)

    async def settle(self, seconds: float) -> bool:
        """Returns when nothing changes any more; False if that takes too long."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    self._changed.clear()
                    quiet = _QUIET_SECONDS if all(map(_has_answer, self.pods)) else _SILENT_SECONDS
                    try:
                        async with asyncio.timeout(quiet):
                            await self._changed.wait()
                    except TimeoutError:
                        return True
        except TimeoutError:
            return False


def _scheduled(of: pod.Pod) -> pod.PodCondition | None:
    return conditions.find(of.status.conditions, wellknown.POD_SCHEDULED)


def _has_answer(of: pod.Pod) -> bool:
    return bool(of.spec.node_name) or _scheduled(of) is not None


# Showing


def _lines(watched: _Watched) -> Iterable[str]:
    pods = watched.pods
    for each in pods:
        name = f"pod {each.metadata.namespace}/{each.metadata.name}"
        if each.spec.node_name:
            yield f"{name}: on node {each.spec.node_name}"
        else:
            condition = _scheduled(each)
            yield f"{name}: waits: {condition.message if condition is not None else 'for its claims'}"
        yield from _devices(each, watched)
    bound = sum(bool(each.spec.node_name) for each in pods)
    yield f"{bound} of {len(pods)} pods have a node"


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
