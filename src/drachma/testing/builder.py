"""Base of all builders: an object under construction, changed by making another builder."""

from typing import Generic, Self, TypeVar

from msgspec import structs

from drachma.api import devices, meta, struct

ObjectT = TypeVar("ObjectT", bound=meta.Object)


class Builder(Generic[ObjectT]):
    """Immutable builder of one object."""

    __slots__ = ("_object",)

    def __init__(self, built: ObjectT) -> None:
        self._object = built

    def build(self) -> ObjectT:
        """Return the object."""
        return self._object

    def label(self, key: str, value: str) -> Self:
        """Add a label."""
        return self._replace_meta(labels={**self._object.metadata.labels, key: value})

    def annotation(self, key: str, value: str) -> Self:
        """Add an annotation."""
        return self._replace_meta(annotations={**self._object.metadata.annotations, key: value})

    def uid(self, uid: str) -> Self:
        """Set the uid."""
        return self._replace_meta(uid=uid)

    def finalizer(self, name: str) -> Self:
        """Add a finalizer."""
        return self._replace_meta(finalizers=(*self._object.metadata.finalizers, name))

    def owner(self, kind: str, name: str, *, uid: str, api_version: str = "v1") -> Self:
        """Set the controlling owner."""
        reference = meta.OwnerReference(api_version=api_version, kind=kind, name=name, uid=uid, controller=True)
        return self._replace_meta(owner_references=(*self._object.metadata.owner_references, reference))

    def _replace_meta(self, **changes: object) -> Self:
        return self._with(metadata=structs.replace(self._object.metadata, **changes))

    def _with(self, **changes: object) -> Self:
        return type(self)(structs.replace(self._object, **changes))


def selectors(expressions: tuple[str, ...] | str) -> tuple[devices.DeviceSelector, ...]:
    """Return CEL selectors for one expression or several; an absent value for none."""
    texts = (expressions,) if isinstance(expressions, str) else expressions
    if not texts:
        return struct.ABSENT_TUPLE
    return tuple(devices.DeviceSelector(cel=devices.CELDeviceSelector(expression=text)) for text in texts)
