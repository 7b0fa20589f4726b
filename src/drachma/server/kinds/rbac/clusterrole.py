"""Cluster roles: what may be done in all namespaces, or in those where the role is bound."""

from typing import Final

from drachma.server.kinds.rbac import roletypes
from drachma.server.surface import layout
from drachma.server.surface.apisurface import Kind
from drachma.validation import rbac

KIND: Final = Kind(
    group=rbac.GROUP,
    versions=("v1",),
    plural="clusterroles",
    kind="ClusterRole",
    namespaced=False,
    schemas={"v1": roletypes.TYPES.object("ClusterRole")},
    traits=roletypes.TRAITS,
    layout=layout.CREATED,
    strategy=roletypes.RoleStrategy,
)
