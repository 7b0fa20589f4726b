"""The catalogue of served resources: what exists under which path, in which versions and with which verbs.

Routing, discovery, OpenAPI, tables and the registry all read it; it is the only place that lists resources. Kinds
that :mod:`drachma.api.scheme` knows have their Python type in ``Resource.model``; the others (ConfigMap, Secret,
Deployment, ...) are stored and served as the documents they are.

Public: ``Resource``, ``Subresource``, ``Catalog`` (``find``, ``of_kind``, ``groups``, ``in_version``), ``CATALOG``
and ``deprecation``.
"""

import functools
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from drachma.api import scheme
from drachma.server.surface import verbs


class Subresource(msgspec.Struct, frozen=True, kw_only=True):
    """A path below an object. ``kind`` and ``api_version`` are set where it does not carry the object's own kind.

    ``resets`` are the fields that a write through it cannot change, so that nobody comes to own them by it.
    """

    name: str
    verbs: tuple[str, ...]
    kind: str = ""
    api_version: str = ""
    resets: tuple[tuple[str, ...], ...] = ()

    def has(self, verb: str) -> bool:
        return verb in self.verbs


class Deprecation(msgspec.Struct, frozen=True, kw_only=True):
    """Since and until which minor versions of Kubernetes 1.x a version of a kind is on its way out."""

    deprecated: int
    removed: int


class Resource(msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """One served resource. ``versions`` has the preferred one first; ``storage_version`` only shows in discovery.

    There is one of each, so it is equal to itself only, and what follows from its fields is worked out once.
    """

    group: str
    versions: tuple[str, ...]
    plural: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...] = verbs.ALL
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    model: scheme.Kind | None = None
    storage_version: str = "v1"
    deprecations: Mapping[str, Deprecation] = {}

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"

    @functools.cached_property
    def key(self) -> str:
        """The resource's name in the store and in error messages of the store: ``resource.k8s.io/resourceclaims``."""
        return f"{self.group}/{self.plural}" if self.group else self.plural

    @property
    def qualified(self) -> str:
        """How Status messages name it: ``resourceclaims.resource.k8s.io``, or ``pods`` in the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def api_version(self, version: str) -> str:
        return f"{self.group}/{version}" if self.group else version

    @functools.cached_property
    def resets(self) -> tuple[tuple[str, ...], ...]:
        """The fields that a write to the object itself cannot change: its status, where that is written apart."""
        return (("status",),) if self.subresource("status") else ()

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

    @property
    def api_versions(self) -> tuple[str, ...]:
        return tuple(f"{self.name}/{version}" if self.name else version for version in self.versions)


class Catalog:
    """A fixed set of resources and the ways to look them up; all lookups are of constant cost."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self.resources = tuple(sorted(resources, key=lambda each: (each.group, each.plural)))
        self._by_path = {
            (each.group, version, each.plural): each for each in self.resources for version in each.versions
        }
        self._by_kind = {
            (each.api_version(version), each.kind): each for each in self.resources for version in each.versions
        }
        self.groups = tuple(self._group(name) for name in dict.fromkeys(each.group for each in self.resources))

    def _group(self, name: str) -> Group:
        versions = {version for each in self.resources if each.group == name for version in each.versions}
        return Group(name=name, versions=tuple(sorted(versions, key=_priority)))

    def group(self, name: str) -> Group | None:
        return next((each for each in self.groups if each.name == name), None)

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
    """The text of the Warning that answers a request in a deprecated version, or None."""
    found = resource.deprecations.get(version)
    if found is None:
        return None
    name = f"{resource.api_version(version)} {resource.kind}"
    return f"{name} is deprecated in v1.{found.deprecated}+, unavailable in v1.{found.removed}+"


def _priority(version: str) -> tuple[int, int, int]:
    """Stable versions first, then beta, then alpha; the higher number first among equals."""
    major, stage, minor = version[1:], 0, "0"
    for rank, word in ((1, "beta"), (2, "alpha")):
        if word in version:
            major, _, minor = version[1:].partition(word)
            stage = rank
    return stage, -int(major), -int(minor)


def _status(*resets: tuple[str, ...]) -> Subresource:
    return Subresource(name="status", verbs=verbs.STATUS, resets=resets)


_STATUS = _status(("spec",))
_DEVICE_STATUS = _status(("metadata",), ("spec",))
_SCALE = Subresource(name="scale", verbs=verbs.STATUS, kind="Scale", api_version="autoscaling/v1")
_BETA1 = Deprecation(deprecated=35, removed=38)
_BETA2 = Deprecation(deprecated=36, removed=39)
_BETA2_OF_RULES = Deprecation(deprecated=39, removed=42)
_BOTH_BETAS = {"v1beta1": _BETA1, "v1beta2": _BETA2}

# What the scheme does not say about its kinds: subresources, short names, categories, verbs.
_PARTICULARS: Final[Mapping[str, Mapping[str, object]]] = {
    "deviceclasses": {"deprecations": _BOTH_BETAS},
    "resourceclaims": {"subresources": (_DEVICE_STATUS,), "deprecations": _BOTH_BETAS},
    "resourceclaimtemplates": {"deprecations": _BOTH_BETAS},
    "resourceslices": {"deprecations": _BOTH_BETAS},
    "devicetaintrules": {
        "subresources": (_DEVICE_STATUS,),
        "storage_version": "v1beta2",
        "deprecations": {"v1alpha3": _BETA2, "v1beta2": _BETA2_OF_RULES},
    },
    "pods": {
        "short_names": ("po",),
        "categories": ("all",),
        "subresources": (
            Subresource(name="binding", verbs=(verbs.CREATE,), kind="Binding", api_version="v1"),
            Subresource(name="eviction", verbs=(verbs.CREATE,), kind="Eviction", api_version="policy/v1"),
            _status(("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")),
        ),
    },
    "nodes": {"short_names": ("no",), "subresources": (_STATUS,)},
    "namespaces": {
        "short_names": ("ns",),
        "verbs": tuple(verb for verb in verbs.ALL if verb != verbs.DELETE_COLLECTION),
        "subresources": (Subresource(name="finalize", verbs=(verbs.UPDATE,), resets=(("status",),)), _STATUS),
    },
    "resourcequotas": {"short_names": ("quota",), "subresources": (_STATUS,)},
    "events": {"short_names": ("ev",)},
    "leases": {},
    "jobs": {"categories": ("all",), "subresources": (_STATUS,)},
}


def _of_scheme(kind: scheme.Kind) -> Resource:
    named = {
        "group": kind.group,
        "versions": kind.versions,
        "plural": kind.plural,
        "kind": kind.name,
        "namespaced": kind.namespaced,
        "model": kind,
    }
    return Resource(**named, **_PARTICULARS[kind.plural])  # type: ignore[arg-type]


_DOCUMENTS_ONLY: Final = (
    Resource(group="", versions=("v1",), plural="configmaps", kind="ConfigMap", namespaced=True, short_names=("cm",)),
    Resource(group="", versions=("v1",), plural="secrets", kind="Secret", namespaced=True),
    Resource(
        group="",
        versions=("v1",),
        plural="serviceaccounts",
        kind="ServiceAccount",
        namespaced=True,
        short_names=("sa",),
    ),
    Resource(
        group="apps",
        versions=("v1",),
        plural="deployments",
        kind="Deployment",
        namespaced=True,
        short_names=("deploy",),
        categories=("all",),
        subresources=(_SCALE, _status(("spec",), ("metadata", "labels"))),
    ),
    Resource(
        group="apps",
        versions=("v1",),
        plural="replicasets",
        kind="ReplicaSet",
        namespaced=True,
        short_names=("rs",),
        categories=("all",),
        subresources=(_SCALE, _STATUS),
    ),
    Resource(
        group="scheduling.k8s.io",
        versions=("v1",),
        plural="priorityclasses",
        kind="PriorityClass",
        namespaced=False,
        short_names=("pc",),
    ),
)

CATALOG: Final = Catalog((*map(_of_scheme, scheme.KINDS), *_DOCUMENTS_ONLY))
"""Everything that drachma's API server serves."""
