"""ResourceClaimTemplate: template of claims that are generated for pods."""

from drachma.api import meta, resourceclaim
from drachma.api.struct import Struct


class ResourceClaimTemplateSpec(Struct, frozen=True, kw_only=True):
    """Metadata and spec that generated claims get."""

    metadata: meta.ObjectMeta = meta.ABSENT_META
    spec: resourceclaim.ResourceClaimSpec = resourceclaim.ResourceClaimSpec()


class ResourceClaimTemplate(meta.Object, frozen=True, kw_only=True):
    """``resource.k8s.io`` ResourceClaimTemplate, namespaced."""

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()
