"""ResourceClass: what an administrator offers under a name, by which driver, with which parameters."""

from drachma.api import meta, nodeselector
from drachma.api.struct import ZERO_TEXT
from drachma.api.v1alpha2 import references


class ResourceClass(meta.Object, frozen=True, kw_only=True):
    """``resource.k8s.io/v1alpha2`` ResourceClass, cluster-scoped.

    Where ``structured_parameters`` is not true, claims of the class are allocated by a controller of the driver.
    """

    driver_name: str = ZERO_TEXT
    parameters_ref: references.ResourceClassParametersReference | None = None
    suitable_nodes: nodeselector.NodeSelector | None = None
    structured_parameters: bool | None = None
