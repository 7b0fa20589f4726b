"""The controller: which news make work on claims, pools and pods."""

from collections.abc import Callable
from typing import Final, Literal, NamedTuple, TypeVar

from drachma.api import meta, pod, resourceclaim, resourceslice
from drachma.api import node as nodes
from drachma.api.v1alpha2 import parameters, resourceclass
from drachma.api.v1alpha2 import resourceclaim as alpha
from drachma.api.v1alpha2 import resourceclaimtemplate as alpha_template
from drachma.api.v1alpha2 import resourceslice as alpha_slice
from drachma.claims import ownership
from drachma.controllers.structured import claimgeneration, claimupkeep, poolupkeep
from drachma.runtime import Surroundings, controller, informer, workqueue
from drachma.structured import counterpart, model

WORKERS: Final = 5

_ObjectT = TypeVar("_ObjectT", bound=meta.Object)


class Item(NamedTuple):
    """What to work on: a claim or a pod by namespace and name, a pool by driver and node."""

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
            self.name, time=surroundings.clock, measured=surroundings.queues
        )
        recorder = surroundings.recorder(self.name)
        self._pools: Final = poolupkeep.PoolUpkeep(surroundings, recorder=recorder)
        self._claims: Final = claimupkeep.ClaimUpkeep(surroundings, recorder=recorder, pools=self._pools)
        self._generation: Final = claimgeneration.ClaimGeneration(surroundings)
        self._known_claims: Final = informers.of(alpha.ResourceClaim).cache
        self._known_pods: Final = informers.of(pod.Pod).cache
        self._templates: Final = informers.of(alpha_template.ResourceClaimTemplate).cache
        self._node_slices: Final = informers.of(alpha_slice.NodeResourceSlice).cache
        informers.of(alpha.ResourceClaim).add_handler(_each(self._see_claim))
        informers.of(resourceclaim.ResourceClaim).add_handler(_each(self._see_v1_claim))
        informers.of(pod.Pod).add_handler(_each(self._see_pod))
        informers.of(alpha_template.ResourceClaimTemplate).add_handler(_each(self._see_template))
        for kind in (resourceclass.ResourceClass, parameters.ResourceClassParameters):
            informers.of(kind).add_handler(_each(self._see_all_claims))
        informers.of(parameters.ResourceClaimParameters).add_handler(_each(self._see_parameters))
        informers.of(alpha_slice.NodeResourceSlice).add_handler(_each(self._see_source))
        informers.of(alpha_slice.ResourceSlice).add_handler(_each(self._see_source))
        informers.of(resourceslice.ResourceSlice).add_handler(_each(self._see_slice))
        informers.of(nodes.Node).add_handler(informer.Handler(added=self._see_node))

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

    # News

    def _see_claim(self, claim: meta.Object) -> None:
        self._queue.add(Item("claim", claim.metadata.namespace, claim.metadata.name))

    def _see_v1_claim(self, claim: meta.Object) -> None:
        """One that stands for a claim, or is in the way of one that would."""
        own = claim.metadata
        if counterpart.CLAIM in own.annotations or self._known_claims.get(own.name, namespace=own.namespace):
            self._see_claim(claim)

    def _see_all_claims(self, _changed: meta.Object) -> None:
        for claim in self._known_claims:
            self._see_claim(claim)

    def _see_parameters(self, changed: meta.Object) -> None:
        for claim in self._known_claims.in_namespace(changed.metadata.namespace):
            self._see_claim(claim)

    def _see_pod(self, changed: pod.Pod) -> None:
        for entry in changed.spec.resource_claims:
            template = entry.resource_claim_template_name
            if template is not None and self._templates.get(template, namespace=changed.metadata.namespace):
                self._queue.add(Item("pod", changed.metadata.namespace, changed.metadata.name))
                break
        for status in changed.status.resource_claim_statuses:
            claim = self._known_claims.get(status.resource_claim_name or "", namespace=changed.metadata.namespace)
            if claim is not None and ownership.is_controlled_by(claim.metadata, changed.metadata.uid):
                self._see_claim(claim)

    def _see_template(self, template: meta.Object) -> None:
        for user in self._known_pods.in_namespace(template.metadata.namespace):
            self._see_pod(user)

    def _see_source(self, published: model.Slice) -> None:
        self._queue.add(Item("pool", model.driver_of(published), model.node_of(published)))

    def _see_slice(self, published: resourceslice.ResourceSlice) -> None:
        """One that stands for others, or may have devices that they have too."""
        driver, node = poolupkeep.place_of(published)
        if poolupkeep.is_own(published) or self._pools.has_sources(driver, node):
            self._queue.add(Item("pool", driver, node))

    def _see_node(self, added: nodes.Node) -> None:
        for published in self._node_slices:
            if model.node_of(published) == added.metadata.name:
                self._see_source(published)


def _each(see: Callable[[_ObjectT], None]) -> informer.Handler[_ObjectT]:
    """All news of an object are the same news."""
    return informer.Handler(added=see, updated=lambda _, new: see(new), deleted=see)
