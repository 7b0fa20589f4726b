"""What is served: resources with their names, versions, verbs, subresources, types, columns and selectable fields.

One record a kind says it (``server.kinds``); everything else that the server knows of its API follows from the records.
:class:`Catalog` is a set of them and the ways to look them up: routing, discovery and OpenAPI are functions of it.

Public: ``Resource``, ``Subresource``, ``Deprecation``, ``Traits``, ``Group``, ``Catalog`` and ``deprecation``.
"""

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from drachma.api import scheme
from drachma.server import mediatypes
from drachma.server.schema import model as types
from drachma.server.surface import layout as layouts
from drachma.server.surface import selectable as selectables
from drachma.server.surface import verbs

MINOR_VERSION: Final = 37
"""Which Kubernetes 1.x this API is of."""

_STAGES: Final = ("", "beta", "alpha")
_VERSION: Final = re.compile(
    r"v(?P<major>[1-9][0-9]{0,8})(?:(?P<stage>alpha|beta)(?P<minor>[1-9][0-9]{0,8}))?"
).fullmatch


class Subresource(msgspec.Struct, frozen=True, kw_only=True):
    """A path below an object. ``kind``, ``api_version`` and ``schema`` are set where it does not carry the object.

    ``resets`` are the fields that a write through it cannot change, so that nobody comes to own them by it. One that
    ``connects`` is answered by the node that the object is about, and may lead on to any path there.
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
    """The subresource through which the status is written, and nothing else."""
    return Subresource(name="status", verbs=verbs.STATUS, resets=resets or (("spec",),))


class ScalePaths(msgspec.Struct, frozen=True, kw_only=True):
    """Where in an object its scale is, for kinds that say so themselves; ``written`` has the paths for messages."""

    replicas: tuple[str, ...]
    status_replicas: tuple[str, ...]
    selector: tuple[str, ...] = ()
    written: tuple[str, str, str] = ("", "", "")


class Deprecation(msgspec.Struct, frozen=True, kw_only=True):
    """Since and until which minor versions of Kubernetes 1.x a version of a kind is on its way out.

    ``replacement`` is the version that takes its place, where upstream names one.
    """

    deprecated: int
    removed: int
    replacement: str = ""


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """What distinguishes kinds in the semantics of verbs.

    ``returns_deleted``: a delete answers with the object, else with a Status. ``dies_gracefully``: a delete first sets
    a time to end by. ``has_dependents``: the garbage collector looks after what the object owns, and, where it
    ``orphans_dependents``, leaves it alone unless a delete says otherwise. ``is_question``: a create is answered and
    nothing is stored. ``is_measured``: somebody is asked for each read, and nothing is stored. ``finalizer`` is
    one that every object gets when it is deleted, for whoever has to clean up after it. ``is_custom``: users have
    defined it, and upstream serves it by other code: items of lists say of which kind they are, and a path below it
    that leads nowhere is one that nobody knows. ``is_uncounted``: quotas count another kind of the same name
    instead.
    """

    returns_deleted: bool = False
    creates_on_update: bool = False
    dies_gracefully: bool = False
    has_dependents: bool = True
    orphans_dependents: bool = False
    finalizer: str = ""
    is_custom: bool = False
    is_question: bool = False
    is_measured: bool = False
    is_uncounted: bool = False


class Resource(msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """One served resource. ``versions`` has the preferred one first, which is the stored one.

    ``schemas`` has the type of each version; ``storage_version`` only shows in discovery. ``stored_as`` is the key of
    another resource whose objects it shows in another shape. Versions that are ``reshaped`` differ from what is stored,
    and objects up to the revision ``settled_since`` may differ from the type of the stored version: their strategy
    serves them. ``layouts_of`` has versions with columns of their own.

    There is one of each, so it is equal to itself only, and what follows from its fields is worked out once.
    """

    group: str
    versions: tuple[str, ...]
    plural: str
    kind: str
    singular_name: str = ""
    list_kind_name: str = ""
    namespaced: bool
    schemas: Mapping[str, types.Object]
    verbs: tuple[str, ...] = verbs.ALL
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    model: scheme.Kind | None = None
    storage_version: str = "v1"
    stored_as: str = ""
    reshaped: frozenset[str] = frozenset()
    settled_since: int = 0
    scales: Mapping[str, ScalePaths] = {}
    patch_types: tuple[str, ...] = mediatypes.PATCH_TYPES
    deprecations: Mapping[str, Deprecation] = {}
    deprecation_texts: Mapping[str, str] = {}
    traits: Traits = Traits()
    layout: layouts.Layout = layouts.PLAIN
    layouts_of: Mapping[str, layouts.Layout] = {}
    selectable: selectables.Selectable = selectables.BY_NAME

    @property
    def singular(self) -> str:
        return self.singular_name or self.kind.lower()

    @property
    def list_kind(self) -> str:
        return self.list_kind_name or f"{self.kind}List"

    @functools.cached_property
    def key(self) -> str:
        """The resource's name in the store and in error messages of the store: ``resource.k8s.io/resourceclaims``."""
        return self.stored_as or self.group_resource

    @functools.cached_property
    def group_resource(self) -> str:
        """Group and name, such as ``resource.k8s.io/resourceclaims``: what rules about a resource go by.

        All versions of a resource have the same, also those that are stored apart (``key``). So a rule that names it
        cannot miss one of them.
        """
        return f"{self.group}/{self.plural}" if self.group else self.plural

    @property
    def qualified(self) -> str:
        """How Status messages name it: ``resourceclaims.resource.k8s.io``, or ``pods`` in the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}" if self.group else version

    @functools.cached_property
    def api_versions(self) -> tuple[str, ...]:
        return tuple(map(self.api_version, self.versions))

    def schema(self, version: str) -> types.Object:
        """The type of its objects in a version that it is served in."""
        return self.schemas[version]

    @functools.cached_property
    def resets(self) -> tuple[tuple[str, ...], ...]:
        """The fields that a write to the object itself cannot change: its status, where that is written apart."""
        return (("status",),) if self.subresource("status") else ()

    def layout_in(self, api_version: str) -> layouts.Layout:
        """How objects of an apiVersion are shown in tables."""
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
    """A fixed set of resources and the ways to look them up; all lookups are of constant cost.

    Raises:
        ValueError: two of them would be reached by the same path, or have the same kind.
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
        """The resource under ``/apis/{group}/{version}/.../{plural}``, or None."""
        return self._by_path.get((group, version, plural))

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        """The resource that objects of this apiVersion and kind belong to, or None."""
        return self._by_kind.get((api_version, kind))

    def in_version(self, group: str, version: str) -> tuple[Resource, ...]:
        """All resources of a group version, by plural name; empty where there is no such version."""
        return tuple(each for each in self.resources if each.group == group and version in each.versions)


def deprecation(resource: Resource, version: str) -> str | None:
    """The text of the Warning that answers a request in a version that is deprecated by now, or None."""
    if version in resource.deprecation_texts:
        return resource.deprecation_texts[version]
    span = resource.deprecations.get(version)
    if span is None or span.deprecated > MINOR_VERSION:
        return None
    name = f"{resource.api_version(version)} {resource.kind}"
    instead = f"; use {resource.api_version(span.replacement)} {resource.kind}" if span.replacement else ""
    return f"{name} is deprecated in v1.{span.deprecated}+, unavailable in v1.{span.removed}+{instead}"


def _priority(version: str) -> tuple[int, int, int, str]:
    """Stable versions first, then beta, then alpha; the higher number first among equals. Others come last, by name."""
    match = _VERSION(version)
    if match is None:
        return len(_STAGES), 0, 0, version
    return _STAGES.index(match["stage"] or ""), -int(match["major"]), -int(match["minor"] or 0), ""
