"""The controller: queues pods and claims when pods, claims and templates change.

Claims are the truth about devices in use, so the controller never guesses: it reads its caches first, asks the server
if a mistake would do harm, and writes only on versions that it has seen.
"""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from drachma.api import pod, resourceclaim, resourceclaimtemplate
from drachma.claims import ownership, podclaims, podstate, reservation
from drachma.controllers.resourceclaim import claimmetrics, generation, upkeep
from drachma.runtime import Surroundings, controller, informer, workqueue

WORKERS: Final = 10

CLAIM_INDEX: Final = "resource claim controller: claims"
TEMPLATE_INDEX: Final = "resource claim controller: templates"

Claim = resourceclaim.ResourceClaim


class Item(NamedTuple):
    """A pod or a claim to reconcile."""

    kind: Literal["claim", "pod"]
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.namespace}/{self.name}"


def _claims(pod: pod.Pod) -> Sequence[str]:
    return [f"{pod.metadata.namespace}/{name}" for name in podclaims.all_names(pod)]


def _templates(pod: pod.Pod) -> Sequence[str]:
    if not pod.spec.resource_claims:
        return ()
    return [
        f"{pod.metadata.namespace}/{entry.resource_claim_template_name}"
        for entry in pod.spec.resource_claims
        if entry.resource_claim_template_name is not None
    ]


class ResourceClaimController:
    """Creates claims from templates and releases unused ones."""

    name: Final = "resource_claim"

    def __init__(self, surroundings: Surroundings) -> None:
        informers = surroundings.informers
        self._queue: Final[workqueue.Queue[Item]] = workqueue.Queue(
            self.name, clock=surroundings.clock, metrics=surroundings.queues
        )
        claims, pods = informers.of(Claim), informers.of(pod.Pod)
        self._claims: Final = claims.cache
        self._pods: Final = pods
        self._upkeep: Final = upkeep.Upkeep(surroundings)
        self._generator: Final = generation.Generator(
            surroundings,
            claims,
            recorder=surroundings.recorder(self.name),
            metrics=claimmetrics.ClaimMetrics(claims, registry=surroundings.registry),
        )
        pods.cache.add_index(CLAIM_INDEX, _claims)
        pods.cache.add_index(TEMPLATE_INDEX, _templates)
        pods.add_handler(
            informer.Handler(
                added=self._handle_pod, updated=lambda _, new: self._handle_pod(new), deleted=self._handle_pod_deletion
            )
        )
        claims.add_handler(
            informer.Handler(added=self._handle_claim, updated=self._handle_claim_update, deleted=self._enqueue_users)
        )
        informers.of(resourceclaimtemplate.ResourceClaimTemplate).add_handler(
            informer.Handler(added=self._handle_template, updated=lambda _, new: self._handle_template(new))
        )

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    async def _reconcile(self, item: Item) -> None:
        work = self._generator.sync if item.kind == "pod" else self._upkeep.sync
        await work(item.namespace, item.name)

    # Handlers

    def _handle_pod(self, new: pod.Pod) -> None:
        if not podclaims.uses_claims(new):
            return
        if podstate.is_done(new):
            self._enqueue_claims(new)
        elif self._needs_work(new):
            self._queue.add(Item("pod", new.metadata.namespace, new.metadata.name))

    def _handle_pod_deletion(self, pod: pod.Pod) -> None:
        if podclaims.uses_claims(pod):
            self._upkeep.note_deleted(pod)
            self._enqueue_claims(pod)

    def _enqueue_claims(self, pod: pod.Pod) -> None:
        for name in podclaims.all_names(pod):
            self._queue.add(Item("claim", pod.metadata.namespace, name))

    def _handle_claim(self, claim: Claim) -> None:
        self._consider(claim)
        self._enqueue_users(claim)

    def _handle_claim_update(self, old: Claim, new: Claim) -> None:
        self._consider(new)
        is_alike = (
            old.status.allocation == new.status.allocation
            and old.status.reserved_for == new.status.reserved_for
            and old.metadata.owner_references == new.metadata.owner_references
        )
        if not is_alike:
            self._enqueue_users(new)

    def _consider(self, claim: Claim) -> None:
        # After a start all claims are checked for deleted pods, and any change may name one.
        if not self._pods.is_synced or self._upkeep.is_due(claim):
            self._queue.add(Item("claim", claim.metadata.namespace, claim.metadata.name))

    def _enqueue_users(self, claim: Claim) -> None:
        for user in self._pods.cache.by(CLAIM_INDEX, f"{claim.metadata.namespace}/{claim.metadata.name}"):
            self._handle_pod(user)

    def _handle_template(self, template: resourceclaimtemplate.ResourceClaimTemplate) -> None:
        for user in self._pods.cache.by(TEMPLATE_INDEX, f"{template.metadata.namespace}/{template.metadata.name}"):
            self._handle_pod(user)

    def _needs_work(self, pod: pod.Pod) -> bool:
        if pod.metadata.deletion_timestamp is not None:
            return False
        for entry in pod.spec.resource_claims:  # noqa: SIM110 - asked at all news of all pods
            if self._entry_needs_work(pod, entry):
                return True
        return False

    def _entry_needs_work(self, pod: pod.Pod, entry: pod.PodResourceClaim) -> bool:
        reference = podclaims.refer(pod, entry)
        if not isinstance(reference, podclaims.Named):
            # An entry that is not supported cannot be fixed here, only reported.
            return not isinstance(reference, podclaims.NotNeeded)
        claim = self._claims.get(reference.name, namespace=pod.metadata.namespace)
        if claim is None:
            return entry.resource_claim_template_name is not None
        if reference.is_generated and ownership.problem(claim, pod):
            # The pod is blocked until the other claim is deleted, which triggers a reconcile.
            return False
        if not pod.spec.node_name or claim.status.allocation is None:
            return False
        return not reservation.is_reserved_for(claim, pod)
