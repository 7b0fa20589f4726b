"""Role bindings: who has a role in a namespace."""

from typing import Final

from drachma.server.kinds.rbac import roletypes
from drachma.server.surface.apisurface import Kind
from drachma.validation import rbac

KIND: Final = Kind(
    group=rbac.GROUP,
    versions=("v1",),
    plural="rolebindings",
    kind="RoleBinding",
    namespaced=True,
    schemas={"v1": roletypes.TYPES.object("RoleBinding")},
    traits=roletypes.TRAITS,
    layout=roletypes.BINDING_LAYOUT,
    strategy=roletypes.BindingStrategy,
)
