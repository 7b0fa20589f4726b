"""Claims of pods and PodGroups: created from templates, named in a status, and reserved for pods with a node.

An entry of a pod that equals an entry of its group stands for the group's claim (KEP-5729). That claim is created for
the group, and the status of each pod names it too.

Every step is safe to repeat. A claim that was created before an interruption is found by its owner and annotation. A
claim that was deleted, or belongs to another pod, is created again under another name.

If the server makes several changes at once, claims and their names in the pod's status are one commit, so that no
client sees one without the other. If that is refused, and always over HTTP, they are written one by one.
"""

import random
from collections.abc import Mapping
from typing import Final

from msgspec import structs

from drachma import errors
from drachma.api import gates as features
from drachma.api import pod, podgroup, resourceclaim, resourceclaimtemplate
from drachma.api.v1alpha2 import resourceclaimtemplate as alpha_template
from drachma.claims import ownership, podclaims, podstate, reservation, templates, wellknown
from drachma.client import Client, patches, transactions
from drachma.controllers.resourceclaim import claimmetrics
from drachma.runtime import Informer, Surroundings, events
from drachma.values import generatedname

FAILED: Final = "FailedResourceClaimCreation"

OWNER_INDEX: Final = "resource claim controller: owner"

_MESSAGES: Final = {pod.Pod: "PodResourceClaim", podgroup.PodGroup: "PodGroupResourceClaim"}


class _FeatureOffError(errors.ReconcileError):
    """A template uses a feature that is off, so that its claim is not created."""


class Generator:
    """Reconciles the claims of one pod after another."""

    def __init__(
        self,
        surroundings: Surroundings,
        claims: Informer[resourceclaim.ResourceClaim],
        *,
        recorder: events.Recorder,
        metrics: claimmetrics.ClaimMetrics,
    ) -> None:
        self._client: Final[Client] = surroundings.client
        self._transactions: Final = transactions.offered(surroundings.client)
        self._chance: Final = surroundings.rng
        self._gates: Final = surroundings.gates
        self._pods: Final = surroundings.informers.of(pod.Pod).cache
        self._groups: Final = (
            surroundings.informers.of(podgroup.PodGroup).cache
            if self._gates.on(features.Gate.WORKLOAD_RESOURCE_CLAIMS)
            else None
        )
        self._templates: Final = surroundings.informers.of(resourceclaimtemplate.ResourceClaimTemplate).cache
        self._alpha_templates: Final = (
            surroundings.informers.of(alpha_template.ResourceClaimTemplate).cache
            if self._gates.on(features.Gate.FIRST_ALPHA)
            else None
        )
        claims.cache.add_index(OWNER_INDEX, _owners)
        self._claims: Final = claims
        self._recorder: Final = recorder
        self._metrics: Final = metrics

    async def sync(self, namespace: str, name: str) -> None:
        """Create missing claims. Raises the error that prevents it, which is recorded as an event too."""
        owner = self._pods.get(name, namespace=namespace)
        # Differs from upstream: a finished pod gets no new claim when its own was deleted after use. Upstream
        # creates one, deletes it as unused, and stops only because its cache still has the first one.
        if owner is None or owner.metadata.deletion_timestamp is not None or podstate.is_done(owner):
            return
        if self.is_waiting_for_group(owner):
            return
        group = self.group_of(owner)
        owner = await self._make_at_once(owner, group) or await self._make(owner, group)
        # Before a pod has a node, the scheduler makes reservations.
        if owner.spec.node_name:
            await self._reserve(owner, group)

    async def sync_group(self, namespace: str, name: str) -> None:
        """Create the missing claims of a group. Raises the error that prevents it, which is recorded as an event."""
        group = None if self._groups is None else self._groups.get(name, namespace=namespace)
        if group is None or group.metadata.deletion_timestamp is not None:
            return
        names: dict[str, str] = {}
        statuses = {each.name: each.resource_claim_name for each in group.status.resource_claim_statuses}
        for entry in group.spec.resource_claims:
            if entry.resource_claim_template_name is None:
                continue
            if entry.name in statuses:
                claim_name = statuses[entry.name]
                if claim_name is None or await self._is_claim_of(group, claim_name):
                    continue
            try:
                claim = self._find(group, entry) or await self._create(self._draft(group, entry))
            except errors.DrachmaError as error:
                self._report(group, entry, error)
                raise
            names[entry.name] = claim.metadata.name
        if names:
            await self._client.patch(
                podgroup.PodGroup,
                name,
                patch=patches.strategic({"status": {"resourceClaimStatuses": _statuses(names)}}, patches.same(group)),
                namespace=namespace,
                subresource="status",
            )

    def group_of(self, user: pod.Pod) -> podgroup.PodGroup | None:
        """Return the group whose claims a pod may share, or None."""
        group = user.spec.scheduling_group
        if self._groups is None or group is None or not group.pod_group_name:
            return None
        return self._groups.get(group.pod_group_name, namespace=user.metadata.namespace)

    def is_waiting_for_group(self, user: pod.Pod) -> bool:
        """Return True if a pod names a group that does not exist: which of its claims it shares is not known yet."""
        group = user.spec.scheduling_group
        is_named = self._groups is not None and group is not None and bool(group.pod_group_name)
        return is_named and self.group_of(user) is None

    async def _is_claim_of(self, group: podgroup.PodGroup, name: str) -> bool:
        claim = self._claims.cache.get(name, namespace=group.metadata.namespace)
        if claim is None:
            try:
                claim = await self._client.get(resourceclaim.ResourceClaim, name, namespace=group.metadata.namespace)
            except errors.ObjectNotFoundError:
                return False
        return ownership.is_controlled_by(claim.metadata, group.metadata.uid)

    def _report(self, owner: reservation.Consumer, entry: pod.PodResourceClaim, error: errors.DrachmaError) -> None:
        message = f"{_MESSAGES[type(owner)]} {entry.name}: {error}"
        self._recorder.record(owner, type=events.WARNING, reason=FAILED, message=message)

    async def _make_at_once(self, owner: pod.Pod, group: podgroup.PodGroup | None) -> pod.Pod | None:
        """Create all claims of a pod and name them in one commit. Return the pod, or None if that is refused."""
        if self._transactions is None:
            return None
        drafts: dict[str, resourceclaim.ResourceClaim] = {}
        for entry in owner.spec.resource_claims:
            if entry.resource_claim_template_name and podclaims.consumer(owner, entry, group) is not owner:
                return None
            reference = podclaims.refer(owner, entry)
            if isinstance(reference, podclaims.Missing) and self._find(owner, entry) is None:
                try:
                    drafts[entry.name] = _under_a_name(self._draft(owner, entry), chance=self._chance)
                except errors.ReconcileError:
                    return None
            elif not isinstance(reference, podclaims.Named) or reference.is_generated:
                return None
        if not drafts:
            return None
        names = {entry: draft.metadata.name for entry, draft in drafts.items()}
        status = pod.PodStatus(resource_claim_statuses=_statuses(names))
        naming = transactions.StatusChange(owner, status, fields=("resourceClaimStatuses",))
        try:
            *created, owner = await self._transactions.commit([*map(transactions.Create, drafts.values()), naming])
        except errors.CommitRefusedError:
            # A name may be taken, or one claim may be invalid: create them one by one.
            return None
        for claim in created:
            self._metrics.count_create(claim, succeeded=True)
            self._claims.observe(claim)
        return owner

    async def _make(self, owner: pod.Pod, group: podgroup.PodGroup | None) -> pod.Pod:
        """Create the claims of a pod one by one and name them in its status. Return the pod."""
        claim_names: dict[str, str] = {}
        for entry in owner.spec.resource_claims:
            try:
                name = await self._ensure(owner, entry, group)
            except errors.DrachmaError as error:
                if isinstance(error, _FeatureOffError):
                    self._metrics.count_withheld()
                self._report(owner, entry, error)
                raise
            if name:
                claim_names[entry.name] = name
        return await self._publish(owner, claim_names) if claim_names else owner

    async def _ensure(self, owner: pod.Pod, entry: pod.PodResourceClaim, group: podgroup.PodGroup | None) -> str | None:
        """Return the claim that the pod's status must name, or None if nothing is to be written for the entry."""
        if group is not None and podclaims.consumer(owner, entry, group) is group:
            return _shared_name(owner, entry, group)
        match podclaims.refer(owner, entry):
            case podclaims.NotNeeded():
                return None
            case podclaims.Unsupported(problem):
                raise errors.ReconcileError(problem)
            case podclaims.Named() as known if await self._is_there(owner, known):
                return None
        if entry.resource_claim_template_name is None:
            # Claims that are referenced by name are not created here.
            return None
        if self._is_of_first_alpha(owner, entry.resource_claim_template_name):
            return None
        claim = self._find(owner, entry) or await self._create(self._draft(owner, entry))
        return str(claim.metadata.name)

    def _is_of_first_alpha(self, owner: pod.Pod, template: str) -> bool:
        """Return True if a template is one of v1alpha2, whose claims another controller creates."""
        namespace = owner.metadata.namespace
        if self._alpha_templates is None or self._templates.get(template, namespace=namespace) is not None:
            return False
        return self._alpha_templates.get(template, namespace=namespace) is not None

    async def _is_there(self, owner: pod.Pod, reference: podclaims.Named) -> bool:
        namespace = owner.metadata.namespace
        claim = self._claims.cache.get(reference.name, namespace=namespace)
        if claim is None:
            try:
                claim = await self._client.get(resourceclaim.ResourceClaim, reference.name, namespace=namespace)
            except errors.ObjectNotFoundError:
                return False
        return not reference.is_generated or not ownership.problem(claim, owner)

    def _find(self, owner: reservation.Consumer, entry: pod.PodResourceClaim) -> resourceclaim.ResourceClaim | None:
        """Return a claim that was created for this entry before the owner's status was written."""
        is_group = isinstance(owner, podgroup.PodGroup)
        annotation = wellknown.POD_GROUP_CLAIM_ANNOTATION if is_group else wellknown.POD_CLAIM_ANNOTATION
        for claim in self._claims.cache.by(OWNER_INDEX, owner.metadata.uid):
            if claim.metadata.annotations.get(annotation) == entry.name:
                return claim
        return None

    def _draft(self, owner: reservation.Consumer, entry: pod.PodResourceClaim) -> resourceclaim.ResourceClaim:
        """Return the new claim for an entry that names a template."""
        template_name = entry.resource_claim_template_name or ""
        template = self._templates.get(template_name, namespace=owner.metadata.namespace)
        if template is None:
            raise errors.ReconcileError(
                f'resource claim template "{template_name}": '
                f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            )
        self._check_features(template)
        return templates.claim(template, owner=owner, entry=entry)

    async def _create(self, draft: resourceclaim.ResourceClaim) -> resourceclaim.ResourceClaim:
        try:
            created = await self._client.create(draft)
        except errors.RefusedError as error:
            self._metrics.count_create(draft, succeeded=False)
            # The name is not known yet; upstream's message has a gap there too.
            raise errors.ReconcileError(f"create ResourceClaim : {error}") from error
        self._metrics.count_create(draft, succeeded=True)
        self._claims.observe(created)
        return created

    def _check_features(self, template: resourceclaimtemplate.ResourceClaimTemplate) -> None:
        requests = template.spec.spec.devices.requests
        if not self._gates.on(features.Gate.ADMIN_ACCESS) and any(
            each.exactly is not None and each.exactly.admin_access for each in requests
        ):
            raise _FeatureOffError("admin access is requested, but the feature is disabled")
        if not self._gates.on(features.Gate.PRIORITIZED_LIST) and any(each.first_available for each in requests):
            raise _FeatureOffError("template includes a prioritized list of subrequests, but the feature is disabled")

    async def _publish(self, owner: pod.Pod, claim_names: dict[str, str]) -> pod.Pod:
        """Name claims in the pod's status."""
        namespace, name = owner.metadata.namespace, owner.metadata.name
        try:
            return await self._client.patch(
                pod.Pod,
                name,
                patch=_naming(owner, claim_names),
                namespace=namespace,
                subresource="status",
            )
        except errors.RefusedError as error:
            raise errors.ReconcileError(f"update pod {namespace}/{name} ResourceClaimStatuses: {error}") from error

    async def _reserve(self, owner: pod.Pod, group: podgroup.PodGroup | None) -> None:
        """Reserve allocated claims for a pod that got its node without a scheduler (KEP-4381, "Scheduled pods with
        ...").
        """
        for entry, reference in podclaims.named(owner):
            consumer = podclaims.consumer(owner, entry, group)
            claim = self._claims.cache.get(reference.name, namespace=owner.metadata.namespace)
            if claim is None:
                return
            if reference.is_generated and (problem := ownership.problem(claim, owner)):
                raise errors.ReconcileError(problem)
            if claim.status.allocation is None or reservation.is_reserved_for(claim, consumer):
                continue
            reserved = (*claim.status.reserved_for, reservation.consumer(consumer))
            await self._client.patch(
                resourceclaim.ResourceClaim,
                claim.metadata.name,
                patch=patches.merge({"status": {"reservedFor": reserved}}, patches.unchanged(claim)),
                namespace=claim.metadata.namespace,
                subresource="status",
            )


def _shared_name(owner: pod.Pod, entry: pod.PodResourceClaim, group: podgroup.PodGroup) -> str | None:
    """Return the claim of a group that the status of a pod must name, or None if there is none or it does already."""
    if entry.resource_claim_template_name is None:
        return None
    names = {each.name: each.resource_claim_name for each in group.status.resource_claim_statuses}
    name = names.get(entry.name)
    own = {each.name: each.resource_claim_name for each in owner.status.resource_claim_statuses}
    return None if name == own.get(entry.name) else name


def _naming(owner: pod.Pod, claims: Mapping[str, str]) -> patches.Patch:
    """Return the change that names claims in the pod's status. Entries are merged by name, so others stay."""
    return patches.strategic({"status": {"resourceClaimStatuses": _statuses(claims)}}, patches.same(owner))


def _statuses(claims: Mapping[str, str]) -> tuple[pod.PodResourceClaimStatus, ...]:
    return tuple(
        pod.PodResourceClaimStatus(name=name, resource_claim_name=claim) for name, claim in sorted(claims.items())
    )


def _under_a_name(draft: resourceclaim.ResourceClaim, *, chance: random.Random) -> resourceclaim.ResourceClaim:
    """Return a claim with a generated name, because the same commit has to mention it."""
    metadata = structs.replace(draft.metadata, name=generatedname.draw(draft.metadata.generate_name, chance=chance))
    return structs.replace(draft, metadata=metadata)


def _owners(claim: resourceclaim.ResourceClaim) -> tuple[str, ...]:
    """Return the index values of a claim: the uid of the pod or group that it was created for."""
    owner = ownership.owning_pod(claim) or ownership.owning_group(claim)
    return () if owner is None else (owner.uid,)
