"""The controller: which news of pods, claims and templates make work, and for whom.

Claims in use are the truth about devices, so nothing here is urgent enough to guess: it looks at its caches first,
asks the server where a mistake would hurt, and writes only on what it has seen.
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
    """What to work on."""

    kind: Literal["claim", "pod"]
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.namespace}/{self.name}"


def _claims(of: pod.Pod) -> Sequence[str]:
    return [f"{of.metadata.namespace}/{name}" for name in podclaims.all_names(of)]


def _templates(of: pod.Pod) -> Sequence[str]:
    if not of.spec.resource_claims:
        return ()
    return [
        f"{of.metadata.namespace}/{entry.resource_claim_template_name}"
        for entry in of.spec.resource_claims
        if entry.resource_claim_template_name is not None
    ]


class ResourceClaimController:
    """Makes claims from templates and takes back what is no longer used."""

    name: Final = "resource_claim"

    def __init__(self, surroundings: Surroundings) -> None:
        informers = surroundings.informers
        self._queue: Final[workqueue.Queue[Item]] = workqueue.Queue(
            self.name, time=surroundings.clock, measured=surroundings.queues
        )
        claims, pods = informers.of(Claim), informers.of(pod.Pod)
        self._claims: Final = claims.cache
        self._pods: Final = pods
        self._upkeep: Final = upkeep.Upkeep(surroundings)
        self._generator: Final = generation.Generator(
            surroundings,
            claims,
            recorder=surroundings.recorder(self.name),
            metrics=claimmetrics.ClaimMetrics(claims, into=surroundings.registry),
        )
        pods.cache.add_index(CLAIM_INDEX, _claims)
        pods.cache.add_index(TEMPLATE_INDEX, _templates)
        pods.add_handler(
            informer.Handler(added=self._see_pod, updated=lambda _, new: self._see_pod(new), deleted=self._lose_pod)
        )
        claims.add_handler(
            informer.Handler(added=self._see_claim, updated=self._see_changed_claim, deleted=self._see_users)
        )
        informers.of(resourceclaimtemplate.ResourceClaimTemplate).add_handler(
            informer.Handler(added=self._see_template, updated=lambda _, new: self._see_template(new))
        )

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    async def _reconcile(self, item: Item) -> None:
        work = self._generator.sync if item.kind == "pod" else self._upkeep.sync
        await work(item.namespace, item.name)

    # News

    def _see_pod(self, new: pod.Pod) -> None:
        if not podclaims.uses_claims(new):
            return
        if podstate.is_done(new):
            self._look_at_claims_of(new)
        elif self._needs_work(new):
            self._queue.add(Item("pod", new.metadata.namespace, new.metadata.name))

    def _lose_pod(self, gone: pod.Pod) -> None:
        if podclaims.uses_claims(gone):
            self._upkeep.note_deleted(gone)
            self._look_at_claims_of(gone)

    def _look_at_claims_of(self, of: pod.Pod) -> None:
        for name in podclaims.all_names(of):
            self._queue.add(Item("claim", of.metadata.namespace, name))

    def _see_claim(self, claim: Claim) -> None:
        self._consider(claim)
        self._see_users(claim)

    def _see_changed_claim(self, old: Claim, new: Claim) -> None:
        self._consider(new)
        is_alike = (
            old.status.allocation == new.status.allocation
            and old.status.reserved_for == new.status.reserved_for
            and old.metadata.owner_references == new.metadata.owner_references
        )
        if not is_alike:
            self._see_users(new)

    def _consider(self, claim: Claim) -> None:
        # After a start all claims must be checked for pods that went meanwhile, and any change may name one.
        if not self._pods.is_synced or self._upkeep.is_due(claim):
            self._queue.add(Item("claim", claim.metadata.namespace, claim.metadata.name))

    def _see_users(self, claim: Claim) -> None:
        for user in self._pods.cache.by(CLAIM_INDEX, f"{claim.metadata.namespace}/{claim.metadata.name}"):
            self._see_pod(user)

    def _see_template(self, template: resourceclaimtemplate.ResourceClaimTemplate) -> None:
        for user in self._pods.cache.by(TEMPLATE_INDEX, f"{template.metadata.namespace}/{template.metadata.name}"):
            self._see_pod(user)

    def _needs_work(self, of: pod.Pod) -> bool:
        if of.metadata.deletion_timestamp is not None:
            return False
        for entry in of.spec.resource_claims:  # noqa: SIM110 - asked at all news of all pods
            if self._entry_needs_work(of, entry):
                return True
        return False

    def _entry_needs_work(self, of: pod.Pod, entry: pod.PodResourceClaim) -> bool:
        reference = podclaims.refer(of, entry)
        if not isinstance(reference, podclaims.Named):
            # Nothing can be done about an entry that is not supported, but somebody has to say so.
            return not isinstance(reference, podclaims.NotNeeded)
        claim = self._claims.get(reference.name, namespace=of.metadata.namespace)
        if claim is None:
            return entry.resource_claim_template_name is not None
        if reference.is_generated and ownership.problem(claim, of):
            # The pod cannot go on unless the other claim is deleted, which will be news.
            return False
        if not of.spec.node_name or claim.status.allocation is None:
            return False
        return not reservation.is_reserved_for(claim, of)
