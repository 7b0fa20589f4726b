"""What all kinds of v1alpha2 have in common: a store of their own, and fields beside ``spec`` and ``status``."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from drachma.api import codec, defaults, meta, scheme
from drachma.server.kinds.resource.devicestrategy import DeviceStrategy
from drachma.server.kinds.resource.v1alpha2 import alphatypes
from drachma.server.schema import emptyfields
from drachma.server.surface import layout, resources, selectable
from drachma.server.surface.apisurface import Kind
from drachma.server.surface.strategy import Subject

_VERSION: Final = "v1alpha2"
_GONE: Final = {_VERSION: resources.Deprecation(deprecated=29, removed=31)}

_decode = msgspec.json.Decoder().decode


class AlphaStrategy(DeviceStrategy):
    """Kinds whose fields may be anything: they are written as a whole."""

    def document(self, subject: Subject) -> dict[str, Any]:
        content = msgspec.structs.replace(subject.content, metadata=meta.ABSENT_META)
        body: dict[str, Any] = _decode(codec.encode_part(defaults.canonical(content)))
        emptyfields.fill(body, self._schema)
        head = {"kind": self._resource.kind, "apiVersion": self._api_version, "metadata": subject.metadata}
        return {**head, **{key: value for key, value in body.items() if key not in head}}

    def amended(self, document: Mapping[str, Any], subject: Subject) -> dict[str, Any]:
        return self.document(subject)


def of(
    shape: type[meta.Object],
    *,
    subresources: tuple[resources.Subresource, ...] = (),
    table: layout.Layout = layout.PLAIN,
    fields: selectable.Selectable = selectable.BY_NAME,
    has_namesake: bool = False,
) -> Kind:
    """The record of the kind whose struct is ``shape``.

    Where it ``has_namesake``, each object has a counterpart of a later version, and quotas count that one.
    """
    kind = scheme.of(shape)
    return Kind(
        group=kind.group,
        versions=kind.versions,
        plural=kind.plural,
        kind=kind.name,
        namespaced=kind.namespaced,
        model=kind,
        schemas={_VERSION: alphatypes.schema(shape)},
        subresources=subresources,
        storage_version=_VERSION,
        # Later versions have kinds of the same names, which are something else.
        stored_as=f"{kind.group}/{_VERSION}/{kind.plural}",
        deprecations=_GONE,
        traits=resources.Traits(returns_deleted=True, is_uncounted=has_namesake),
        layout=table,
        selectable=fields,
        strategy=AlphaStrategy,
    )
