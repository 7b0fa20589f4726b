"""Where objects go whose manifests name no namespace."""

from __future__ import annotations

from typing import Final

from msgspec import structs

from drachma.api import meta, scheme

DEFAULT: Final = "default"


def placed(read: meta.Object) -> meta.Object:
    """An object with a namespace, where it needs one and names none: the default one."""
    if not scheme.of(type(read)).namespaced or read.metadata.namespace:
        return read
    return structs.replace(read, metadata=structs.replace(read.metadata, namespace=DEFAULT))
