"""Targets: which resource a request is about, where it is served and what its objects decode to.

Both clients turn the kind a caller names into a target. Kinds of :mod:`drachma.api.scheme` have one with their full
type; :func:`metadata_of` makes one for any other resource, whose objects are read as their metadata only, and
:func:`view_of` has more of them read. Refused: a namespace for what has none, a missing one for what needs it, and
names that cannot stand in a path.
"""

import functools
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from drachma import errors
from drachma.api import meta, scheme

ObjectT = TypeVar("ObjectT", bound=meta.Object)


class Target(msgspec.Struct, Generic[ObjectT], frozen=True, kw_only=True):
    """One resource. ``versions`` has the most wanted first; ``model`` is the form of its objects in memory."""

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
        """How messages name it: ``resourceclaims.resource.k8s.io``, or ``pods`` in the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}" if self.group else version

    def shape(self, version: str) -> type[meta.Object]:
        """The Python type of the wire form in a version."""
        return scheme.of(self.model).shape(self.api_version(version)) if scheme.has(self.model) else self.model

    def is_reshaped(self, version: str) -> bool:
        """Whether the wire form in a version differs from the form in memory."""
        return self.shape(version) is not self.model

    def path(self, version: str, namespace: str = "", *, name: str = "", subresource: str = "") -> str:
        """The path of an object, of one of its subresources, or without a name of the collection."""
        parts = ["apis", self.group, version] if self.group else ["api", version]
        if namespace:
            parts += ["namespaces", namespace]
        parts += [self.plural, name, subresource]
        return "/" + "/".join(part for part in parts if part)

    def check_place(self, name: str, namespace: str) -> None:
        """Refuses a name and namespace that cannot be those of one object of this kind."""
        self.check_scope(namespace)
        for field, text in (("name", name), ("namespace", namespace)):
            if text in (".", "..") or "/" in text or "%" in text:
                raise errors.InvalidValueError(f"{self.qualified}: {field} {text!r} cannot be part of a path")
        if not name:
            raise errors.InvalidValueError(f"{self.qualified}: an object's name must not be empty")
        if self.namespaced and not namespace:
            raise errors.InvalidValueError(f"{self.qualified} {name!r}: is namespaced, and no namespace is given")

    def check_scope(self, namespace: str) -> None:
        """Refuses a namespace for a kind that has none."""
        if namespace and not self.namespaced:
            raise errors.InvalidValueError(f"{self.qualified}: is not namespaced, and namespace {namespace!r} is given")


Of: TypeAlias = type[ObjectT] | Target[ObjectT]
"""How callers name a kind: by its Python type, or by a target."""


def of(kind: Of[ObjectT]) -> Target[ObjectT]:
    """The target of a kind. A type that is no kind of the scheme is a programmer's mistake: KeyError."""
    return kind if kind.__class__ is Target else _of_model(kind)


def metadata_of(group: str, version: str, *, plural: str, kind: str, namespaced: bool) -> Target[meta.Object]:
    """The target of any resource, known to the scheme or not, whose objects are read as metadata only."""
    return Target(group=group, versions=(version,), plural=plural, kind=kind, namespaced=namespaced, model=meta.Object)


def view_of(resource: Target[Any], model: type[ObjectT]) -> Target[ObjectT]:
    """The target of a resource whose objects are read as a view of them that is no kind of the scheme."""
    return msgspec.structs.replace(resource, model=model)


@functools.cache
def _of_model(model: Any) -> Any:
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
