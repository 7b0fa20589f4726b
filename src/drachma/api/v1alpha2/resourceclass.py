"""ResourceClass: a named offer of an administrator, with its driver and parameters."""

from drachma.api import meta, nodeselector
from drachma.api.struct import ZERO_TEXT
from drachma.api.v1alpha2 import references


class ResourceClass(meta.Object, frozen=True, kw_only=True):
    """``resource.k8s.io/v1alpha2`` ResourceClass, cluster-scoped.

    If ``structured_parameters`` is not true, a controller of the driver allocates claims of the class.
    """

    driver_name: str = ZERO_TEXT
    parameters_ref: references.ResourceClassParametersReference | None = None
    suitable_nodes: nodeselector.NodeSelector | None = None
    structured_parameters: bool | None = None
