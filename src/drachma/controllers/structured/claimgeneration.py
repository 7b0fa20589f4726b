"""Work on a pod: claims of v1alpha2 are made from templates of v1alpha2, and named in its status.

A template of v1 under the same name goes first; its claims are made by the claim controller.
"""

from typing import Final

from drachma import errors
from drachma.api import meta, pod, resourceclaimtemplate
from drachma.api.struct import ABSENT_MAP
from drachma.api.v1alpha2 import resourceclaim as alpha
from drachma.api.v1alpha2 import resourceclaimtemplate as alpha_template
from drachma.claims import ownership, podclaims, podstate, templates, wellknown
from drachma.client import Client, patches
from drachma.runtime import Surroundings
from drachma.values import generatedname


class ClaimGeneration:
    """Brings the claims of one pod after another in order."""

    def __init__(self, surroundings: Surroundings) -> None:
        informers = surroundings.informers
        self._client: Final[Client] = surroundings.client
        self._pods: Final = informers.of(pod.Pod).cache
        self._templates: Final = informers.of(alpha_template.ResourceClaimTemplate).cache
        self._v1_templates: Final = informers.of(resourceclaimtemplate.ResourceClaimTemplate).cache

    async def sync(self, namespace: str, name: str) -> None:
        """Makes what is missing of a pod's claims."""
        owner = self._pods.get(name, namespace=namespace)
        if owner is None or owner.metadata.deletion_timestamp is not None or podstate.is_done(owner):
            return
        made = {}
        for entry in owner.spec.resource_claims:
            if not isinstance(podclaims.refer(owner, entry), podclaims.Missing):
                continue
            template = self._template(namespace, entry.resource_claim_template_name or "")
            if template is not None:
                made[entry.name] = await self._make(owner, entry, template)
        if made:
            statuses = [
                pod.PodResourceClaimStatus(name=entry, resource_claim_name=claim) for entry, claim in made.items()
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
        """The name of the claim, which follows from the pod and the entry: it is never made twice."""
        base = templates.base_name(owner.metadata.name, entry.name)
        name = generatedname.derived(base, f"{owner.metadata.uid}/{entry.name}")
        wanted = template.spec.metadata
        metadata = meta.ObjectMeta(
            name=name,
            namespace=owner.metadata.namespace,
            labels=wanted.labels or ABSENT_MAP,
            annotations={**wanted.annotations, wellknown.POD_CLAIM_ANNOTATION: entry.name},
            owner_references=(ownership.by_pod(owner),),
        )
        try:
            await self._client.create(alpha.ResourceClaim(metadata=metadata, spec=template.spec.spec))
        except errors.ObjectExistsError:
            existing = await self._client.get(alpha.ResourceClaim, name, namespace=owner.metadata.namespace)
            if not ownership.is_controlled_by(existing.metadata, owner.metadata.uid):
                raise
        return name
