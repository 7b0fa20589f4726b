"""Cluster role bindings: who has a role everywhere."""

from typing import Final

from drachma.server.kinds.rbac import roletypes
from drachma.server.surface.apisurface import Kind
from drachma.validation import rbac

KIND: Final = Kind(
    group=rbac.GROUP,
    versions=("v1",),
    plural="clusterrolebindings",
    kind="ClusterRoleBinding",
    namespaced=False,
    schemas={"v1": roletypes.TYPES.object("ClusterRoleBinding")},
    traits=roletypes.TRAITS,
    layout=roletypes.BINDING_LAYOUT,
    strategy=roletypes.BindingStrategy,
)
