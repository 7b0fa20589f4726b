"""Served resources: names, versions, verbs, subresources, types, columns and selectable fields.

``server.kinds`` has a record for each kind. Routing, discovery and OpenAPI are functions of a :class:`Catalog`, a set
of records with lookups.

Public: ``Resource``, ``Subresource``, ``Deprecation``, ``Traits``, ``Group``, ``Catalog`` and ``deprecation``.
"""

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from drachma.api import kubernetesversion, scheme, types
from drachma.server import mediatypes
from drachma.server.surface import layout as layouts
from drachma.server.surface import selectable as selectables
from drachma.server.surface import verbs
from drachma.validation import kindrules

_STAGES: Final = ("", "beta", "alpha")
_VERSION: Final = re.compile(
    r"v(?P<major>[1-9][0-9]{0,8})(?:(?P<stage>alpha|beta)(?P<minor>[1-9][0-9]{0,8}))?"
).fullmatch


class Subresource(msgspec.Struct, frozen=True, kw_only=True):
    """A path below an object. ``kind``, ``api_version`` and ``schema`` describe a body that is not the object itself.

    ``resets`` are the fields that a write through the subresource cannot change or own. If it ``connects``, the node of
    the object answers; if it ``has_path``, any path may follow.
    """

    name: str
    verbs: tuple[str, ...]
    kind: str = ""
    api_version: str = ""
    schema: types.Object | None = None
    resets: tuple[tuple[str, ...], ...] = ()
    connects: bool = False
    has_path: bool = False

    def has(self, verb: str) -> bool:
        return verb in self.verbs


def status(*resets: tuple[str, ...]) -> Subresource:
    """Return the status subresource."""
    return Subresource(name="status", verbs=verbs.STATUS, resets=resets or (("spec",),))


class ScalePaths(msgspec.Struct, frozen=True, kw_only=True):
    """Paths of the scale in an object; ``written`` has them as messages show them."""

    replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...] = ()
    written: tuple[str, str, str] = ("", "", "")


class Deprecation(msgspec.Struct, frozen=True, kw_only=True):
    """Minor versions of Kubernetes 1.x that deprecate and remove a version of a kind.

    ``replacement`` is the version to use instead, if upstream names one.
    """

    deprecated: int
    removed: int
    replacement: str = ""


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """Differences between kinds in the semantics of verbs.

    ``returns_deleted``: a delete answers with the object, else with a Status. ``grace_period``: a delete
    first sets a time to end by, as many seconds ahead as this function of document and requested period returns.
    ``has_dependents``: the garbage collector deletes what the object owns, or, if it ``orphans_dependents``, leaves it
    unless the delete says otherwise. ``is_question``: a create is answered and not stored. ``is_measured``: every read
    is answered by an observer, and nothing is stored. ``finalizer`` is added to every object that is deleted.
    ``is_custom``: the kind is a custom resource, which upstream serves by other code: items of lists have a kind, and
    unknown paths below it are not found. ``is_uncounted``: quotas count another kind of the same name instead.
    """

    returns_deleted: bool = False
    creates_on_update: bool = False
    grace_period: Callable[[Mapping[str, Any], int | None], int] | None = None
    has_dependents: bool = True
    orphans_dependents: bool = False
    finalizer: str = ""
    is_custom: bool = False
    is_question: bool = False
    is_measured: bool = False
    is_uncounted: bool = False


class Resource(msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """A served resource. The first of ``versions`` is preferred and stored.

    ``defined_schemas`` has the type of each version of a custom resource; other resources have the types of
    :mod:`drachma.api.types`. ``storage_version`` only shows in discovery. ``stored_as`` is the key of another resource
    whose objects it shows in another shape. The strategy converts objects for versions that are ``reshaped``, and
    objects up to ``schema_revision``, which may not have the current type. ``layouts_of`` has versions with columns of
    their own.

    A resource is equal to itself only, and derived values are computed once.
    """

    group: str
    versions: tuple[str, ...]
    plural: str
    kind: str
    singular_name: str = ""
    list_kind_name: str = ""
    namespaced: bool
    verbs: tuple[str, ...] = verbs.ALL
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    defined_schemas: Mapping[str, types.Object] | None = None
    model: scheme.Kind | None = None
    storage_version: str = "v1"
    stored_as: str = ""
    reshaped: frozenset[str] = frozenset()
    schema_revision: int = 0
    scales: Mapping[str, ScalePaths] = {}
    patch_types: tuple[str, ...] = mediatypes.PATCH_TYPES
    deprecations: Mapping[str, Deprecation] = {}
    deprecation_texts: Mapping[str, str] = {}
    traits: Traits = Traits()
    layout: layouts.Layout = layouts.PLAIN
    layouts_of: Mapping[str, layouts.Layout] = {}
    selectable: selectables.Selectable = selectables.BY_NAME
    rules: kindrules.KindRules = kindrules.NO_RULES

    @property
    def singular(self) -> str:
        return self.singular_name or self.kind.lower()

    @property
    def list_kind(self) -> str:
        return self.list_kind_name or f"{self.kind}List"

    @functools.cached_property
    def key(self) -> str:
        """Name in the store and its error messages: ``resource.k8s.io/resourceclaims``."""
        return self.stored_as or self.group_resource

    @functools.cached_property
    def group_resource(self) -> str:
        """Group and plural name, such as ``resource.k8s.io/resourceclaims``.

        All versions of a resource have the same, even if they are stored apart (``key``), so a rule by this name
        applies to all of them.
        """
        return f"{self.group}/{self.plural}" if self.group else self.plural

    @property
    def qualified(self) -> str:
        """Name in Status messages: ``resourceclaims.resource.k8s.io``, or ``pods`` in the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}" if self.group else version

    @functools.cached_property
    def api_versions(self) -> tuple[str, ...]:
        return tuple(map(self.api_version, self.versions))

    @functools.cached_property
    def schemas(self) -> Mapping[str, types.Object]:
        """The type of each version."""
        if self.defined_schemas is not None:
            return self.defined_schemas
        return {version: types.get(f"{self.group or 'core'}/{version}.{self.kind}") for version in self.versions}

    def schema(self, version: str) -> types.Object:
        """Return the type of the resource's objects in a served version."""
        return self.schemas[version]

    @functools.cached_property
    def resets(self) -> tuple[tuple[str, ...], ...]:
        """Fields that a write to the object itself cannot change: the status, if it is a subresource."""
        return (("status",),) if self.subresource("status") else ()

    def layout_in(self, api_version: str) -> layouts.Layout:
        """Return the table layout of an apiVersion."""
        return self.layouts_of.get(api_version.rpartition("/")[2], self.layout)

    def has(self, verb: str) -> bool:
        return verb in self.verbs

    def subresource(self, name: str) -> Subresource | None:
        return self._below.get(name)

    @functools.cached_property
    def _below(self) -> Mapping[str, Subresource]:
        return {each.name: each for each in self.subresources}


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """An API group and its versions, the preferred one first; the core group's name is empty."""

    name: str
    versions: tuple[str, ...]
    is_custom: bool = False

    @property
    def api_versions(self) -> tuple[str, ...]:
        return tuple(f"{self.name}/{version}" if self.name else version for version in self.versions)


class Catalog:
    """A fixed set of resources with lookups of constant cost.

    Raises:
        ValueError: two resources have the same path or the same kind.
    """

    def __init__(self, resources: Iterable[Resource]) -> None:
        self.resources = tuple(sorted(resources, key=lambda each: (each.group, each.plural)))
        self._by_path: dict[tuple[str, str, str], Resource] = {}
        self._by_kind: dict[tuple[str, str], Resource] = {}
        for each in self.resources:
            for version in each.versions:
                names = (each.group, version, each.plural), (each.api_version(version), each.kind)
                if names[0] in self._by_path or names[1] in self._by_kind:
                    raise ValueError(f"{each.qualified}/{version}: something of that name is served already")
                self._by_path[names[0]] = self._by_kind[names[1]] = each
        self.groups = tuple(self._group(name) for name in dict.fromkeys(each.group for each in self.resources))
        self._by_group = {each.name: each for each in self.groups}

    def _group(self, name: str) -> Group:
        members = [each for each in self.resources if each.group == name]
        versions = {version for each in members for version in each.versions}
        is_custom = all(each.traits.is_custom for each in members)
        return Group(name=name, versions=tuple(sorted(versions, key=_priority)), is_custom=is_custom)

    def group(self, name: str) -> Group | None:
        return self._by_group.get(name)

    def find(self, group: str, version: str, *, plural: str) -> Resource | None:
        """Return the resource under ``/apis/{group}/{version}/.../{plural}``, or None."""
        return self._by_path.get((group, version, plural))

    def find_kind(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of an apiVersion and kind, or None."""
        return self._by_kind.get((api_version, kind))

    def resources_in(self, group: str, version: str) -> tuple[Resource, ...]:
        """Return all resources of a group version, by plural name; empty if there is no such version."""
        return tuple(each for each in self.resources if each.group == group and version in each.versions)


def deprecation(resource: Resource, version: str) -> str | None:
    """Return the text of the Warning for requests in a deprecated version, or None."""
    if version in resource.deprecation_texts:
        return resource.deprecation_texts[version]
    span = resource.deprecations.get(version)
    if span is None or span.deprecated > kubernetesversion.MINOR:
        return None
    name = f"{resource.api_version(version)} {resource.kind}"
    instead = f"; use {resource.api_version(span.replacement)} {resource.kind}" if span.replacement else ""
    return f"{name} is deprecated in v1.{span.deprecated}+, unavailable in v1.{span.removed}+{instead}"


def _priority(version: str) -> tuple[int, int, int, str]:
    """Return a sort key: stable, beta, alpha, each by descending number; other versions last, by name."""
    match = _VERSION(version)
    if match is None:
        return len(_STAGES), 0, 0, version
    return _STAGES.index(match["stage"] or ""), -int(match["major"]), -int(match["minor"] or 0), ""
