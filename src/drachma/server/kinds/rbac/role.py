"""Roles: what may be done in a namespace."""

from typing import Final

from drachma.server.kinds.rbac import roletypes
from drachma.server.surface import layout
from drachma.server.surface.apisurface import Kind
from drachma.validation import rbac

KIND: Final = Kind(
    group=rbac.GROUP,
    versions=("v1",),
    plural="roles",
    kind="Role",
    namespaced=True,
    schemas={"v1": roletypes.TYPES.object("Role")},
    traits=roletypes.TRAITS,
    layout=layout.CREATED,
    strategy=roletypes.RoleStrategy,
)
