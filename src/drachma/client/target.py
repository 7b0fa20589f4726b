"""Targets: the resource that a request is about, its path and the type of its objects.

Both clients turn the kind that a caller names into a target. Kinds of :mod:`drachma.api.scheme` have one with their
full type. :func:`metadata_of` makes one for any other resource, whose objects are read as metadata only, and
:func:`view_of` one with another view of its objects. Refused: a namespace for a cluster-scoped kind, a missing
namespace for a namespaced kind, and names that cannot be part of a path.
"""

import functools
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from drachma import errors
from drachma.api import meta, scheme

ObjectT = TypeVar("ObjectT", bound=meta.Object)


class Target(msgspec.Struct, Generic[ObjectT], frozen=True, kw_only=True):
    """One resource. ``versions`` has the preferred version first; ``model`` is the type of its objects in memory."""

    group: str
    versions: tuple[str, ...]
    plural: str
    kind: str
    namespaced: bool
    model: type[ObjectT]
    is_complete: bool = False
    is_optional: bool = False

    @property
    def qualified(self) -> str:
        """Name in messages: ``resourceclaims.resource.k8s.io``, or ``pods`` in the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def api_version(self, version: str) -> str:
        """Return the apiVersion of a version: ``group/version``, or the version alone in the core group."""
        return f"{self.group}/{version}" if self.group else version

    def shape(self, version: str) -> type[meta.Object]:
        """Return the Python type of the wire form in a version."""
        return scheme.of(self.model).shape(self.api_version(version)) if scheme.has(self.model) else self.model

    def is_reshaped(self, version: str) -> bool:
        """Return True if the wire form in a version differs from the form in memory."""
        return self.shape(version) is not self.model

    def path(self, version: str, namespace: str = "", *, name: str = "", subresource: str = "") -> str:
        """Return the path of an object, of one of its subresources, or without a name of the collection."""
        parts = ["apis", self.group, version] if self.group else ["api", version]
        if namespace:
            parts += ["namespaces", namespace]
        parts += [self.plural, name, subresource]
        return "/" + "/".join(part for part in parts if part)

    def check_place(self, name: str, namespace: str) -> None:
        """Refuse a name and namespace that cannot be those of one object of this kind."""
        self.check_scope(namespace)
        for field, text in (("name", name), ("namespace", namespace)):
            if text in (".", "..") or "/" in text or "%" in text:
                raise errors.InvalidValueError(f"{self.qualified}: {field} {text!r} cannot be part of a path")
        if not name:
            raise errors.InvalidValueError(f"{self.qualified}: an object's name must not be empty")
        if self.namespaced and not namespace:
            raise errors.InvalidValueError(f"{self.qualified} {name!r}: is namespaced, and no namespace is given")

    def check_scope(self, namespace: str) -> None:
        """Refuse a namespace for a cluster-scoped kind."""
        if namespace and not self.namespaced:
            raise errors.InvalidValueError(f"{self.qualified}: is not namespaced, and namespace {namespace!r} is given")


Of: TypeAlias = type[ObjectT] | Target[ObjectT]
"""Name of a kind for callers: its Python type, or a target."""


def of(kind: Of[ObjectT]) -> Target[ObjectT]:
    """Return the target of a kind. Raises KeyError for a type that is no kind of the scheme, which is a programmer's
    mistake.
    """
    return kind if kind.__class__ is Target else _model_target(kind)


def metadata_of(
    group: str, version: str, *, plural: str, kind: str, namespaced: bool, other_versions: tuple[str, ...] = ()
) -> Target[meta.Object]:
    """Return the target of any resource, in the scheme or not, whose objects are read as metadata only."""
    return Target(
        group=group,
        versions=(version, *other_versions),
        plural=plural,
        kind=kind,
        namespaced=namespaced,
        model=meta.Object,
    )


def view_of(resource: Target[Any], model: type[ObjectT]) -> Target[ObjectT]:
    """Return the target of a resource whose objects are read as a view that is no kind of the scheme."""
    return msgspec.structs.replace(resource, model=model)


@functools.cache
def _model_target(model: Any) -> Any:
    kind = scheme.of(model)
    return Target(
        group=kind.group,
        versions=kind.versions,
        plural=kind.plural,
        kind=kind.name,
        namespaced=kind.namespaced,
        model=model,
        is_complete=kind.complete,
        is_optional=kind.optional,
    )
