"""What all kinds of ``resource.k8s.io`` have in common: types from their structs, and versions before v1 that end."""

from collections.abc import Mapping
from typing import Final

from drachma.api import meta, scheme
from drachma.server.kinds.resource import devicestrategy, devicetypes
from drachma.server.surface import layout, resources, selectable
from drachma.server.surface.apisurface import Kind, MakeStrategy

FIRST_BETA: Final = resources.Deprecation(deprecated=35, removed=38)
SECOND_BETA: Final = resources.Deprecation(deprecated=36, removed=39)

_BEFORE_V1: Final = {
    "v1alpha3": resources.Deprecation(deprecated=34, removed=37),
    "v1beta1": FIRST_BETA,
    "v1beta2": SECOND_BETA,
}

_RETURNED: Final = resources.Traits(returns_deleted=True)

STATUS: Final = resources.status(("metadata",), ("spec",))
"""The status of devices and claims is written without any change of metadata."""


def of(
    shape: type[meta.Object],
    *,
    subresources: tuple[resources.Subresource, ...] = (),
    storage_version: str = "v1",
    deprecations: Mapping[str, resources.Deprecation] = _BEFORE_V1,
    traits: resources.Traits = _RETURNED,
    table: layout.Layout = layout.PLAIN,
    fields: selectable.Selectable = selectable.BY_NAME,
    strategy: MakeStrategy = devicestrategy.DeviceStrategy,
) -> Kind:
    """The record of the kind whose struct is ``shape``."""
    kind = scheme.of(shape)
    return Kind(
        group=kind.group,
        versions=kind.versions,
        plural=kind.plural,
        kind=kind.name,
        namespaced=kind.namespaced,
        model=kind,
        schemas=devicetypes.schemas(shape),
        subresources=subresources,
        storage_version=storage_version,
        deprecations=deprecations,
        traits=traits,
        layout=table,
        selectable=fields,
        strategy=strategy,
    )
