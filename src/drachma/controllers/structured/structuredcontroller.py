"""The controller: queues claims, pools and pods when related objects change."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Literal, NamedTuple, TypeVar

import prometheus_client
from prometheus_client import core
from prometheus_client import registry as prometheus_registry

from drachma import errors
from drachma.api import meta, pod, resourceclaim, resourceclaimtemplate, resourceslice
from drachma.api import node as nodes
from drachma.api.struct import ABSENT_MAP
from drachma.api.v1alpha2 import parameters, resourceclass
from drachma.api.v1alpha2 import resourceclaim as alpha
from drachma.api.v1alpha2 import resourceclaimtemplate as alpha_template
from drachma.api.v1alpha2 import resourceslice as alpha_slice
from drachma.claims import ownership, podclaims, podstate, templates, wellknown
from drachma.client import Client, patches
from drachma.controllers.structured import claimupkeep, poolupkeep
from drachma.runtime import Informers, Surroundings, controller, informer, workqueue
from drachma.structured import counterpart, model
from drachma.values import generatedname


class ClaimGeneration:
    """Creates v1alpha2 claims from v1alpha2 templates, and names them in the status of the pod.

    A v1 template of the same name comes first; the claim controller creates its claims.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        informers = surroundings.informers
        self._client: Final[Client] = surroundings.client
        self._pods: Final = informers.of(pod.Pod).cache
        self._templates: Final = informers.of(alpha_template.ResourceClaimTemplate).cache
        self._v1_templates: Final = informers.of(resourceclaimtemplate.ResourceClaimTemplate).cache

    async def sync(self, namespace: str, name: str) -> None:
        """Create a pod's missing claims."""
        owner = self._pods.get(name, namespace=namespace)
        if owner is None or owner.metadata.deletion_timestamp is not None or podstate.is_done(owner):
            return
        claim_names = {}
        for entry in owner.spec.resource_claims:
            if not isinstance(podclaims.refer(owner, entry), podclaims.Missing):
                continue
            template = self._template(namespace, entry.resource_claim_template_name or "")
            if template is not None:
                claim_names[entry.name] = await self._make(owner, entry, template)
        if claim_names:
            statuses = [
                pod.PodResourceClaimStatus(name=entry, resource_claim_name=claim)
                for entry, claim in claim_names.items()
            ]
            content = {"status": {"resourceClaimStatuses": statuses}}
            patch = patches.strategic(content, patches.same(owner))
            await self._client.patch(pod.Pod, name, patch=patch, namespace=namespace, subresource="status")

    def _template(self, namespace: str, name: str) -> alpha_template.ResourceClaimTemplate | None:
        if self._v1_templates.get(name, namespace=namespace) is not None:
            return None
        return self._templates.get(name, namespace=namespace)

    async def _make(
        self, owner: pod.Pod, entry: pod.PodResourceClaim, template: alpha_template.ResourceClaimTemplate
    ) -> str:
        """Create a claim. Return its name, which follows from the pod and the entry, so that it is created once."""
        base = templates.base_name(owner.metadata.name, entry.name)
        name = generatedname.derived(base, f"{owner.metadata.uid}/{entry.name}")
        template_metadata = template.spec.metadata
        metadata = meta.ObjectMeta(
            name=name,
            namespace=owner.metadata.namespace,
            labels=template_metadata.labels or ABSENT_MAP,
            annotations={**template_metadata.annotations, wellknown.POD_CLAIM_ANNOTATION: entry.name},
            owner_references=(ownership.consumer_reference(owner),),
        )
        try:
            await self._client.create(alpha.ResourceClaim(metadata=metadata, spec=template.spec.spec))
        except errors.ObjectExistsError:
            existing = await self._client.get(alpha.ResourceClaim, name, namespace=owner.metadata.namespace)
            if not ownership.is_controlled_by(existing.metadata, owner.metadata.uid):
                raise
        return name


WORKERS: Final = 5

_ObjectT = TypeVar("_ObjectT", bound=meta.Object)


class Item(NamedTuple):
    """A claim or a pod by namespace and name, or a pool by driver and node."""

    kind: Literal["claim", "pod", "pool"]
    place: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.place}/{self.name}"


class StructuredParameters:
    """Keeps v1 objects in step with those of v1alpha2."""

    name: Final = "structured_parameters"

    def __init__(self, surroundings: Surroundings) -> None:
        informers = surroundings.informers
        self._queue: Final[workqueue.Queue[Item]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        recorder = surroundings.recorder(self.name)
        self._pools: Final = poolupkeep.PoolUpkeep(surroundings, recorder=recorder)
        self._claims: Final = claimupkeep.ClaimUpkeep(surroundings, recorder=recorder, pools=self._pools)
        self._generation: Final = ClaimGeneration(surroundings)
        StructuredMetrics(informers, registry=surroundings.registry)
        self._known_claims: Final = informers.of(alpha.ResourceClaim).cache
        self._known_pods: Final = informers.of(pod.Pod).cache
        self._templates: Final = informers.of(alpha_template.ResourceClaimTemplate).cache
        self._node_slices: Final = informers.of(alpha_slice.NodeResourceSlice).cache
        informers.of(alpha.ResourceClaim).add_handler(_each(self._handle_claim))
        informers.of(resourceclaim.ResourceClaim).add_handler(_each(self._handle_v1_claim))
        informers.of(pod.Pod).add_handler(_each(self._handle_pod))
        informers.of(alpha_template.ResourceClaimTemplate).add_handler(_each(self._handle_template))
        for kind in (resourceclass.ResourceClass, parameters.ResourceClassParameters):
            informers.of(kind).add_handler(_each(self._enqueue_all_claims))
        informers.of(parameters.ResourceClaimParameters).add_handler(_each(self._handle_parameters))
        informers.of(alpha_slice.NodeResourceSlice).add_handler(_each(self._handle_source))
        informers.of(alpha_slice.ResourceSlice).add_handler(_each(self._handle_source))
        informers.of(resourceslice.ResourceSlice).add_handler(_each(self._handle_slice))
        informers.of(nodes.Node).add_handler(informer.Handler(added=self._handle_node))

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    async def _reconcile(self, item: Item) -> None:
        match item.kind:
            case "claim":
                await self._claims.sync(item.place, item.name)
            case "pod":
                await self._generation.sync(item.place, item.name)
            case "pool":
                await self._pools.sync(item.place, item.name)

    # Handlers

    def _handle_claim(self, claim: meta.Object) -> None:
        self._queue.add(Item("claim", claim.metadata.namespace, claim.metadata.name))

    def _handle_v1_claim(self, claim: meta.Object) -> None:
        """Queue the claim of a counterpart, or a claim whose counterpart it prevents."""
        own = claim.metadata
        if counterpart.CLAIM in own.annotations or self._known_claims.get(own.name, namespace=own.namespace):
            self._handle_claim(claim)

    def _enqueue_all_claims(self, _changed: meta.Object) -> None:
        for claim in self._known_claims:
            self._handle_claim(claim)

    def _handle_parameters(self, changed: meta.Object) -> None:
        for claim in self._known_claims.list_namespace(changed.metadata.namespace):
            self._handle_claim(claim)

    def _handle_pod(self, changed: pod.Pod) -> None:
        for entry in changed.spec.resource_claims:
            template = entry.resource_claim_template_name
            if template is not None and self._templates.get(template, namespace=changed.metadata.namespace):
                self._queue.add(Item("pod", changed.metadata.namespace, changed.metadata.name))
                break
        for status in changed.status.resource_claim_statuses:
            claim = self._known_claims.get(status.resource_claim_name or "", namespace=changed.metadata.namespace)
            if claim is not None and ownership.is_controlled_by(claim.metadata, changed.metadata.uid):
                self._handle_claim(claim)

    def _handle_template(self, template: meta.Object) -> None:
        for user in self._known_pods.list_namespace(template.metadata.namespace):
            self._handle_pod(user)

    def _handle_source(self, published: model.Slice) -> None:
        self._queue.add(Item("pool", model.driver_of(published), model.node_of(published)))

    def _handle_slice(self, published: resourceslice.ResourceSlice) -> None:
        """Queue the pool of a counterpart, or a pool that may have the same devices."""
        driver, node = poolupkeep.place_of(published)
        if poolupkeep.is_own(published) or self._pools.has_sources(driver, node):
            self._queue.add(Item("pool", driver, node))

    def _handle_node(self, added: nodes.Node) -> None:
        for published in self._node_slices:
            if model.node_of(published) == added.metadata.name:
                self._handle_source(published)


def _each(see: Callable[[_ObjectT], None]) -> informer.Handler[_ObjectT]:
    """Make a handler that treats all changes alike."""
    return informer.Handler.on_change(see)


class StructuredMetrics(prometheus_registry.Collector):
    """Gauges of structured classes and of claims that are allocated with structured parameters.

    KEP-4381's first alpha asks for both numbers and leaves their names open. They are counted at each scrape, from the
    caches of the informers.
    """

    def __init__(self, informers: Informers, *, registry: prometheus_client.CollectorRegistry) -> None:
        self._classes: Final = informers.of(resourceclass.ResourceClass).cache
        self._claims: Final = informers.of(alpha.ResourceClaim).cache
        registry.register(self)

    def describe(self) -> Iterable[core.Metric]:
        """Describe nothing: names are checked when metrics are collected."""
        return ()

    def collect(self) -> Iterator[core.Metric]:
        yield core.GaugeMetricFamily(
            "drachma_structured_parameters_classes",
            "Resource classes (v1alpha2) that use structured parameters.",
            value=sum(bool(each.structured_parameters) for each in self._classes),
        )
        yield core.GaugeMetricFamily(
            "drachma_structured_parameters_allocated_claims",
            "Resource claims (v1alpha2) that are allocated with structured parameters.",
            value=sum(_is_structured(each) for each in self._claims),
        )


def _is_structured(claim: alpha.ResourceClaim) -> bool:
    allocation = claim.status.allocation
    return allocation is not None and any(each.structured_data is not None for each in allocation.resource_handles)
