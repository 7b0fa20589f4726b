"""ResourceClaimTemplate: template of claims that are generated for pods."""

from drachma.api import meta
from drachma.api.struct import Struct
from drachma.api.v1alpha2 import resourceclaim


class ResourceClaimTemplateSpec(Struct, frozen=True, kw_only=True):
    """Metadata and spec that generated claims get."""

    metadata: meta.ObjectMeta = meta.ABSENT_META
    spec: resourceclaim.ResourceClaimSpec = resourceclaim.ResourceClaimSpec()


class ResourceClaimTemplate(meta.Object, frozen=True, kw_only=True):
    """``resource.k8s.io/v1alpha2`` ResourceClaimTemplate."""

    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()
