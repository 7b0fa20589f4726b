"""The controller: queues pods, groups and claims when pods, PodGroups, claims and templates change.

Claims are the truth about devices in use, so the controller never guesses: it reads its caches first, asks the server
if a mistake would do harm, and writes only on versions that it has seen.
"""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from drachma.api import gates as features
from drachma.api import pod, podgroup, resourceclaim, resourceclaimtemplate
from drachma.claims import ownership, podclaims, podstate, reservation
from drachma.controllers.resourceclaim import claimmetrics, generation, upkeep
from drachma.runtime import Surroundings, controller, informer, workqueue

WORKERS: Final = 20
"""Pods, groups and claims that are reconciled at the same time. Their writes are made together. Upstream has 10."""

CLAIM_INDEX: Final = "resource claim controller: claims"
GROUP_INDEX: Final = "resource claim controller: groups"
TEMPLATE_INDEX: Final = "resource claim controller: templates"

Claim = resourceclaim.ResourceClaim


class Item(NamedTuple):
    """A pod, a group or a claim to reconcile."""

    kind: Literal["claim", "group", "pod"]
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.namespace}/{self.name}"


def _claims(pod: pod.Pod) -> Sequence[str]:
    return [f"{pod.metadata.namespace}/{name}" for name in podclaims.all_names(pod)]


def _templates(owner: pod.Pod | podgroup.PodGroup) -> Sequence[str]:
    if not owner.spec.resource_claims:
        return ()
    return [
        f"{owner.metadata.namespace}/{entry.resource_claim_template_name}"
        for entry in owner.spec.resource_claims
        if entry.resource_claim_template_name is not None
    ]


def _groups(member: pod.Pod) -> Sequence[str]:
    group = member.spec.scheduling_group
    is_user = group is not None and group.pod_group_name and member.spec.resource_claims
    return (f"{member.metadata.namespace}/{group.pod_group_name}",) if is_user and group is not None else ()


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
        pods.add_handler(informer.Handler.on_write(self._handle_pod, deleted=self._handle_pod_deletion))
        claims.add_handler(
            informer.Handler(added=self._handle_claim, updated=self._handle_claim_update, deleted=self._enqueue_users)
        )
        self._groups: Final = (
            informers.of(podgroup.PodGroup) if surroundings.gates.on(features.Gate.WORKLOAD_RESOURCE_CLAIMS) else None
        )
        if self._groups is not None:
            pods.cache.add_index(GROUP_INDEX, _groups)
            self._groups.cache.add_index(TEMPLATE_INDEX, _templates)
            self._groups.add_handler(informer.Handler.on_write(self._handle_group, deleted=self._handle_group_deletion))
        informers.of(resourceclaimtemplate.ResourceClaimTemplate).add_handler(
            informer.Handler.on_write(self._handle_template)
        )

    async def run(self) -> None:
        await controller.work(self._queue, self._reconcile, workers=WORKERS)

    async def _reconcile(self, item: Item) -> None:
        match item.kind:
            case "pod":
                await self._generator.sync(item.namespace, item.name)
            case "group":
                await self._generator.sync_group(item.namespace, item.name)
            case "claim":
                await self._upkeep.sync(item.namespace, item.name)

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

    def _handle_group(self, new: podgroup.PodGroup) -> None:
        if new.spec.resource_claims and new.metadata.deletion_timestamp is None:
            self._queue.add(Item("group", new.metadata.namespace, new.metadata.name))
        for member in self._pods.cache.by(GROUP_INDEX, f"{new.metadata.namespace}/{new.metadata.name}"):
            self._handle_pod(member)

    def _handle_group_deletion(self, deleted: podgroup.PodGroup) -> None:
        self._upkeep.note_deleted(deleted)
        generated = [each.resource_claim_name for each in deleted.status.resource_claim_statuses]
        for name in (*generated, *(each.resource_claim_name for each in deleted.spec.resource_claims)):
            if name is not None:
                self._queue.add(Item("claim", deleted.metadata.namespace, name))

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
        owner = None if self._groups is None else ownership.owning_group(claim)
        if owner is not None and self._groups is not None:
            group = self._groups.cache.get(owner.name, namespace=claim.metadata.namespace)
            if group is not None:
                self._handle_group(group)
        for user in self._pods.cache.by(CLAIM_INDEX, f"{claim.metadata.namespace}/{claim.metadata.name}"):
            self._handle_pod(user)

    def _handle_template(self, template: resourceclaimtemplate.ResourceClaimTemplate) -> None:
        for user in self._pods.cache.by(TEMPLATE_INDEX, f"{template.metadata.namespace}/{template.metadata.name}"):
            self._handle_pod(user)
        if self._groups is not None:
            for group in self._groups.cache.by(
                TEMPLATE_INDEX, f"{template.metadata.namespace}/{template.metadata.name}"
            ):
                self._handle_group(group)

    def _needs_work(self, pod: pod.Pod) -> bool:
        if pod.metadata.deletion_timestamp is not None or self._generator.is_waiting_for_group(pod):
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
        group = self._generator.group_of(pod)
        if group is not None and podclaims.consumer(pod, entry, group) is group:
            return (
                bool(pod.spec.node_name)
                and claim.status.allocation is not None
                and not (reservation.is_reserved_for(claim, group))
            )
        if reference.is_generated and ownership.problem(claim, pod):
            # The pod is blocked until the other claim is deleted, which triggers a reconcile.
            return False
        if not pod.spec.node_name or claim.status.allocation is None:
            return False
        return not reservation.is_reserved_for(claim, pod)
