"""How the pods of a job are to be scheduled together: types that jobs have from ``scheduling.k8s.io``.

For the notation see :mod:`drachma.server.schema.notation`.
"""

from typing import Final

from drachma.server.kinds.scheduling import grouptypes
from drachma.server.schema import notation

_TYPES: Final = """\
WorkloadPodGroupAllDisruptionMode:
WorkloadPodGroupBasicSchedulingPolicy:
WorkloadPodGroupDisruptionMode: all=WorkloadPodGroupAllDisruptionMode single=WorkloadPodGroupSingleDisruptionMode
WorkloadPodGroupGangSchedulingPolicy: minCount=int32?
WorkloadPodGroupResourceClaim: name=str* resourceClaimName=str? resourceClaimTemplateName=str?
WorkloadPodGroupSchedulingConstraints: topology=[TopologyConstraint]
WorkloadPodGroupSchedulingPolicy: basic=WorkloadPodGroupBasicSchedulingPolicy gang=WorkloadPodGroupGangSchedulingPolicy
WorkloadPodGroupSingleDisruptionMode:
"""
WORKLOADS: Final = notation.Types("io.k8s.api.scheduling.v1alpha3", _TYPES, uses=(grouptypes.PACKAGES["v1alpha3"],))
