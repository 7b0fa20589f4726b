"""Where objects go whose manifests name no namespace."""

from __future__ import annotations

from typing import Final, TypeVar

from msgspec import structs

from drachma.api import meta, scheme

DEFAULT: Final = "default"

ObjectT = TypeVar("ObjectT", bound=meta.Object)


def placed(read: ObjectT) -> ObjectT:
    """An object with a namespace, where it needs one and names none: the default one."""
    return in_namespace(read) if scheme.of(type(read)).namespaced else read


def in_namespace(read: ObjectT) -> ObjectT:
    """The same for an object that needs one."""
    if read.metadata.namespace:
        return read
    return structs.replace(read, metadata=structs.replace(read.metadata, namespace=DEFAULT))
